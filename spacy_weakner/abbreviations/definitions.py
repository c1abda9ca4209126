"""Finds definitions of abbreviations in a text, as Schwartz and Hearst do, "A simple algorithm for identifying
abbreviation definitions in biomedical text" (2003): the characters of the short form occur in the long form in the same
order, and the first one begins a word."""

from typing import Iterator, List, NamedTuple, Optional, Tuple

from spacy.tokens import Doc

from ..corpus.entities import trim

# Minimum and maximum number of characters of a short form.
_MIN_LENGTH, _MAX_LENGTH = 2, 10
_BRACKETS = {")": "(", "]": "["}
# After these, text in brackets is not part of a short form: "(MTX; 10 mg)", "(HF, n = 20)".
_SEPARATORS = frozenset(";,:=")
# These join two short forms: "CPA / EE".
_JOINED = frozenset("/+&")
# More tokens are a phrase. ("5-FU" has three if hyphens are tokens.)
_MAX_TOKENS = 5
Bounds = Tuple[int, int]


class Definition(NamedTuple):
    """A short form and its long form: start and end (exclusive) token of each."""

    short: Bounds
    long: Bounds


def find_definitions(doc: Doc) -> List[Definition]:
    """Find the definitions in a Doc: "long form (SF)" and "SF (long form)"."""
    # Maximum tokens of a long form: twice as many words as the short form has characters, and punctuation between them.
    reach = 8 * _MAX_LENGTH
    found = []
    for first, last in _brackets(doc):
        if last - first > reach:
            continue
        end = next((i for i in range(first, last) if doc[i].text in _SEPARATORS), last)
        inside = trim(doc, first, end)
        before = trim(doc, _sentence_start(doc, first - 1, reach), first - 1)
        if is_short_form(doc, inside):
            long = _long_form(doc, inside, before)
            if long is not None:
                found.append(Definition(inside, long))
                continue
        short = (_word_start(doc, *before), before[1])
        if is_short_form(doc, short):
            long = _long_form(doc, short, inside)
            # The long form must be all of the text in brackets: otherwise this is not a definition.
            if long == inside:
                found.append(Definition(short, long))
    return sorted(found)


def short_forms(doc: Doc, definition: Definition) -> Iterator[Tuple[str, ...]]:
    """Yield the spellings of a short form in a text: its visible tokens, in the singular and in the plural."""
    words = _words(doc, definition.short)
    yield words
    last = words[-1]
    if last.isupper():
        yield (*words[:-1], f"{last}s")
    elif last.endswith("s") and last[:-1].isupper():
        yield (*words[:-1], last[:-1])


def is_short_form(doc: Doc, bounds: Bounds) -> bool:
    """Return True if tokens may be a short form: few characters, one of them upper case, and no joined short forms."""
    words = _words(doc, bounds)
    text = "".join(words)
    return (
        0 < len(words) <= _MAX_TOKENS
        and _MIN_LENGTH <= len(text) <= _MAX_LENGTH
        and text[0].isalnum()
        and any(map(str.isupper, text))
        and not _JOINED.intersection(words)
    )


def _brackets(doc: Doc) -> Iterator[Bounds]:
    """Yield the contents of brackets, including nested ones: the first token, and the closing bracket."""
    opened: List[Tuple[str, int]] = []
    for token in doc:
        if token.text in _BRACKETS.values():
            opened.append((token.text, token.i))
        elif token.text in _BRACKETS and opened and opened[-1][0] == _BRACKETS[token.text]:
            yield opened.pop()[1] + 1, token.i
        elif token.is_sent_start:
            opened.clear()


def _sentence_start(doc: Doc, i: int, reach: int) -> int:
    """Return the first token of the sentence or brackets that contain a token; at most `reach` tokens before it."""
    depth, least = 0, max(i - reach, 0)
    while i > least:
        text = doc[i - 1].text
        depth += (text in _BRACKETS) - (text in _BRACKETS.values())
        if depth < 0 or (doc[i].is_sent_start and not depth):
            break
        i -= 1
    return i


def _word_start(doc: Doc, start: int, end: int) -> int:
    """Return the first token of the word that ends before `end`: tokens without white space between them."""
    i = max(end - 1, start)
    while i > start and not doc[i - 1].whitespace_ and not doc[i - 1].is_space:
        i -= 1
    return i


def _words(doc: Doc, bounds: Bounds) -> Tuple[str, ...]:
    return tuple(token.text for token in doc[bounds[0] : bounds[1]] if not token.is_space)


def _long_form(doc: Doc, short: Bounds, within: Bounds) -> Optional[Bounds]:
    """Return the shortest long form that ends where `within` ends."""
    text = "".join(_words(doc, short))
    if text.endswith("s") and text[:-1].isupper():
        text = text[:-1]  # a plural, whose "s" need not occur in the long form
    letters = [character.casefold() for character in text if character.isalnum()]
    n_words = min(len(letters) + 5, 2 * len(letters))
    i, words = within[1], 0
    if i > within[0] and doc[i - 1].text in _SEPARATORS:
        return None
    left, depth = list(letters), 0
    while i > within[0] and words < n_words:
        i -= 1
        if doc[i].is_space:
            continue
        depth += (doc[i].text in _BRACKETS) - (doc[i].text in _BRACKETS.values())
        words += not doc[i].is_punct
        word = doc[i].text.casefold()
        if word == text.casefold():
            return None
        place = len(word)
        while left:
            # The first letter must begin a word, the others may occur anywhere.
            place = word.rfind(left[-1], 0, place) if len(left) > 1 else (0 if place and word[0] == left[0] else -1)
            if place < 0:
                break
            left.pop()
        if not left:
            start = _word_start(doc, within[0], i + 1)
            return (start, within[1]) if not depth and len(doc[start : within[1]].text) > len(text) else None
    return None
