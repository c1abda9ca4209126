"""Normal forms of words: variants of characters, and case, make no difference."""

import re
import unicodedata
from typing import Collection, Dict, Iterator

import numpy
from spacy.strings import StringStore, get_string_id

from .trie import Ids

# Name of the attribute, beside those of spaCy.
FORM = "FORM"
# Words in a cache, so that its memory stays bounded on a stream of text.
CAPACITY = 100_000
# Languages in which I is the capital of a dotless i.
_DOTLESS = ("tr", "az")
_ACUTE = "\u00b4"  # NFKC makes a blank and an accent of it
_PLAIN = str.maketrans({**dict.fromkeys("‘’‛\u02bc＇", "'"), **dict.fromkeys("‐‑\u2012\u2013−﹣－", "-")})
# Each tokenizer splits at some of these signs, and takes others for letters.
_TYPOGRAPHIC = [str.maketrans({"'": a, "-": b}) for a, b in (("’", "‑"), (_ACUTE, "\u2013"), ("\u02bc", "-"))]
# Where tokenizers look at case: abbreviations with a full stop, and units behind numbers.
_CASED = re.compile(r"\.|\d[^\W\d_]")


def normal_form(text: str, lang: str = "") -> str:
    """Compatibility composition (NFKC), plain apostrophes and hyphens, no case ("STRASSE" is "Straße"); no soft
    hyphens, zero-width signs and marks of direction. Empty if nothing of the text is visible."""
    if text.isascii() and lang not in _DOTLESS:
        return text.lower()
    return _lower(_plain(text), lang).casefold()


def folded(term: str) -> str:
    """What a stop list compares: the normal form without white space, since corpora that come split ("5 - FU") have
    more of it than terms."""
    return "".join(normal_form(term).split())


def variants(text: str, lang: str, exceptions: Collection[str]) -> Iterator[str]:
    """Spellings of a term that a tokenizer may split in another way than the term itself: with plain and typographic
    signs and, where that can make a difference, in other case. Exceptions are the words that the tokenizer splits by a
    rule of their own, in normal form."""
    plain = _plain(text)
    form = normal_form(text, lang)
    spellings = [plain]
    if _CASED.search(plain) or any(word in exceptions for word in form.split()):
        spellings += [_lower(plain, lang), plain.upper(), plain.title()]
    for spelling in spellings:
        if normal_form(spelling, lang) != form:
            continue  # Python does not know the dotless i
        yield spelling
        if "'" in spelling or "-" in spelling:
            yield from map(spelling.translate, _TYPOGRAPHIC)


def _plain(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text.replace(_ACUTE, "'")).translate(_PLAIN)
    return "".join(char for char in text if unicodedata.category(char) != "Cf")


def _lower(text: str, lang: str) -> str:
    if lang in _DOTLESS:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


class Forms:
    """Looks up the normal forms of words, as hashes, and caches them; with their case, for terms that match in exact
    case, if `cased`."""

    def __init__(self, lang: str, cased: bool = False) -> None:
        self.lang = lang
        self.cased = cased
        self._known: Dict[int, int] = {}

    def __call__(self, orths: Ids, *stores: StringStore) -> Ids:
        """The hashes of the forms of words, given by their ORTH, which one of the stores has; 0 if nothing of a word is
        visible."""
        keys = orths.tolist()
        known = self._known
        missing = {key for key in keys if key not in known}
        if missing and len(known) > CAPACITY:
            known = self._known = {}
            missing = {*keys}
        for key in missing:
            text = next((store for store in stores if key in store), stores[0])[key]
            form = _plain(text) if self.cased else normal_form(text, self.lang)
            known[key] = get_string_id(form) if form.strip() else 0
        result: Ids = numpy.fromiter((known[key] for key in keys), dtype="uint64", count=len(keys))
        return result
