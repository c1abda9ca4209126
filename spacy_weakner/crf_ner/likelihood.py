"""The likelihood of tag sequences under a CRF, marginalized over missing tags, which is common to the losses.

    L = log Z - log Z(allowed)

where Z(allowed) sums over the tag sequences that agree with the annotation (Tsuboi et al. 2008). For a complete
annotation, this is the negative log-likelihood. Its gradient is the marginals of all paths minus those of the allowed
paths.
"""

from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Protocol, Sequence, Tuple, runtime_checkable

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, TagScheme
from ..crf.kernel import CRFParameters, PaddedBatch, Paths, pad_emissions
from ..crf.scaled import partition
from ..errors import Errors, WeaknerError
from ..ty import Array

Weights = NDArray[numpy.float64]
# Gradients of emissions, (n_tokens, n_tags) for each sentence, and of parameters.
Gradient = Tuple[List[Array], CRFParameters]
# A loss per sentence, and a callback from a weight per sentence (None: all 1) to the gradient of the weighted sum.
SentenceLosses = Tuple[Weights, Callable[[Optional[Weights]], Gradient]]


class CRFTarget(NamedTuple):
    """The target of a sentence.

    tags (NDArray[Any]): Shape (n_tokens,): tag ids, -1 if missing; tag 0 is "O". For losses that support soft labels
        also shape (n_tokens, n_tags), with rows that sum to 1.
    weight (float): Weight of the sentence; for `NoiseAwareCRF`, the probability that its tags are right.
    """

    tags: NDArray[Any]
    weight: float = 1.0


class CRFGradient(NamedTuple):
    """Value and gradient of a sequence loss.

    loss (float): Mean over the sentences that have tokens.
    emissions (List[Array]): Gradient of the sum over sentences: (n_tokens, n_tags) for each sentence, float32.
    parameters (CRFParameters): Gradient of start, transitions and end.
    """

    loss: float
    emissions: List[Array]
    parameters: CRFParameters


@runtime_checkable
class SequenceLoss(Protocol):
    """A loss over tag sequences."""

    def labels(self, doc: Doc) -> Iterable[str]:
        """RETURNS (Iterable[str]): The entity labels in the annotation of a Doc that the loss uses."""

    def encode(self, example: Example, scheme: TagScheme) -> CRFTarget:
        """Read the target of an example.

        example (Example): Its reference has the annotation; the target is aligned to the tokens of the predicted Doc.
        scheme (TagScheme): The tags of the component.
        RETURNS (CRFTarget): The target.
        RAISES (UnknownLabel): If the scheme lacks an entity label, which is the argument of the error.
        """

    def __call__(
        self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[CRFTarget]
    ) -> CRFGradient:
        """Compute the loss.

        parameters (CRFParameters): Scores of the CRF; -inf where a transition is forbidden.
        emissions (Sequence[Array]): (n_tokens, n_tags) for each sentence; sentences without tokens are allowed.
        targets (Sequence[CRFTarget]): One target per sentence.
        RETURNS (CRFGradient): Loss and gradient; zero for empty input and for sentences without any annotation.
        RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
        """


def sentence_losses(parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Array]) -> SentenceLosses:
    """Compute log Z - log Z(allowed) of every sentence.

    parameters, emissions: See `SequenceLoss`.
    tags (Sequence[Array]): (n_tokens,) for each sentence, -1 if missing.
    RETURNS (SentenceLosses): Losses, shape (n_sentences,), 0 for sentences without any annotation; and a callback that
        returns the gradient.
    RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
    """
    losses = numpy.zeros(len(tags))
    used = [i for i, sentence in enumerate(tags) if len(sentence)]
    holes: Any = ()
    if used:
        batch = pad_emissions([emissions[i] for i in used])
        padded = batch.pad_like([tags[i] for i in used], 0, "int64")
        if MISSING in padded:
            used, batch, padded = _annotated(used, batch, padded)
            holes = numpy.flatnonzero((padded == MISSING).any(0))
    if not used:
        return losses, lambda weights: zero(parameters, emissions)[1:]
    log_z, marginals = partition(parameters, batch)
    # Complete rows need the score of one path, rows with missing tags a second lattice.
    paths = Paths(batch, numpy.maximum(padded, 0) if len(holes) else padded)
    agreeing = paths.scores(parameters)
    if len(holes):
        allowed = batch.select(holes)
        wanted = padded[: len(allowed.emissions), holes, None]
        allowed = allowed.restrict((wanted == MISSING) | (wanted == numpy.arange(len(parameters.start))))
        agreeing[holes], marginals_of_holes = partition(parameters, allowed)
    check_possible(agreeing, batch, used)
    losses[numpy.asarray(used)[batch.order]] = numpy.maximum(0.0, log_z - agreeing)

    def backprop(weights: Optional[Weights]) -> Gradient:
        by_row = None if weights is None else weights[used][batch.order]
        by_path = by_row
        if len(holes):
            by_path = numpy.ones(len(used)) if by_row is None else by_row.copy()
            by_path[holes] = 0.0
        gradient, counts = paths.subtract(marginals(by_row), by_path)
        if len(holes):
            of_holes, own_counts = marginals_of_holes(None if by_row is None else by_row[holes])
            gradient[: len(of_holes), holes] -= of_holes
            counts = counts.minus(own_counts)
        return unpad(batch, gradient, emissions, used), counts

    return losses, backprop


def marginal_likelihood(
    parameters: CRFParameters,
    emissions: Sequence[Array],
    tags: Sequence[Array],
    weights: Optional[Weights] = None,
) -> CRFGradient:
    """Compute log Z - log Z(allowed) with its gradient, each sentence multiplied by its weight.

    parameters, emissions, tags: See `sentence_losses`.
    weights (Optional[Weights]): Shape (n_sentences,); may be negative. None: all 1.
    RETURNS (CRFGradient): Loss and gradient.
    RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
    """
    losses, backprop = sentence_losses(parameters, emissions, tags)
    total = losses.sum() if weights is None else losses @ weights
    return CRFGradient(float(total) / max(1, n_with_tokens(emissions)), *backprop(weights))


def n_with_tokens(emissions: Sequence[Array]) -> int:
    """Count the sentences that have tokens, over which the mean is taken."""
    return len([scores for scores in emissions if len(scores)])


def zero(parameters: CRFParameters, emissions: Sequence[Array]) -> CRFGradient:
    """Return a loss and gradient of zero."""
    zeros = [numpy.zeros(e.shape, dtype="float32") for e in emissions]
    return CRFGradient(0.0, zeros, CRFParameters(*map(numpy.zeros_like, parameters)))


def add(a: CRFGradient, b: CRFGradient) -> CRFGradient:
    """Add two losses of the same batch."""
    emissions = [x + y for x, y in zip(a.emissions, b.emissions, strict=True)]
    parameters = CRFParameters(*(x + y for x, y in zip(a.parameters, b.parameters, strict=True)))
    return CRFGradient(a.loss + b.loss, emissions, parameters)


def unpad(batch: PaddedBatch, padded: Array, emissions: Sequence[Array], used: Sequence[int]) -> List[Array]:
    """Split a padded gradient by sentence: float32, shapes of `emissions`, zeros for sentences not in `used`."""
    result = batch.unpad(padded.astype("float32"))
    if len(used) == len(emissions):
        return result
    gradients = dict(zip(used, result, strict=True))
    return [
        gradients[i] if i in gradients else numpy.zeros(scores.shape, dtype="float32")
        for i, scores in enumerate(emissions)
    ]


def check_possible(log_z: Array, batch: PaddedBatch, used: Sequence[int]) -> None:
    """Raise an error if no path agrees with a sentence: `log_z` of its agreeing paths, shape (n_rows,), is -inf."""
    if -numpy.inf in log_z:
        impossible = numpy.flatnonzero(log_z == -numpy.inf)
        raise WeaknerError(Errors.WK007.format(index=min(used[i] for i in batch.order[impossible])))


def _annotated(used: List[int], batch: PaddedBatch, tags: Array) -> Tuple[List[int], PaddedBatch, Array]:
    # Leave out sentences without annotation: every path is allowed, and the loss is zero.
    rows = numpy.flatnonzero((batch.mask & (tags != MISSING)).any(0))
    if len(rows) == len(used):
        return used, batch, tags
    used = [used[i] for i in batch.order[rows]]
    if used:
        batch = batch.select(rows)
    return used, batch, tags[: len(batch.emissions), rows]
