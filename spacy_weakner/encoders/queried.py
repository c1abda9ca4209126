"""What encoders read that look at text with a question in mind."""

from typing import List, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab


class Queried(NamedTuple):
    """Texts, and the questions that are asked about each of them.

    docs (List[Doc]): The texts.
    queries (List[str]): The questions; each has at least one word.
    """

    docs: List[Doc]
    queries: List[str]


def query_doc(query: str, vocab: Vocab) -> Doc:
    """A question as a Doc.

    query (str): The question.
    vocab (Vocab): The vocabulary.
    RETURNS (Doc): Its words, split at white space.
    """
    return Doc(vocab, words=query.split())
