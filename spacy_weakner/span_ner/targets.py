"""What the annotation of a sentence says about its spans."""

from itertools import pairwise
from typing import Dict, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.alignment import project, reference_spans, span_group, unclear_tokens
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
    doc (Doc): The predicted Doc, for the oracle.
    """

    n_tokens: int
    annotated: bool
    spans: Spans
    labels: Labels
    wrong_spans: Spans
    wrong_labels: Labels
    unclear: Labels
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
    entities = reference_spans(reference, spans_key)
    found = project(example, entities, max_width)
    for one, other in pairwise(found):
        if one[:2] == other[:2]:
            several = ", ".join(label for start, end, label in found if (start, end) == one[:2])
            text = example.predicted[one[0] : one[1]].text
            raise WeaknerError(Errors.WK026.format(key=spans_key, text=text, labels=several))
    for _, _, label in found:
        label_ids[label]  # all must be known
    wrong = project(example, span_group(reference, incorrect_spans_key), max_width)
    # That a span is not of a label which the component does not know is no news.
    wrong = [(start, end, label) for start, end, label in wrong if not label or label in label_ids]
    # What is known to be wrong is not learned as right.
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


def _array(spans: Sequence[Tuple[int, int]]) -> Spans:
    return numpy.asarray(spans, dtype="int64").reshape(-1, 2)
