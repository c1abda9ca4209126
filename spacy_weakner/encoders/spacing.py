"""Tokens as the tokenizers of Transformers want them."""

from spacy.tokens import Doc


def spaced(doc: Doc, i: int) -> str:
    """A token with the space before it, which byte-level tokenizers tell words by.

    doc (Doc): The Doc.
    i (int): The token.
    RETURNS (str): Its text; with a space in front if it begins the Doc, or follows white space.
    """
    attached = i > 0 and not doc[i - 1].whitespace_ and not doc[i - 1].is_space
    return doc[i].text if attached else f" {doc[i].text}"
