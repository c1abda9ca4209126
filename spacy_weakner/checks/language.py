"""Check that texts are in the given language, judged by their letters and the most frequent words of the language, and
in the right encoding."""

import re
import runpy
import unicodedata
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import FrozenSet, Iterable, Sequence, Set

import spacy

from ..encodings import undoubled
from ..errors import shorten
from .findings import Findings, percent, plural
from .text import MARKUP

LIMIT = 2000  # texts that are checked
_MARKED = 0.1  # share of texts with markup
_LETTERS = 200  # fewer letters are not enough
# Languages to compare with. Languages of one script share many short words, so only a clear difference is reported.
_OTHERS = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "nb", "fi", "pl", "cs", "hu", "ro", "tr", "ru", "uk")
_USUAL = 0.15  # minimum share of stop words in running text of a language
_DIFFERENT = 8  # minimum number of distinct stop words; a few may be names
_WORD = re.compile(r"[^\W\d_]{2,}")
DOUBLED = "UTF-8 was read as Windows-1252: export it again as UTF-8, or repair it (for example with ftfy)."
_JAPANESE = frozenset(["HIRAGANA", "KATAKANA", "CJK"])


def check_language(texts: Sequence[str], lang: str, where: str, findings: Findings) -> None:
    """Compare the script and the stop words of texts with those of a language."""
    _check_encoding(texts, where, findings)
    _check_markup(texts, where, findings)
    texts = texts[:: max(1, len(texts) // LIMIT)]
    found = Counter(script(character) for text in texts for character in text if character.isalpha())
    total, expected = sum(found.values()), scripts_of(lang)
    if total < _LETTERS or not expected:
        return
    fitting = sum(found[name] for name in expected)
    if fitting < total / 2:
        mostly = found.most_common(1)[0][0]
        most = mostly if mostly == "CJK" else mostly.title()
        letters_of = f"{percent(total - fitting, total)} of the letters are not used in '{lang}'; most are {most}."
        cure = "Give the language of the texts (--lang), or other texts."
        findings.warning(where, f"Probably the wrong language: {letters_of}", cure)
        return
    words = Counter(word.casefold() for text in texts for word in _WORD.findall(text))
    given = _share(words, stop_words(lang))
    other = max(_OTHERS, key=lambda code: _share(words, stop_words(code)))
    best = _share(words, stop_words(other))
    different = len(words.keys() & stop_words(other))
    if other != lang and best > _USUAL and best > 2 * given and different >= _DIFFERENT:
        message = f"Probably the wrong language: {100 * given:.0f} % of the words are stop words of '{lang}', but "
        message += f"{100 * best:.0f} % are stop words of '{other}'."
        findings.warning(where, message, f"--lang {other}, or give other texts.")


def _check_markup(texts: Sequence[str], where: str, findings: Findings) -> None:
    marked = [text for text in texts if MARKUP.search(text)]
    if len(texts) > 4 and len(marked) > _MARKED * len(texts):
        message = f"{len(marked):,} of {len(texts):,} texts contain HTML entities, tags or links: "
        cure = "Remove the tags, and replace the entities by their characters: all of them are read as words."
        findings.warning(where, f"{message}'{shorten(marked[0], 60)}'.", cure)


def _check_encoding(texts: Sequence[str], where: str, findings: Findings) -> None:
    doubled = [text for text in texts if undoubled(text) != text]
    if doubled:
        example = next((word for word in doubled[0].split(" ") if undoubled(word) != word), doubled[0])
        message = f"{plural(len(doubled), 'text')} in a wrong encoding: '{shorten(example, 40)}' is probably "
        findings.warning(where, f"{message}'{shorten(undoubled(example), 40)}'.", DOUBLED)


@lru_cache(maxsize=100_000)
def script(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name: "LATIN", "CYRILLIC", "CJK"."""
    name = unicodedata.name(letter, "UNKNOWN").split()[0]
    return {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "KATAKANA-HIRAGANA": "KATAKANA"}.get(name, name)


def scripts_of(lang: str) -> FrozenSet[str]:
    """Return the scripts of a language, judged by its stop words; an empty set if it has none."""
    found = Counter(script(letter) for word in stop_words(lang) for letter in word if letter.isalpha())
    total = sum(found.values())
    scripts = {name for name, n in found.items() if n >= total / 20}
    return frozenset(scripts | _JAPANESE if "HIRAGANA" in scripts else scripts)


@lru_cache(maxsize=100)
def stop_words(lang: str) -> FrozenSet[str]:
    """Return the stop words of a language; an empty set if spaCy has none."""
    # Not imported, which would load all rules of the language and takes seconds for some. Only code of spaCy runs.
    languages = Path(spacy.__file__).parent / "lang"
    if lang not in {folder.name for folder in languages.iterdir()}:
        return frozenset()
    try:
        words: Set[str] = runpy.run_path(str(languages / lang / "stop_words.py"))["STOP_WORDS"]
    except (OSError, ImportError, KeyError):
        return frozenset()
    return frozenset(word.casefold() for word in words)


def _share(words: "Counter[str]", stops: Iterable[str]) -> float:
    total = sum(words.values())
    return sum(words[word] for word in stops) / total if total else 0.0
