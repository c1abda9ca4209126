"""Words as a term list sees them: variants of characters, and case, make no difference."""

import re
import unicodedata
from typing import Collection, Dict, Iterator

import numpy
from spacy.strings import StringStore, get_string_id

from .hash_table import Ids

# Name of the attribute, beside those of spaCy.
FORM = "FORM"
# Words that are remembered, so that a stream of text needs no more and more memory.
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
    hyphens, zero-width signs and marks of direction.

    text (str): A word or a phrase.
    lang (str): Code of its language.
    RETURNS (str): The form; empty if nothing of it is visible.
    """
    if text.isascii() and lang not in _DOTLESS:
        return text.lower()
    return _lower(_plain(text), lang).casefold()


def variants(text: str, lang: str, exceptions: Collection[str]) -> Iterator[str]:
    """Spellings of a term that a tokenizer may split in another way than the term itself.

    text (str): The term.
    lang (str): Code of the language.
    exceptions (Collection[str]): The words that the tokenizer splits by a rule of their own, in normal form.
    YIELDS (str): Spellings with plain and typographic signs, and in other case, where that can make a difference.
    """
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
    """Looks up the normal forms of words, as hashes, and remembers them.

    lang (str): Code of the language.
    cased (bool): Keep case, for terms that match in exact case.
    """

    def __init__(self, lang: str, cased: bool = False) -> None:
        self.lang = lang
        self.cased = cased
        self._known: Dict[int, int] = {}

    def __call__(self, orths: Ids, strings: StringStore) -> Ids:
        """Look up words.

        orths (Ids): Shape (n_words,): their ids.
        strings (StringStore): Their strings.
        RETURNS (Ids): Shape (n_words,): hashes of their forms; 0 if nothing of a word is visible.
        """
        keys = orths.tolist()
        known = self._known
        missing = {key for key in keys if key not in known}
        if missing and len(known) > CAPACITY:
            known = self._known = {}
            missing = {*keys}
        for key in missing:
            form = _plain(strings[key]) if self.cased else normal_form(strings[key], self.lang)
            known[key] = get_string_id(form) if form.strip() else 0
        result: Ids = numpy.fromiter((known[key] for key in keys), dtype="uint64", count=len(keys))
        return result
