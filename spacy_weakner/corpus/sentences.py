"""Sentences: their equality, splitting of raw text into them, and texts that a tokenizer cannot process."""

import re
from itertools import accumulate, pairwise
from typing import Any, Callable, Iterator, List, Sequence

import numpy
from spacy.attrs import NORM, ORTH, SPACY
from spacy.lang.lex_attrs import is_punct
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc, Span

from .docbin import bare_copy

# Characters that are neither letters nor digits, without white space between them. spaCy's tokenizer strips them one by
# one and searches the rest each time: 2,000 take about a second, 20,000 take minutes.
LONGEST_RUN = 2000
# In characters. Longer texts take more memory and time than a document is worth.
LONGEST_TEXT = 10_000_000
# Maximum length in tokens of a sentence ("METHODS :") that may occur in two documents by chance.
SHORT = 3
_SPACE = re.compile(r"\s+")
_ENDS = frozenset(Sentencizer.default_punct_chars)
# Matches texts that may hold the end of a sentence before their last word.
INNER_END = re.compile(rf"[{re.escape(''.join(_ENDS))}].*\w", re.DOTALL)
# Name of the component that splits texts.
SENTENCIZER = "sentencizer"


def sentence_key(text: str) -> str:
    """Return the text without case and white space: sentences with the same key are equal."""
    return "".join(text.casefold().split())


def inner_starts(words: Sequence[str]) -> List[int]:
    """Return the words with which spaCy's sentencizer begins a sentence within others ("Yahoo", "!", "Inc.": [2])."""
    starts, ended = [], False
    for i, word in enumerate(words):
        if word in _ENDS:
            ended = True
        elif ended and not is_punct(word):
            starts.append(i)
            ended = False
    return starts


def is_divided_name(span: Span) -> bool:
    """Return True if an annotated span contains the end of a sentence and is a name. After this end, a stop word begins
    the next sentence ("Washington. The"): the span was annotated badly."""
    starts = inner_starts([token.text for token in span])
    return bool(starts) and not any(span[i].is_stop for i in starts)


def is_blank_line(space: str) -> bool:
    """Return True if a run of white space holds a blank line, which ends any sentence and phrase."""
    return len(f"{space}x".splitlines()) > 2


def is_line_break(space: str) -> bool:
    """Return True if a text is white space with a line break."""
    return space.isspace() and len(f"{space}x".splitlines()) > 1


def paragraph_starts(text: str, is_end: Callable[[str], bool] = is_blank_line) -> List[int]:
    """Return the starts of the paragraphs of a text, after each run of white space is replaced by one blank."""
    text = text.strip()
    blank = [run for run in _SPACE.finditer(text) if is_end(run[0])]
    ends = [0, *(run.end() for run in blank)]
    return list(
        accumulate(len(" ".join(text[a : run.start()].split())) + 1 for a, run in zip(ends, blank, strict=False))
    )


def longest_run(text: str, nlp: Language) -> int:
    """Return the most non-alphanumeric characters in a run without white space if they exceed the limit, else 0."""
    tokenizer = nlp.tokenizer
    strips = isinstance(tokenizer, Tokenizer) and (tokenizer.prefix_search or tokenizer.suffix_search) is not None
    if len(text) <= LONGEST_RUN or not strips:
        return 0
    runs = (run for run in text.split() if len(run) > LONGEST_RUN)
    found = max((sum(not char.isalnum() for char in run) for run in runs), default=0)
    return found if found > LONGEST_RUN else 0


class SentenceSplitter:
    """A splitter of raw text into one Doc per sentence, at blank lines and by the component `SENTENCIZER` of `nlp` or,
    if there is none, by the rule of spaCy's sentencizer. Otherwise only vocabulary and tokenizer are used."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self._usual = Sentencizer()

    @property
    def _sentencizer(self) -> Any:
        return self.nlp.get_pipe(SENTENCIZER) if self.nlp.has_pipe(SENTENCIZER) else self._usual

    def _starts(self, doc: Doc) -> List[bool]:
        """Return for each token of a Doc, which is not changed, whether a sentence begins there."""
        if isinstance(self._sentencizer, Sentencizer):
            starts: List[bool] = self._sentencizer.predict([doc])[0]
            return starts
        return [bool(token.is_sent_start) for token in self._sentencizer(bare_copy(doc))]

    def _paragraphs(self, text: str) -> List[int]:
        lines = getattr(self._sentencizer, "lines", False)
        return paragraph_starts(text, is_line_break if lines else is_blank_line)

    def sentences_of(self, doc: Doc) -> List[Doc]:
        """Return the sentences of a Doc that may hold several, or nothing."""
        has_several = self._starts(doc).count(True) > 1 or bool(self._paragraphs(doc.text))
        return list(self.split(doc.text)) if has_several and not longest_run(doc.text, self.nlp) else []

    def set_sentences(self, doc: Doc) -> None:
        """Set the sentence starts of a Doc that has several."""
        starts = self._starts(doc)
        if sum(starts) > 1:
            self._usual.set_annotations([doc], [starts])

    def split(self, text: str) -> Iterator[Doc]:
        """Split a text. Runs of white space become one blank, so that no token is white space."""
        doc = self.nlp.tokenizer(" ".join(text.split()))
        # spaCy's tokenizer sets words and norms; others may set more.
        bare = type(self.nlp.tokenizer) is Tokenizer
        columns: Any = doc.to_array([ORTH, SPACY, NORM])
        words = columns[:, 0].tolist()
        starts = numpy.flatnonzero(self._starts(doc)).tolist()
        if paragraphs := set(self._paragraphs(text)):
            starts = sorted({*starts, *(token.i for token in doc if token.idx in paragraphs)})
        for start, end in pairwise([*starts, len(doc)]):
            sentence = doc
            if len(starts) > 1 or not bare:
                spaces = [*columns[start : end - 1, 1].astype(bool).tolist(), False]
                sentence = Doc(self.nlp.vocab, words=words[start:end], spaces=spaces)
                sentence.from_array([NORM], columns[start:end, 2])  # the tokenizer's norm: "not" for "n't"
            yield sentence
