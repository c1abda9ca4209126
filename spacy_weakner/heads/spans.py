"""Helpers of the heads that train on spans."""

import warnings
from collections import Counter
from itertools import islice
from typing import Callable, Iterable, List, Optional, Tuple

from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.alignment import reference_spans
from ..corpus.parts import Part
from ..errors import Warnings
from ..ty import Entity
from . import head


def merge_candidates(
    doc: Doc, parts: List[Part], candidates: List[List[Tuple[Entity, float]]]
) -> List[Tuple[Entity, float]]:
    """Map candidates of the parts of a Doc, with their probabilities, to the tokens of the Doc."""
    return [(part.entity(e), score) for part, found in zip(parts, candidates, strict=True) for e, score in found]


def warn_of_spans(
    name: str,
    get_examples: Callable[[], Iterable[Example]],
    key: Optional[str],
    max_width: Optional[int],
) -> None:
    """Warn if none of the first 10,000 examples has the span group to train on, and if spans in the examples are too
    wide to be predicted.

    name (str): Name of the component.
    get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
    key (Optional[str]): The span group; None: the entities.
    max_width (Optional[int]): Maximum number of tokens of a span.
    """
    found, widths = key is None, Counter[int]()
    for example in islice(get_examples(), head.SEARCHED):
        found = found or key in example.reference.spans
        widths.update(map(len, reference_spans(example.reference, key)))
    if not found:
        warnings.warn(Warnings.WK902.format(name=name, key=key), stacklevel=3)
    wide = 0 if max_width is None else sum(n for width, n in widths.items() if width > max_width)
    if wide:
        total, widest = sum(widths.values()), max(widths)
        message = Warnings.WK901.format(name=name, n=wide, total=total, max_width=max_width, widest=widest)
        warnings.warn(message, stacklevel=3)
