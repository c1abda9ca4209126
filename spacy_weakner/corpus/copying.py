"""Docs of the tokens of other Docs."""

from typing import Any, List, Sequence

from spacy.tokens import Doc
from spacy.vocab import Vocab


def make_doc(vocab: Vocab, words: Any, spaces: List[bool], attrs: Sequence[int], values: Any) -> Doc:
    """Make a Doc of words, and set attributes of its tokens.

    vocab (Vocab): Its vocabulary.
    words (Any): The words, or their hashes: a list.
    spaces (List[bool]): Which of them a blank follows.
    attrs (Sequence[int]): Attributes of tokens.
    values (Any): Shape (n_tokens, n_attrs): their values. Attributes that no token has are left alone.
    RETURNS (Doc): The Doc.
    """
    doc = Doc(vocab, words=words, spaces=spaces)
    used = [i for i in range(len(attrs)) if values[:, i].any()]
    if used:
        doc.from_array([attrs[i] for i in used], values[:, used])
    return doc
