"""A tokenizer for corpora that are split at each punctuation mark."""

import re
import unicodedata
from functools import lru_cache
from typing import Callable

from spacy.language import Language
from spacy.tokenizer import Tokenizer


def make_word_tokenizer() -> Callable[[Language], Tokenizer]:
    """Create a tokenizer that splits at white space and makes each punctuation mark a separate token.

    Many published corpora are split this way ("L-dopa" is three tokens). A pipeline trained on them should tokenize raw
    text and term lists in the same way. The tokenizer is an ordinary spaCy Tokenizer and is saved as one.

    RETURNS (Callable[[Language], Tokenizer]): A function that creates the tokenizer.
    """
    return create_word_tokenizer


def create_word_tokenizer(nlp: Language) -> Tokenizer:
    """Create the tokenizer of `make_word_tokenizer` for a pipeline."""
    punctuation = rf"[^\w\s{_inseparable()}][{_inseparable()}]*"
    return Tokenizer(
        nlp.vocab,
        prefix_search=re.compile(f"^{punctuation}").search,
        suffix_search=re.compile(f"{punctuation}$").search,
        infix_finditer=re.compile(punctuation).finditer,
    )


@lru_cache(maxsize=1)
def _inseparable() -> str:
    # Parts of the preceding character that are not letters for `re`: vowel signs and accents, joiners, skin tones.
    tags_and_selectors = range(0xE0000, 0xE0200)
    codes = [
        c for c in (*range(0x20000), *tags_and_selectors) if unicodedata.category(chr(c)) in ("Mn", "Mc", "Me", "Cf")
    ]
    return "".join(map(chr, codes)) + "\U0001f3fb-\U0001f3ff"
