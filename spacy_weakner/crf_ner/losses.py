"""Losses over tag sequences. Missing tags are marginalised: a missing tag may be any tag.

    L = log Z - log Z(allowed)

where Z(allowed) sums over the tag sequences that agree with the annotation (Tsuboi et al. 2008). With a complete
annotation this is the negative log-likelihood. The gradient is the marginals of all paths minus those of the allowed
ones; it is the sum over sentences, so that splitting a batch changes nothing. The reported value is the mean.
"""

import math
from dataclasses import dataclass
from typing import Any, List, NamedTuple, Optional, Protocol, Sequence

import numpy
from numpy.typing import NDArray
from thinc.api import get_array_module

from ..annotations.tags import MISSING, IntTags
from ..errors import Errors, WeaknerError
from ..linear_chain.kernel import Array, Batch, CRFParameters, pad, path_scores
from ..linear_chain.scaled import expectations


class CRFGradient(NamedTuple):
    """Value and gradient of a sequence loss.

    loss (float): Mean over the sentences that have tokens.
    emissions (List[Array]): Per sentence (n_tokens, n_tags), float32; the sum over sentences is differentiated.
    parameters (CRFParameters): Gradient of start, transitions and end.
    """

    loss: float
    emissions: List[Array]
    parameters: CRFParameters


# Tag ids (n_tokens,), or soft labels (n_tokens, n_tags).
Target = NDArray[Any]


class SequenceLoss(Protocol):
    @property
    def soft(self) -> bool:
        """RETURNS (bool): Whether `tags` may be soft labels, shape (n_tokens, n_tags), whose rows sum to 1."""

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Target]) -> CRFGradient:
        """Compute a loss.

        parameters (CRFParameters): Scores of the CRF; -inf where a transition is forbidden.
        emissions (Sequence[Array]): Per sentence (n_tokens, n_tags); sentences without tokens are allowed.
        tags (Sequence[Target]): Per sentence (n_tokens,): gold tag ids, -1 where missing. Tag 0 is "O". If the loss is
            `soft`, perhaps soft labels instead.
        RETURNS (CRFGradient): Loss and gradient; zero for empty input and for sentences without any annotation.
        RAISES (WeaknerError): If the constraints allow no path that agrees with the annotation.
        """


@dataclass(frozen=True)
class CRFNegativeLogLikelihood:
    """Negative log-likelihood of a linear-chain CRF (Lafferty et al. 2001), marginalised over missing tags."""

    soft = False

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Target]) -> CRFGradient:
        return _marginal_likelihood(parameters, emissions, tags)


@dataclass(frozen=True)
class PartialCRF:
    """Marginalised CRF likelihood for annotations with holes.

    A model that sees no "O" at all learns that everything is an entity. Two remedies, separately or together:

    negative_rate (float): Share of the missing tags that are taken as "O", drawn anew in every update (a CRF form
        of negative sampling, Li et al. 2021). 0 is the pure marginal likelihood, 1 reads all that is missing as "O".
    entity_ratio (Optional[float]): Expected share of tokens inside entities (Effland and Collins 2021). If given,
        `entity_ratio_weight * max(0, |expected share under the model - entity_ratio| - entity_ratio_margin)` is added
        to the mean loss; it is a statistic of the batch.
    """

    soft = False

    negative_rate: float = 0.2
    entity_ratio: Optional[float] = None
    entity_ratio_margin: float = 0.05
    entity_ratio_weight: float = 10.0

    def __post_init__(self) -> None:
        _check_range("negative_rate", self.negative_rate, 0.0, 1.0)
        if self.entity_ratio is not None:
            _check_range("entity_ratio", self.entity_ratio, 0.0, 1.0)
        _check_range("entity_ratio_margin", self.entity_ratio_margin, 0.0, 1.0)
        _check_range("entity_ratio_weight", self.entity_ratio_weight, 0.0, None)

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Target]) -> CRFGradient:
        result = _marginal_likelihood(parameters, emissions, [self._sample_negatives(t) for t in tags])
        if self.entity_ratio is not None and any(len(e) for e in emissions):
            result = _add(result, self._ratio_penalty(parameters, emissions))
        return result

    def _sample_negatives(self, tags: IntTags) -> IntTags:
        missing = tags == MISSING
        if self.negative_rate == 0.0 or not missing.any():
            return tags
        # numpy's global generator is the one that spaCy seeds with [training] seed.
        drawn = numpy.random.uniform(size=len(tags)) < self.negative_rate
        return numpy.where(missing & drawn, 0, tags)

    def _ratio_penalty(self, parameters: CRFParameters, emissions: Sequence[Array]) -> CRFGradient:
        used = [i for i, e in enumerate(emissions) if len(e)]
        batch = pad([emissions[i] for i in used])
        n_tokens = int(batch.lengths.sum())
        expected = expectations(parameters, batch)
        deviation = float(expected.tokens[:, :, 1:].sum()) / n_tokens - float(self.entity_ratio or 0.0)
        excess = abs(deviation) - self.entity_ratio_margin
        if excess <= 0.0:
            return _zero(parameters, emissions)
        # The expected number of entity tokens is the derivative of log Z along u, the direction that raises all
        # tags but "O"; so its gradient is the derivative of the marginals along u (Pearlmutter 1994), taken by
        # central differences in float64.
        step = 1e-4
        above, below = (expectations(parameters, _raise_entities(batch, sign * step)) for sign in (1, -1))
        # Times the number of sentences, since the other gradient is a sum over them.
        scale = math.copysign(self.entity_ratio_weight, deviation) * len(used) / n_tokens / (2 * step)
        gradient = _unpad(batch, (above.tokens - below.tokens) * scale, emissions, used)
        parts = CRFParameters(*((a - b) * scale for a, b in zip(above.counts, below.counts, strict=True)))
        return CRFGradient(self.entity_ratio_weight * excess, gradient, parts)


@dataclass(frozen=True)
class SoftLabelCRF:
    """Divergence of the CRF from soft labels, for labels that are themselves probabilities.

        L = KL(q || p) = log Z - E_q[s(y)] - H(q),   q(y) proportional to prod_t q_t(y_t) over the legal sequences y

    where q_t are the soft labels of token t, and s(y) the score of a tag sequence. Up to the entropy H(q), which does
    not depend on the model, this is the expected negative log-likelihood of tags drawn from q (the noise-aware loss of
    Ratner et al. 2016, for sequences). The gradient is the marginals of the model minus those of q. Sentences without
    soft labels are treated as in `CRFNegativeLogLikelihood`, so that gold can be mixed in.
    """

    soft = True

    def __call__(self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Target]) -> CRFGradient:
        used = [i for i, target in enumerate(tags) if target.ndim == 2 and len(target)]
        hard = [numpy.full(len(t), MISSING) if t.ndim == 2 else t for t in tags]
        result = _marginal_likelihood(parameters, emissions, hard)
        return _add(result, self._divergence(parameters, emissions, tags, used)) if used else result

    def _divergence(
        self, parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Array], used: List[int]
    ) -> CRFGradient:
        batch = pad([emissions[i] for i in used])
        xp = get_array_module(batch.emissions)
        with numpy.errstate(divide="ignore"):
            beliefs = xp.log(batch.pad_like([tags[i] for i in used], 1.0, "float64"))
        # q is a chain itself: its transitions cost nothing where they are legal.
        legal = CRFParameters(*(xp.where(xp.isfinite(scores), 0.0, -xp.inf) for scores in parameters))
        model = expectations(parameters, batch)
        wanted = expectations(legal, Batch(beliefs, batch.lengths, batch.order))
        impossible = numpy.flatnonzero(_to_numpy(wanted.log_z == -xp.inf))
        if len(impossible):
            raise WeaknerError(Errors.WK007.format(index=used[batch.order[impossible].min()]))
        counts = CRFParameters(*(a - b for a, b in zip(model.counts, wanted.counts, strict=True)))
        scored = _expected(wanted.tokens, batch.emissions) + sum(map(_expected, wanted.counts, parameters))
        entropy = wanted.log_z.sum() - _expected(wanted.tokens, beliefs)
        total = float(model.log_z.sum() - scored - entropy)
        n_sentences = sum(len(e) > 0 for e in emissions)
        gradient = _unpad(batch, model.tokens - wanted.tokens, emissions, used)
        return CRFGradient(max(0.0, total) / n_sentences, gradient, counts)


def make_soft_label_crf() -> SoftLabelCRF:
    """Create the loss; registered as `spacy_weakner.SoftLabelCRF.v1`."""
    return SoftLabelCRF()


def make_crf_negative_log_likelihood() -> CRFNegativeLogLikelihood:
    """Create the loss; registered as `spacy_weakner.CRFNegativeLogLikelihood.v1`."""
    return CRFNegativeLogLikelihood()


def make_partial_crf(
    negative_rate: float = 0.2,
    entity_ratio: Optional[float] = None,
    entity_ratio_margin: float = 0.05,
    entity_ratio_weight: float = 10.0,
) -> PartialCRF:
    """Create the loss; registered as `spacy_weakner.PartialCRF.v1`. Arguments as in `PartialCRF`."""
    return PartialCRF(negative_rate, entity_ratio, entity_ratio_margin, entity_ratio_weight)


def _marginal_likelihood(parameters: CRFParameters, emissions: Sequence[Array], tags: Sequence[Target]) -> CRFGradient:
    """log Z - log Z(allowed), with its gradient."""
    n_sentences = sum(len(e) > 0 for e in emissions)
    used = _annotated(tags)
    if not used:
        # Nothing is known: every path is allowed and the loss is zero.
        return _zero(parameters, emissions)
    batch = pad([emissions[i] for i in used])
    xp = get_array_module(batch.emissions)
    log_z, gradient, counts = expectations(parameters, batch)
    padded = batch.pad_like([tags[i] for i in used], 0, "int64")
    # Complete rows need the score of one path, rows with holes a second lattice.
    holes = _to_numpy((padded == MISSING).any(0))
    agreeing = path_scores(parameters, batch, xp.maximum(padded, 0))
    own_counts = [_subtract_paths(gradient, batch, padded, ~holes)]
    if holes.any():
        rows = numpy.flatnonzero(holes)
        allowed = batch.select(rows)
        wanted = padded[: len(allowed.emissions), rows, None]
        allowed = allowed.restrict((wanted == MISSING) | (wanted == xp.arange(gradient.shape[2])))
        agreeing[rows], marginals, partial_counts = expectations(parameters, allowed)
        gradient[: len(marginals), rows] -= marginals
        own_counts.append(partial_counts)
    for own in own_counts:
        counts = CRFParameters(*(a - b for a, b in zip(counts, own, strict=True)))
    impossible = numpy.flatnonzero(_to_numpy(agreeing == -xp.inf))
    if len(impossible):
        raise WeaknerError(Errors.WK007.format(index=used[batch.order[impossible].min()]))
    loss = float((log_z - agreeing).sum()) / n_sentences
    return CRFGradient(loss, _unpad(batch, gradient, emissions, used), counts)


def _expected(probabilities: Array, scores: Array) -> Array:
    # 0 * -inf is 0 here: what cannot be does not count.
    xp = get_array_module(probabilities)
    return (probabilities * xp.where(probabilities > 0.0, scores, 0.0)).sum()


def _annotated(tags: Sequence[Target]) -> List[int]:
    # Sentences that have any annotation.
    if not tags:
        return []
    owners = numpy.repeat(numpy.arange(len(tags)), [len(t) for t in tags])
    known: List[int] = numpy.flatnonzero(numpy.bincount(owners[numpy.concatenate(tags) != MISSING])).tolist()
    return known


def _subtract_paths(gradient: Array, batch: Batch, tags: Array, complete: numpy.ndarray) -> CRFParameters:
    """Subtract one from the gradient at each tag of the complete rows, and count the parameters that they use."""
    xp = get_array_module(gradient)
    n_rows, n_tags = gradient.shape[1:]
    mask = xp.asarray(batch.mask() & complete)
    steps, rows = xp.nonzero(mask)
    gradient[steps, rows, tags[steps, rows]] -= 1.0
    last = tags[xp.asarray(batch.lengths) - 1, xp.arange(n_rows)]
    moves = (tags[:-1] * n_tags + tags[1:])[mask[1:]]
    start, end = (xp.bincount(own[xp.asarray(complete)], minlength=n_tags) for own in (tags[0], last))
    transitions = xp.bincount(moves, minlength=n_tags * n_tags).reshape(n_tags, n_tags)
    return CRFParameters(start, transitions, end)


def _raise_entities(batch: Batch, by: float) -> Batch:
    raised = batch.emissions.copy()
    raised[:, :, 1:] += by
    return Batch(raised, batch.lengths, batch.order)


def _unpad(batch: Batch, padded: Array, emissions: Sequence[Array], used: Sequence[int]) -> List[Array]:
    # float32 per sentence, zeros for those that took no part
    result: List[Array] = [None] * len(emissions)
    for i, gradient in zip(used, batch.unpad(padded.astype("float32")), strict=True):
        result[i] = gradient
    xp = get_array_module(padded)
    return [xp.zeros(e.shape, dtype="float32") if g is None else g for e, g in zip(emissions, result, strict=True)]


def _to_numpy(x: Array) -> numpy.ndarray:
    on_host: numpy.ndarray = x if isinstance(x, numpy.ndarray) else x.get()
    return on_host


def _zero(parameters: CRFParameters, emissions: Sequence[Array]) -> CRFGradient:
    zeros = [get_array_module(e).zeros(e.shape, dtype="float32") for e in emissions]
    return CRFGradient(0.0, zeros, CRFParameters(*(get_array_module(p).zeros_like(p) for p in parameters)))


def _add(a: CRFGradient, b: CRFGradient) -> CRFGradient:
    emissions = [x + y for x, y in zip(a.emissions, b.emissions, strict=True)]
    parameters = CRFParameters(*(x + y for x, y in zip(a.parameters, b.parameters, strict=True)))
    return CRFGradient(a.loss + b.loss, emissions, parameters)


def _check_range(setting: str, value: float, low: float, high: Optional[float]) -> None:
    if not (low <= value and (high is None or value <= high)):
        expected = f"at least {low}" if high is None else f"between {low} and {high}"
        raise WeaknerError(Errors.WK005.format(setting=setting, value=value, expected=expected))
