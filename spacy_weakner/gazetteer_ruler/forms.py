"""Normal forms of words, which do not depend on case and on variants of characters."""

import re
import unicodedata
from typing import Collection, Dict, Iterator

import numpy
from spacy.strings import StringStore, get_string_id

from ..ty import Hashes

# Name of the attribute, in addition to those of spaCy.
FORM = "FORM"
# Maximum number of words in a cache, so that its memory is bounded on a stream of text.
CAPACITY = 100_000
# Languages in which I is the upper case of a dotless i.
_DOTLESS = ("tr", "az")
# Languages that are also written without their marks: the accents of Greek capitals; vowel signs of Arabic script, with
# the sign that lengthens a word, and of Hebrew. Of these, only Greek has them in composed letters ("ή").
_MARKED = ("el", "ar", "fa", "ur", "he")
_TATWEEL = "\u0640"
_ACUTE = "\u00b4"  # NFKC turns it into a blank and an accent
_PLAIN = str.maketrans({**dict.fromkeys("‘’‛\u02bc＇", "'"), **dict.fromkeys("‐‑\u2012\u2013−﹣－", "-")})
# Tokenizers differ in which of these signs they split at, and which they treat as letters.
_TYPOGRAPHIC = [str.maketrans({"'": a, "-": b}) for a, b in (("’", "‑"), (_ACUTE, "\u2013"), ("\u02bc", "-"))]
# Texts that tokenizers may split by case: abbreviations with a period, and units after numbers.
_CASED = re.compile(r"\.|\d[^\W\d_]")


def normal_form(text: str, lang: str = "") -> str:
    """Normalize a text: compatibility composition (NFKC), plain apostrophes and hyphens, case folding ("STRASSE" equals
    "Straße"), no soft hyphens, zero-width signs and direction marks; in Greek, Arabic script and Hebrew, no accents and
    vowel signs. "" if no character is visible."""
    if text.isascii() and lang not in _DOTLESS:
        return text.lower()
    return _lower(_plain(text, lang), lang).casefold()


def folded(term: str) -> str:
    """Return the form that a stop list compares: the normal form without white space, since tokenized corpora have more
    of it ("5 - FU") than terms."""
    return "".join(normal_form(term).split())


def variants(text: str, lang: str, exceptions: Collection[str]) -> Iterator[str]:
    """Yield spellings of a term that a tokenizer may split differently from the term: with plain and typographic signs
    and, where case may matter, in other case. `exceptions` are the words for which the tokenizer has special rules, in
    normal form."""
    plain = _plain(text, lang)
    form = normal_form(text, lang)
    spellings = [plain]
    if _CASED.search(plain) or any(word in exceptions for word in form.split()):
        spellings += [_lower(plain, lang), plain.upper(), plain.title()]
    for spelling in spellings:
        if normal_form(spelling, lang) == form:  # Python's case mapping does not support the dotless i
            yield from exact_variants(spelling, lang)


def exact_variants(text: str, lang: str = "") -> Iterator[str]:
    """Yield the spellings of a term with plain and typographic signs."""
    plain = _plain(text, lang)
    yield plain
    if "'" in plain or "-" in plain:
        yield from map(plain.translate, _TYPOGRAPHIC)


def has_inner_capital(text: str) -> bool:
    """Return True if there is an upper-case letter after the first character, as in "AIDS" and "pH"."""
    return any(character.isupper() for character in text[1:])


def _plain(text: str, lang: str = "") -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text.replace(_ACUTE, "'")).translate(_PLAIN)
    unseen = {"Cf"}
    if lang in _MARKED:
        text = unicodedata.normalize("NFD", text) if lang == "el" else text.replace(_TATWEEL, "")
        unseen.add("Mn")
    return "".join(char for char in text if unicodedata.category(char) not in unseen)


def _lower(text: str, lang: str) -> str:
    if lang in _DOTLESS:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


class Forms:
    """A cache of the normal forms of words, as hashes; if `cased`, the forms keep their case, for terms that match in
    exact case."""

    def __init__(self, lang: str, cased: bool = False) -> None:
        self.lang = lang
        self.cased = cased
        self._known: Dict[int, int] = {}

    def __call__(self, orths: Hashes, *stores: StringStore) -> Hashes:
        """Return the hashes of the forms of words, given by their ORTH, which must be in one of the stores; 0 for words
        without a visible character."""
        keys = orths.tolist()
        known = self._known
        missing = {key for key in keys if key not in known}
        if missing and len(known) > CAPACITY:
            known = self._known = {}
            missing = {*keys}
        for key in missing:
            text = next((store for store in stores if key in store), stores[0])[key]
            form = _plain(text, self.lang) if self.cased else normal_form(text, self.lang)
            known[key] = get_string_id(form) if form.strip() else 0
        result: Hashes = numpy.fromiter((known[key] for key in keys), dtype="uint64", count=len(keys))
        return result
