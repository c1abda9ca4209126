"""What stands in a Doc before a component writes entities there."""

from typing import List

import numpy
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span

from .tags import BoolMask

# Value of ENT_IOB.
BEGINS = 3


def preset_tokens(doc: Doc) -> BoolMask:
    """Tokens of entities that stand in a Doc already, and blocked ones.

    doc (Doc): The Doc.
    RETURNS (BoolMask): Shape (n_tokens,).
    """
    annotation = doc.to_array([ENT_IOB, ENT_TYPE])
    preset: BoolMask = (annotation[:, 1] != 0) | (annotation[:, 0] == BEGINS)
    return preset


def blocked_tokens(doc: Doc) -> List[Span]:
    """Tokens that must not be part of any entity: they begin one without a type.

    doc (Doc): The Doc.
    RETURNS (List[Span]): Each as a span, as `doc.set_ents` takes them.
    """
    annotation = doc.to_array([ENT_IOB, ENT_TYPE])
    found = numpy.flatnonzero((annotation[:, 0] == BEGINS) & (annotation[:, 1] == 0)).tolist()
    return [doc[i : i + 1] for i in found]
