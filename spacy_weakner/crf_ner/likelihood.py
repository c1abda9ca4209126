"""The likelihood of tag sequences under a CRF, marginalised over missing tags: what the losses have in common.

    L = log Z - log Z(allowed)

where Z(allowed) sums over the tag sequences that agree with the annotation (Tsuboi et al. 2008). With a complete
annotation this is the negative log-likelihood. Its gradient is the marginals of all paths minus those of the allowed
ones.
"""

from typing import Any, Iterable, List, NamedTuple, Optional, Protocol, Sequence, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import get_array_module

from ..annotations.tags import MISSING, TagScheme
from ..errors import Errors, WeaknerError
from ..linear_chain.kernel import Array, Batch, CRFParameters, pad, path_scores
from ..linear_chain.scaled import expectations

Weights = NDArray[numpy.float64]


class Target(NamedTuple):
    """What a sentence is trained on.

    tags (NDArray[Any]): Shape (n_tokens,): tag ids, -1 where missing; tag 0 is "O". For losses that take soft labels
        perhaps shape (n_tokens, n_tags), rows that sum to 1.
    weight (float): How much the sentence counts; to `NoiseAwareCRF`, the probability that its tags are right.
    """

    tags: NDArray[Any]
    weight: float = 1.0


class CRFGradient(NamedTuple):
    """Value and gradient of a sequence loss.

    loss (float): Mean over the sentences that have tokens.
    emissions (List[Array]): Per sentence (n_tokens, n_tags), float32; the sum over sentences is differentiated.
    parameters (CRFParameters): Gradient of start, transitions and end.
    """

    loss: float
    emissions: List[Array]
    parameters: CRFParameters


@runtime_checkable
class SequenceLoss(Protocol):
    """A loss over tag sequences."""

    def labels(self, doc: Doc) -> Iterable[str]:
        """RETURNS (Iterable[str]): The entity labels in what the loss learns from of an annotated Doc."""

    def encode(self, example: Example, scheme: TagScheme) -> Target:
        """Read what the loss learns from off an example.

        example (Example): Its reference carries the annotation; the target is on the tokens of the predicted Doc.
        scheme (TagScheme): The tags of the component.
        RETURNS (Target): The target.
        RAISES (KeyError): With the label as argument, for an entity label that the scheme does not have.
        """

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[Target]) -> CRFGradient:
        """Compute the loss.

        parameters (CRFParameters): Scores of the CRF; -inf where a transition is forbidden.
        emissions (Sequence[Array]): Per sentence (n_tokens, n_tags); sentences without tokens are allowed.
        targets (Sequence[Target]): One per sentence.
        RETURNS (CRFGradient): Loss and gradient; zero for empty input and for sentences without any annotation.
        RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
        """


def sentence_losses(parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Array]) -> Weights:
    """log Z - log Z(allowed) of every sentence.

    parameters, emissions: See `SequenceLoss`.
    tags (Sequence[Array]): Per sentence (n_tokens,), -1 where missing.
    RETURNS (Weights): Shape (n_sentences,), at least 0; 0 for sentences without any annotation.
    RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
    """
    losses = numpy.zeros(len(tags))
    _marginal_gradient(parameters, emissions, tags, None, losses)
    return losses


def marginal_likelihood(
    parameters: CRFParameters,
    emissions: Sequence[Array],
    tags: Sequence[Array],
    weights: Optional[Weights] = None,
) -> CRFGradient:
    """log Z - log Z(allowed) with its gradient, each sentence times its weight.

    parameters, emissions: See `SequenceLoss`.
    tags (Sequence[Array]): Per sentence (n_tokens,), -1 where missing.
    weights (Optional[Weights]): Shape (n_sentences,); may be negative. None: all 1.
    RETURNS (CRFGradient): Loss and gradient.
    RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
    """
    losses = numpy.zeros(len(tags))
    gradient, counts = _marginal_gradient(parameters, emissions, tags, weights, losses)
    total = losses.sum() if weights is None else losses @ weights
    return CRFGradient(float(total) / max(1, count_sentences(emissions)), gradient, counts)


def count_sentences(emissions: Sequence[Array]) -> int:
    """How many sentences have tokens: what the mean is taken over."""
    return sum(len(e) > 0 for e in emissions)


def zero(parameters: CRFParameters, emissions: Sequence[Array]) -> CRFGradient:
    """The loss and gradient of a batch that teaches nothing."""
    zeros = [get_array_module(e).zeros(e.shape, dtype="float32") for e in emissions]
    return CRFGradient(0.0, zeros, CRFParameters(*(get_array_module(p).zeros_like(p) for p in parameters)))


def add(a: CRFGradient, b: CRFGradient) -> CRFGradient:
    """The sum of two losses of the same batch."""
    emissions = [x + y for x, y in zip(a.emissions, b.emissions, strict=True)]
    parameters = CRFParameters(*(x + y for x, y in zip(a.parameters, b.parameters, strict=True)))
    return CRFGradient(a.loss + b.loss, emissions, parameters)


def unpad(batch: Batch, padded: Array, emissions: Sequence[Array], used: Sequence[int]) -> List[Array]:
    """Split a padded gradient by sentence: float32, and zeros for sentences that took no part.

    batch (Batch): The sentences that took part.
    padded (Array): Shape of its emissions.
    emissions (Sequence[Array]): All sentences.
    used (Sequence[int]): Which of them took part.
    RETURNS (List[Array]): Shapes of `emissions`.
    """
    result: List[Array] = [None] * len(emissions)
    for i, gradient in zip(used, batch.unpad(padded.astype("float32")), strict=True):
        result[i] = gradient
    xp = get_array_module(padded)
    return [xp.zeros(e.shape, dtype="float32") if g is None else g for e, g in zip(emissions, result, strict=True)]


def check_possible(log_z: Array, batch: Batch, used: Sequence[int]) -> None:
    """Refuse sentences whose annotation no path agrees with.

    log_z (Array): Shape (n_rows,): log-sum of the agreeing paths.
    batch (Batch): The sentences that took part.
    used (Sequence[int]): Which of all sentences they are.
    RAISES (WeaknerError): If one of them is -inf.
    """
    impossible = numpy.flatnonzero(to_numpy(log_z == -numpy.inf))
    if len(impossible):
        raise WeaknerError(Errors.WK007.format(index=used[batch.order[impossible].min()]))


def to_numpy(x: Array) -> numpy.ndarray:
    """An array on the host."""
    on_host: numpy.ndarray = x if isinstance(x, numpy.ndarray) else x.get()
    return on_host


def _marginal_gradient(
    parameters: CRFParameters,
    emissions: Sequence[Array],
    tags: Sequence[Array],
    weights: Optional[Weights],
    losses: Weights,
) -> Any:
    # Writes the unweighted losses, and returns the gradient of their weighted sum.
    used = _annotated(tags)
    if not used:
        # Nothing is known: every path is allowed and the loss is zero.
        nothing = zero(parameters, emissions)
        return nothing.emissions, nothing.parameters
    batch = pad([emissions[i] for i in used])
    xp = get_array_module(batch.emissions)
    by_row = numpy.ones(len(used)) if weights is None else weights[used][batch.order]
    log_z, gradient, counts = expectations(parameters, batch, None if weights is None else by_row)
    padded = batch.pad_like([tags[i] for i in used], 0, "int64")
    # Complete rows need the score of one path, rows with holes a second lattice.
    holes = to_numpy((padded == MISSING).any(0))
    agreeing = path_scores(parameters, batch, xp.maximum(padded, 0))
    own_counts = [_subtract_paths(gradient, batch, padded, numpy.where(holes, 0.0, by_row))]
    if holes.any():
        rows = numpy.flatnonzero(holes)
        allowed = batch.select(rows)
        wanted = padded[: len(allowed.emissions), rows, None]
        allowed = allowed.restrict((wanted == MISSING) | (wanted == xp.arange(gradient.shape[2])))
        found = expectations(parameters, allowed, None if weights is None else by_row[rows])
        agreeing[rows] = found.log_z
        gradient[: len(found.tokens), rows] -= found.tokens
        own_counts.append(found.counts)
    for own in own_counts:
        counts = CRFParameters(*(a - b for a, b in zip(counts, own, strict=True)))
    check_possible(agreeing, batch, used)
    losses[numpy.asarray(used)[batch.order]] = numpy.maximum(0.0, to_numpy(log_z - agreeing))
    return unpad(batch, gradient, emissions, used), counts


def _annotated(tags: Sequence[Array]) -> List[int]:
    # Sentences that have any annotation.
    if not tags:
        return []
    owners = numpy.repeat(numpy.arange(len(tags)), [len(t) for t in tags])
    known: List[int] = numpy.flatnonzero(numpy.bincount(owners[numpy.concatenate(tags) != MISSING])).tolist()
    return known


def _subtract_paths(gradient: Array, batch: Batch, tags: Array, weights: Weights) -> CRFParameters:
    """Subtract the weight of each row from the gradient at its tags, and count the parameters that they use."""
    xp = get_array_module(gradient)
    n_rows, n_tags = gradient.shape[1:]
    by_row = xp.asarray(weights)
    steps, rows = xp.nonzero(xp.asarray(batch.mask()) & (by_row != 0.0))
    gradient[steps, rows, tags[steps, rows]] -= by_row[rows]
    last = tags[xp.asarray(batch.lengths) - 1, xp.arange(n_rows)]
    goes_on = steps > 0
    steps, rows = steps[goes_on], rows[goes_on]
    moves = tags[steps - 1, rows] * n_tags + tags[steps, rows]
    # Tags of incomplete rows may be -1; their weight is 0.
    start, end = (xp.bincount(xp.maximum(own, 0), by_row, n_tags) for own in (tags[0], last))
    transitions = xp.bincount(moves, by_row[rows], n_tags * n_tags).reshape(n_tags, n_tags)
    return CRFParameters(start, transitions, end)
