"""A tokenizer for corpora that come split at every punctuation mark."""

import re
from typing import Callable

from spacy.language import Language
from spacy.tokenizer import Tokenizer


def make_word_tokenizer() -> Callable[[Language], Tokenizer]:
    """Create a tokenizer that splits at white space and makes every punctuation mark a token of its own.

    Many published corpora are split this way ("L-dopa" is three tokens). A pipeline trained on them should read
    raw text and term lists in the same manner. It is an ordinary spaCy Tokenizer and is saved as one.

    RETURNS (Callable[[Language], Tokenizer]): Maker of the tokenizer.
    """
    return create_word_tokenizer


def create_word_tokenizer(nlp: Language) -> Tokenizer:
    """Create the tokenizer of `make_word_tokenizer` for a pipeline.

    nlp (Language): The pipeline; its vocabulary is shared.
    RETURNS (Tokenizer): The tokenizer.
    """
    return Tokenizer(
        nlp.vocab,
        prefix_search=re.compile(r"^[^\w\s]").search,
        suffix_search=re.compile(r"[^\w\s]$").search,
        infix_finditer=re.compile(r"[^\w\s]").finditer,
    )
