"""Inputs of encoders that read texts together with questions."""

import re
from typing import List, NamedTuple

from spacy.tokens import Doc

# Words and punctuation marks of a question; in scripts without spaces (Kana and Han), its characters.
_CHARACTER = "[\u3040-\u30ff\u3400-\u9fff]"
WORDS = re.compile(rf"{_CHARACTER}|(?:(?!{_CHARACTER})\w)+|[^\w\s]")


class Queried(NamedTuple):
    """Texts, and the questions about each of them.

    docs (List[Doc]): The texts.
    queries (List[str]): The questions; each has at least one word.
    """

    docs: List[Doc]
    queries: List[str]


def spaced(doc: Doc, i: int, blank: str = " ") -> str:
    """Return a token with the space before it, by which byte-level and SentencePiece tokenizers identify words.

    doc (Doc): The Doc.
    i (int): Index of the token.
    blank (str): What the tokenizer takes for a space.
    RETURNS (str): Its text, preceded by a space if it begins the Doc or follows white space.
    """
    # Not `is_space`, which some vocabularies lack.
    attached = i > 0 and not doc[i - 1].whitespace_ and not doc[i - 1].text.isspace()
    return doc[i].text if attached else f"{blank}{doc[i].text}"
