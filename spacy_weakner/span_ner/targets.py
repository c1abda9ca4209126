"""Reads the targets of a sentence's spans from its annotation."""

from itertools import pairwise
from typing import Dict, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.alignment import project, reference_spans, span_group, unclear_tokens
from ..errors import Errors, UnknownLabel, WeaknerError
from ..ty import SpanArray

LabelIds = NDArray[numpy.int64]


class SpanTarget(NamedTuple):
    """The target of a sentence. Label 0 is "O".

    n_tokens (int): Length of the sentence.
    annotated (bool): True if entities are annotated; if not, only wrong spans are used.
    spans (SpanArray): Shape (n, 2): annotated entities.
    labels (LabelIds): Shape (n,): their labels.
    wrong_spans (SpanArray): Shape (m, 2): spans that are known not to have a label.
    wrong_labels (LabelIds): Shape (m,): this label; 0: the span is not an entity.
    unclear (LabelIds): Tokens of entities that cannot be aligned to the predicted Doc; spans with them are not sampled.
    doc (Doc): The predicted Doc, for the oracle.
    """

    n_tokens: int
    annotated: bool
    spans: SpanArray
    labels: LabelIds
    wrong_spans: SpanArray
    wrong_labels: LabelIds
    unclear: LabelIds
    doc: Doc


def read_target(
    example: Example,
    label_ids: Dict[str, int],
    annotated: bool,
    *,
    spans_key: Optional[str] = None,
    incorrect_spans_key: Optional[str] = None,
    max_width: Optional[int] = None,
) -> SpanTarget:
    """Read the target of an example.

    example (Example): Spans of its reference are projected onto the tokens of its predicted Doc; those that cannot be
        aligned, or are too wide, are not used.
    label_ids (Dict[str, int]): Numbers of the labels, from 1 on.
    annotated (bool): True if the reference is annotated with entities.
    spans_key (Optional[str]): Span group to train on; None: `doc.ents`.
    incorrect_spans_key (Optional[str]): Span group of wrong spans; those without a label are not entities.
    max_width (Optional[int]): Maximum width of the spans that are classified.
    RETURNS (SpanTarget): The target.
    RAISES (UnknownLabel): If an entity has an unknown label, which is the argument of the error.
    RAISES (WeaknerError): If a span has several labels.
    """
    reference = example.reference
    entities = reference_spans(reference, spans_key)
    found = project(example, entities, max_width)
    for one, other in pairwise(found):
        if one[:2] == other[:2]:
            several = ", ".join(label for start, end, label in found if (start, end) == one[:2])
            text = example.predicted[one[0] : one[1]].text
            raise WeaknerError(Errors.WK026.format(key=spans_key, text=text, labels=several))
    for _, _, label in found:
        if label not in label_ids:
            raise UnknownLabel(label)
    wrong = project(example, span_group(reference, incorrect_spans_key), max_width)
    # Wrong spans with labels that the component does not have carry no information.
    wrong = [(start, end, label) for start, end, label in wrong if not label or label in label_ids]
    # Entities that are known to be wrong are not targets.
    refuted = {*wrong, *((start, end, label) for start, end, none in wrong if not none for label in label_ids)}
    found = [entity for entity in found if entity not in refuted]
    spans = [(start, end) for start, end, _ in found]
    labels = [label_ids[label] for _, _, label in found]
    return SpanTarget(
        n_tokens=len(example.predicted),
        annotated=annotated,
        spans=_array(spans),
        labels=numpy.asarray(labels, dtype="int64"),
        wrong_spans=_array([(start, end) for start, end, _ in wrong]),
        wrong_labels=numpy.asarray([label_ids.get(label, 0) for _, _, label in wrong], dtype="int64"),
        unclear=unclear_tokens(example, entities),
        doc=example.predicted,
    )


def _array(spans: Sequence[Tuple[int, int]]) -> SpanArray:
    return numpy.asarray(spans, dtype="int64").reshape(-1, 2)
