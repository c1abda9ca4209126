"""Are texts in the language that was given? Judged by their letters and its most frequent words."""

import re
import runpy
import unicodedata
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import FrozenSet, Iterable, Sequence, Set

import spacy

from .findings import Findings, percent

LIMIT = 2000  # texts that are looked at
_LETTERS = 200  # fewer tell nothing
# Languages that texts are tried with; those of one script share many short words, so only a clear case counts.
_OTHERS = ("en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "nb", "fi", "pl", "cs", "hu", "ro", "tr", "ru", "uk")
_USUAL = 0.15  # share of stop words that running text of a language has at least
_DIFFERENT = 8  # so many different ones; a few may well be names
_WORD = re.compile(r"[^\W\d_]{2,}")
_JAPANESE = frozenset(["HIRAGANA", "KATAKANA", "CJK"])


def check_language(texts: Sequence[str], lang: str, where: str, findings: Findings) -> None:
    """Compare texts with what a language looks like."""
    texts = texts[:: max(1, len(texts) // LIMIT)]
    found = Counter(script(character) for text in texts for character in text if character.isalpha())
    total, expected = sum(found.values()), scripts_of(lang)
    if total < _LETTERS or not expected:
        return
    fitting = sum(found[name] for name in expected)
    if fitting < total / 2:
        mostly = found.most_common(1)[0][0]
        most = mostly if mostly == "CJK" else mostly.title()
        letters_of = f"{percent(total - fitting, total)} of the letters are not those of '{lang}'; most are {most}."
        cure = "Give the language of the texts (--lang), or other texts."
        findings.warning(where, f"Wrong language? {letters_of}", cure)
        return
    words = Counter(word.casefold() for text in texts for word in _WORD.findall(text))
    given = _share(words, stop_words(lang))
    other = max(_OTHERS, key=lambda code: _share(words, stop_words(code)))
    best = _share(words, stop_words(other))
    different = len(words.keys() & stop_words(other))
    if other != lang and best > _USUAL and best > 2 * given and different >= _DIFFERENT:
        message = f"Wrong language? {100 * given:.0f} % of the words are stop words of '{lang}', but "
        message += f"{100 * best:.0f} % are those of '{other}'."
        findings.warning(where, message, f"--lang {other}, or give other texts.")


@lru_cache(maxsize=100_000)
def script(letter: str) -> str:
    """The script of a letter, as the first word of its Unicode name: "LATIN", "CYRILLIC", "CJK"."""
    name = unicodedata.name(letter, "UNKNOWN").split()[0]
    return {"FULLWIDTH": "LATIN", "HALFWIDTH": "KATAKANA", "KATAKANA-HIRAGANA": "KATAKANA"}.get(name, name)


def scripts_of(lang: str) -> FrozenSet[str]:
    """The scripts that a language is written in, judged by its stop words; none if it has no stop words."""
    found = Counter(script(letter) for word in stop_words(lang) for letter in word if letter.isalpha())
    total = sum(found.values())
    scripts = {name for name, n in found.items() if n >= total / 20}
    return frozenset(scripts | _JAPANESE if "HIRAGANA" in scripts else scripts)


@lru_cache(maxsize=100)
def stop_words(lang: str) -> FrozenSet[str]:
    """The stop words of a language; none if spaCy has none."""
    # Not imported: that would load all rules of the language, which takes seconds for some. Only spaCy runs.
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
