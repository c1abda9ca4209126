"""What is known about the words of Docs."""

from typing import Any, NamedTuple, Sequence

import numpy
from numpy.typing import NDArray
from spacy.attrs import IS_PUNCT, IS_STOP, IS_TITLE, IS_UPPER, LENGTH, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..corpus.tags import BoolMask

KINDS = ("upper", "title", "digit", "punct", "stop", "short", "none")
_ATTRS = [ORTH, LENGTH, IS_UPPER, IS_TITLE, IS_PUNCT, IS_STOP]


class Words(NamedTuple):
    """The words of several Docs, which stand in one row, and after them what lies beyond the ends of a Doc.

    hashes (NDArray[numpy.uint64]): Shape (n_tokens + 1,): of their lower case.
    kinds (BoolMask): Shape (n_tokens + 1, len(KINDS)).
    """

    hashes: NDArray[numpy.uint64]
    kinds: BoolMask


def read_words(docs: Sequence[Doc]) -> Words:
    """Look at the words of some Docs.

    docs (Sequence[Doc]): The Docs.
    RETURNS (Words): What is known of them.
    """
    nothing = numpy.zeros((0, len(_ATTRS)), dtype="uint64")
    orths, lengths, upper, title, punct, stop = numpy.concatenate([nothing, *(doc.to_array(_ATTRS) for doc in docs)]).T
    unique, which = numpy.unique(orths, return_inverse=True)
    texts = [docs[0].vocab.strings[orth] for orth in unique.tolist()]
    hashes: Any = numpy.array([get_string_id(text.lower()) for text in texts], dtype="uint64")
    digit = numpy.array([any(map(str.isdigit, text)) for text in texts], dtype=bool)[which]
    columns = [(upper != 0) & (lengths > 1), title, digit, punct, stop, lengths < 3, numpy.zeros(len(orths))]
    kinds = numpy.stack(columns, axis=1) != 0
    beyond = numpy.array([[kind == "none" for kind in KINDS]])
    return Words(numpy.append(hashes[which], numpy.uint64(0)), numpy.concatenate([kinds, beyond]))
