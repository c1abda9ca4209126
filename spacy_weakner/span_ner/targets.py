"""What the annotation of a sentence says about its spans."""

from itertools import groupby
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Span
from spacy.training import Example

from ..annotations.weak import GOLD_GROUP
from ..errors import Errors, WeaknerError
from .candidates import Spans

Labels = NDArray[numpy.int64]


class SpanTarget(NamedTuple):
    """What a sentence is trained on. Label 0 is "O".

    n_tokens (int): Its length.
    annotated (bool): Whether anything is known of its entities; if not, only wrong spans teach anything.
    spans (Spans): Shape (n, 2): annotated entities.
    labels (Labels): Shape (n,): their labels.
    wrong_spans (Spans): Shape (m, 2): spans that are known not to be of a label.
    wrong_labels (Labels): Shape (m,): that label; 0: they are no entity at all.
    unclear (Labels): Tokens of entities that do not align with the predicted Doc's: no span with them is a negative.
    hidden (Spans): Shape (h, 2): entities that are known, but hidden from the training: counted where they are sampled.
    """

    n_tokens: int
    annotated: bool
    spans: Spans
    labels: Labels
    wrong_spans: Spans
    wrong_labels: Labels
    unclear: Labels
    hidden: Spans


def read_target(
    example: Example,
    label_ids: Dict[str, int],
    annotated: bool,
    *,
    spans_key: Optional[str] = None,
    incorrect_spans_key: Optional[str] = None,
    max_width: Optional[int] = None,
) -> SpanTarget:
    """Read a target off an example.

    example (Example): Spans of its reference are projected onto the tokens of its predicted Doc; those that do not
        align, or are too wide, take no part.
    label_ids (Dict[str, int]): From 1 on.
    annotated (bool): Whether the reference says anything on entities.
    spans_key (Optional[str]): Span group to learn from; None: `doc.ents`.
    incorrect_spans_key (Optional[str]): Span group of spans that are wrong; without a label they are no entity.
    max_width (Optional[int]): Width of the spans that are classified, at most.
    RETURNS (SpanTarget): The target.
    RAISES (KeyError): With the label as argument, for an unknown label of an entity.
    RAISES (WeaknerError): If a span has several labels.
    """
    reference = example.reference
    entities = reference.ents if spans_key is None else reference.spans.get(spans_key, [])
    found = _project(example, entities, max_width)
    _check_labels(example, spans_key, found)
    for _, _, label in found:
        label_ids[label]  # all must be known
    wrong = _project(example, _group(reference, incorrect_spans_key), max_width)
    # That a span is not of a label which the component does not know is no news.
    wrong = [(start, end, label) for start, end, label in wrong if not label or label in label_ids]
    # What is known to be wrong is not learned as right.
    refuted = {*wrong, *((start, end, label) for start, end, none in wrong if not none for label in label_ids)}
    found = [entity for entity in found if entity not in refuted]
    spans = [(start, end) for start, end, _ in found]
    labels = [label_ids[label] for _, _, label in found]
    known = {*spans}
    hidden = {(s, e) for s, e, _ in _project(example, _group(reference, GOLD_GROUP), max_width)} - known
    return SpanTarget(
        n_tokens=len(example.predicted),
        annotated=annotated,
        spans=_array(spans),
        labels=numpy.asarray(labels, dtype="int64"),
        wrong_spans=_array([(start, end) for start, end, _ in wrong]),
        wrong_labels=numpy.asarray([label_ids.get(label, 0) for _, _, label in wrong], dtype="int64"),
        unclear=_unclear(example, entities),
        hidden=_array(sorted(hidden)),
    )


def _group(reference: Any, key: Optional[str]) -> Iterable[Span]:
    return reference.spans[key] if key is not None and key in reference.spans else []


def _project(example: Example, spans: Iterable[Span], max_width: Optional[int]) -> List[Tuple[int, int, str]]:
    given = list(spans)
    if not given:
        return []
    found = example.get_aligned_spans_y2x(given, allow_overlap=True)
    entities = {(span.start, span.end, span.label_) for span in found}
    return sorted(entity for entity in entities if max_width is None or entity[1] - entity[0] <= max_width)


def _unclear(example: Example, spans: Iterable[Span]) -> Labels:
    given = list(spans)
    if not given or len(example.get_aligned_spans_y2x(given, allow_overlap=True)) == len(given):
        return numpy.zeros(0, dtype="int64")
    lost = [span for span in given if not example.get_aligned_spans_y2x([span], allow_overlap=True)]
    tokens = {int(i) for span in lost for i in example.alignment.y2x[span.start : span.end]}
    return numpy.asarray(sorted(tokens), dtype="int64")


def _check_labels(example: Example, key: Optional[str], entities: List[Tuple[int, int, str]]) -> None:
    for (start, end), group in groupby(entities, key=lambda entity: entity[:2]):
        labels = [label for _, _, label in group]
        if len(labels) > 1:
            text = example.predicted[start:end].text
            raise WeaknerError(Errors.WK026.format(key=key, text=text, labels=", ".join(labels)))


def _array(spans: Sequence[Tuple[int, int]]) -> Spans:
    return numpy.asarray(spans, dtype="int64").reshape(-1, 2)
