"""Targets and losses of an extractor: where the answers to each question begin and end in a sentence."""

from itertools import pairwise
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Protocol, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.training import Example
from thinc.api import Model

from ..corpus.alignment import project, reference_spans, unclear_tokens, unknown_tokens
from ..errors import UnknownLabel
from ..losses import binary_cross_entropy, sigmoid
from ..ty import Array, Entity, SpanArray

STARTS, ENDS = 0, 1


class Boundaries(NamedTuple):
    """The target of a sentence.

    wanted (NDArray[numpy.bool_]): Shape (n_tokens, n_labels, 2): True where entities of each label start and end.
    known (NDArray[numpy.bool_]): Same shape: False for missing annotation.
    spans (SpanArray): Shape (n, 3): start, end and label of the entities.
    """

    wanted: NDArray[numpy.bool_]
    known: NDArray[numpy.bool_]
    spans: SpanArray


def read_boundaries(
    example: Example,
    label_ids: Dict[str, int],
    *,
    spans_key: Optional[str] = None,
    max_width: Optional[int] = None,
) -> Boundaries:
    """Read the target of an example.

    example (Example): Entities of its reference are projected onto the tokens of its predicted Doc. Tokens of entities
        that cannot be aligned are missing, as are those without annotation.
    label_ids (Dict[str, int]): Numbers of the labels, from 0 on.
    spans_key (Optional[str]): Span group to train on, which is complete if it exists; None: `doc.ents`.
    max_width (Optional[int]): Maximum number of tokens of an entity; the tokens of wider ones are missing.
    RETURNS (Boundaries): The target.
    RAISES (UnknownLabel): If a label is unknown; it is the argument of the error.
    """
    reference = example.reference
    entities = reference_spans(reference, spans_key)
    for span in entities:
        if span.label_ not in label_ids:
            raise UnknownLabel(span.label_)
    n = len(example.predicted)
    if spans_key is None:
        unknown = unknown_tokens(example)
    else:
        unknown = numpy.full(n, spans_key not in reference.spans)
    found = project(example, entities)
    # Tokens of an entity are annotated for every label, even if they are coarser than those of the reference.
    # Entities that are too wide to be learned are not negatives either.
    fitting = [entity for entity in found if max_width is None or entity[1] - entity[0] <= max_width]
    for start, end, _ in set(found) - set(fitting):
        unknown[start:end] = True
    for start, end, _ in fitting:
        unknown[start:end] = False
    unknown[unclear_tokens(example, entities)] = True
    target = mark(fitting, n, label_ids)
    known = ~unknown[:, None, None] | numpy.zeros_like(target)
    spans = sorted(
        ((start, end, label_ids[label]) for start, end, label in fitting), key=lambda entity: (entity[2], entity)
    )
    return Boundaries(target, known, numpy.asarray(spans, dtype="int64").reshape(-1, 3))


def mark(entities: Iterable[Entity], n_tokens: int, label_ids: Dict[str, int]) -> NDArray[numpy.bool_]:
    """Encode entities, which may overlap, as boundaries: shape (n_tokens, n_labels, 2)."""
    result = numpy.zeros((n_tokens, len(label_ids), 2), dtype=bool)
    for start, end, label in entities:
        result[start, label_ids[label], STARTS] = True
        result[end - 1, label_ids[label], ENDS] = True
    return result


def boundary_loss(scores: Array, target: Boundaries, positive_weight: float = 1.0) -> Tuple[float, Array]:
    """Compute the cross-entropy of starts and ends (Li et al. 2020; Xue et al. 2020, Equations 3 to 5): the mean over
    annotated tokens, summed over the questions.

    scores (Array): Shape (n_tokens, n_labels, 2): log-odds of a boundary.
    target (Boundaries): The target.
    positive_weight (float): Factor on the loss of positive boundaries, which are rare.
    RETURNS (Tuple[float, Array]): Loss of the sentence, and its gradient; 0 if no token is annotated.
    """
    weights = numpy.where(target.wanted, positive_weight, 1.0) * target.known
    n_tokens = target.known.any(axis=(1, 2)).sum()
    if not n_tokens:
        return 0.0, numpy.zeros(scores.shape)
    values, gradient = binary_cross_entropy(scores, target.wanted)
    return float((weights * values).sum() / n_tokens), weights * gradient / n_tokens


def probabilities(scores: Array, temperature: float = 1.0) -> Array:
    """Compute probabilities of boundaries from their log-odds, divided by the temperature; same shape, float64."""
    return sigmoid(numpy.asarray(scores, dtype="float64") / temperature)


# (n_tokens, n_labels, width) of each Doc.
Shapes = List[Tuple[int, ...]]


def as_rows(xp: Any, vectors: List[Any]) -> Any:
    """Concatenate the vectors of all Docs to one table, shape (sum of n_tokens * n_labels, width)."""
    return xp.concatenate([rows.reshape(-1, rows.shape[2]) for rows in vectors])


def split_table(rows: Any, shapes: Shapes) -> List[Any]:
    """Split such a table by Doc: (n_tokens, n_labels, width of the table) for each Doc."""
    borders = numpy.cumsum([0, *(n_tokens * n_labels for n_tokens, n_labels, _ in shapes)]).tolist()
    parts = [rows[low:high] for low, high in pairwise(borders)]
    return [part.reshape(*shape[:2], rows.shape[1]) for part, shape in zip(parts, shapes, strict=True)]


def score_boundaries(head: Model, vectors: List[Any]) -> List[Array]:
    """Score tokens as starts and ends: log-odds for each Doc, shape (n_tokens, n_labels, 2), on the host."""
    output = head.ops.to_numpy(head.predict(as_rows(head.ops.xp, vectors)))
    return split_table(output, [rows.shape for rows in vectors])


def boundaries_loss(
    head: Model, vectors: List[Any], targets: List[Boundaries], positive_weight: float
) -> Tuple[float, Callable[[], List[Any]]]:
    """Compute the loss of the boundaries.

    head (Model): The layers that score boundaries.
    vectors (List[Any]): (n_tokens, n_labels, width) for each Doc.
    targets (List[Boundaries]): The target of each Doc.
    positive_weight (float): See `boundary_loss`.
    RETURNS (Tuple[float, Callable]): Sum over sentences; and a callback that adds to the gradients of the layers, and
        returns those of the vectors.
    """
    ops: Any = head.ops
    shapes: Shapes = [rows.shape for rows in vectors]
    output, backprop = head.begin_update(as_rows(ops.xp, vectors))
    scores = split_table(ops.to_numpy(output), shapes)
    results = [boundary_loss(rows, to, positive_weight) for rows, to in zip(scores, targets, strict=True)]
    gradient = numpy.concatenate([rows.reshape(-1, 2) for _, rows in results]).astype("float32")
    return sum(loss for loss, _ in results), lambda: split_table(backprop(ops.asarray2f(gradient)), shapes)


@runtime_checkable
class Relabeler(Protocol):
    """A function that replaces the labels of sentences. If its attribute `at_start` is True, it is used from the first
    update on, with the initial model as the teacher; otherwise after the first renewal of the teacher.
    """

    def __call__(self, target: Boundaries, probabilities: Array) -> Boundaries:
        """Relabel a sentence.

        target (Boundaries): Its annotation.
        probabilities (Array): Shape (n_tokens, n_labels, 2): the teacher's probabilities of starts and ends.
        RETURNS (Boundaries): The new target.
        """
