"""What encoders read that look at text with a question in mind."""

import re
from typing import List, NamedTuple

from spacy.tokens import Doc

# Words and punctuation marks of a question; of scripts without spaces (Kana and Han) its characters.
_CHARACTER = "[\u3040-\u30ff\u3400-\u9fff]"
WORDS = re.compile(rf"{_CHARACTER}|(?:(?!{_CHARACTER})\w)+|[^\w\s]")


class Queried(NamedTuple):
    """Texts, and the questions that are asked about each of them.

    docs (List[Doc]): The texts.
    queries (List[str]): The questions; each has at least one word.
    """

    docs: List[Doc]
    queries: List[str]


def spaced(doc: Doc, i: int) -> str:
    """A token with the space before it, which byte-level tokenizers tell words by.

    doc (Doc): The Doc.
    i (int): The token.
    RETURNS (str): Its text; with a space in front if it begins the Doc, or follows white space.
    """
    attached = i > 0 and not doc[i - 1].whitespace_ and not doc[i - 1].is_space
    return doc[i].text if attached else f" {doc[i].text}"
