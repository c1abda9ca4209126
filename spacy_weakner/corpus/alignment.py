"""Alignment of a reference's spans with the tokens of the predicted Doc."""

from typing import Any, Iterable, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB
from spacy.tokens import Span
from spacy.training import Example

from ..ty import BoolMask, Entity
from .tags import same_tokens
from .weak import copy_group, select_attrs, set_spans, weak_group


def span_group(reference: Any, key: Optional[str]) -> Iterable[Span]:
    """Return the spans of a group, or none if the Doc does not have it."""
    return reference.spans[key] if key is not None and key in reference.spans else []


def reference_spans(reference: Any, key: Optional[str]) -> Iterable[Span]:
    """Return the spans to learn from: the entities of the reference, or the spans of a group."""
    return reference.ents if key is None else span_group(reference, key)


def project(example: Example, spans: Iterable[Span], max_width: Optional[int] = None) -> List[Entity]:
    """Return spans of the reference as entities on the tokens of the predicted Doc."""
    given = list(spans)
    if not given:
        return []
    is_same = same_tokens(example.predicted, example.reference)  # then nothing needs alignment, which is slow
    found = given if is_same else example.get_aligned_spans_y2x(given, allow_overlap=True)
    entities = {(span.start, span.end, span.label_) for span in found}
    return sorted(entity for entity in entities if max_width is None or entity[1] - entity[0] <= max_width)


def unclear_tokens(example: Example, spans: Iterable[Span]) -> NDArray[numpy.int64]:
    """Return the tokens of the predicted Doc that belong to spans which do not align with its tokens."""
    given = list(spans)
    is_same = not given or same_tokens(example.predicted, example.reference)
    if is_same or len(example.get_aligned_spans_y2x(given, allow_overlap=True)) == len(given):
        return numpy.zeros(0, dtype="int64")
    lost = [span for span in given if not example.get_aligned_spans_y2x([span], allow_overlap=True)]
    tokens = {int(i) for span in lost for i in example.alignment.y2x[span.start : span.end]}
    return numpy.asarray(sorted(tokens), dtype="int64")


def unknown_tokens(example: Example) -> BoolMask:
    """Return a mask of the tokens of the predicted Doc whose entity annotation is missing."""
    if same_tokens(example.predicted, example.reference):
        missing: BoolMask = example.reference.to_array([ENT_IOB]) == 0
        return missing
    iob: Tuple[Any, ...] = tuple(example.get_aligned("ENT_IOB"))
    return numpy.asarray([value is None or value == 0 for value in iob], dtype=bool)


def copy_sources(example: Example, sources: Sequence[str]) -> None:
    """Copy the span groups of sources from the reference to the predicted Doc, unless it has them. If the tokens
    differ, only the matches that align are copied."""
    reference, predicted = example.reference, example.predicted
    for name in map(weak_group, sources):
        if name not in reference.spans or name in predicted.spans:
            continue
        if same_tokens(predicted, reference):
            copy_group(reference, predicted, name)
            continue
        spans = list(reference.spans[name])
        rows = [(i, entity) for i, span in enumerate(spans) for entity in project(example, [span])]
        attrs = select_attrs(reference.spans[name], [i for i, _ in rows])
        set_spans(predicted, name, [Span(predicted, *entity, kb_id=spans[i].kb_id_) for i, entity in rows], attrs)
