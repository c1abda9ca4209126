"""Self-training on confident predictions, for sentences and their augmented forms (Meng et al. 2021, Section 2.3)."""

from dataclasses import dataclass, field
from typing import Iterator, Set, Tuple

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import TagScheme, soft_or_hard_labels
from ..errors import check_range
from ..losses import CategoricalCrossentropy, KLDivergence
from ..token_ner.distribution import TokenScores, token_scores
from ..token_ner.objective import Augmented, TokenBatch, TokenGradient
from ..ty import Array, BoolMask


@dataclass
class SelfTraining:
    """An objective on sharpened soft labels of the tags except "O", which raise confident predictions of the teacher
    (Meng et al. 2021, Equation 8), for a sentence x and its augmented form x' (Equation 9):

        y_ij = (f_ij^2 / g_j) / sum_j' (f_ij'^2 / g_j'),   g_j = sum_i f_ij over the corpus
        L = sum_i KL(y_i || f_i(x)) + sum_i KL(y_i || f_i(x'))

    where f_ij is the teacher's probability that token i has tag j. The teacher is the model at the last renewal. Both
    terms are sums over tokens; the authors' code uses means. The targets of the entity head are the probabilities of an
    entity in the sentence's soft labels (of the ensemble), if there are any, otherwise those of the teacher.

    threshold (float): Minimum probability of an entity, by the teacher, of tokens whose tags are targets and count in
        g, with probabilities of tags given an entity: as in the authors' code. 0, as in the paper, uses all tokens. But
        nearly all of them are in no entity, so that the tag head would mostly learn to sharpen predictions that have no
        meaning.
    include_outside (bool): Apply Equation 8 to all tags, including "O", and the threshold to the largest probability,
        as in BOND (Liang et al. 2020).
    RAISES (WeaknerError): If the threshold is not in [0, 1].
    """

    threshold: float = 0.8
    include_outside: bool = False
    _frequencies: Array = field(init=False, repr=False, compare=False)

    uses_teacher = True
    teacher_at_start = True
    uses_augmented = True

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, 0.0, 1.0)
        self.reset()

    def reset(self) -> None:
        """Remove the frequencies of tags of an earlier training."""
        self._frequencies = numpy.zeros(0)

    def labels(self, doc: Doc) -> Set[str]:
        return soft_or_hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        """Return the target probability of an entity for each token; NaN if the teacher's is the target."""
        soft = scheme.soft_from_example(example)
        if soft is None:
            return numpy.full(len(example.predicted), numpy.nan)
        return numpy.where(soft.any(axis=1), soft[:, 1:].sum(axis=1), numpy.nan)

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Sum the probabilities of the tags over the corpus.

        batches (Iterator[Tuple[Array, Array]]): Targets, and outputs of the teacher.
        """
        total: Array = numpy.zeros(0)
        for _, outputs in batches:
            scores = token_scores(outputs)
            # If all tokens count, weight them by the probability of an entity.
            log_f = scores.joint()[:, 1:] if self._counts_all else self._log_f(scores)
            sums = numpy.exp(log_f)[self._used(scores)].sum(axis=0)
            total = sums if not len(total) else total + sums
        self._frequencies = total

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        if batch.teacher is None or not len(self._frequencies):
            return TokenGradient(0.0, numpy.zeros(batch.outputs.shape))
        scores, teacher = token_scores(batch.outputs), token_scores(batch.teacher)
        used = self._used(teacher)
        wanted = sharpen(self._log_f(teacher), self._frequencies) * used[:, None]
        values, slope = KLDivergence()(self._log_f(scores), wanted)
        total = float(values.sum())
        d_entity = numpy.zeros_like(scores.entity)
        if not self.include_outside:
            of_entity = numpy.exp(teacher.entity[:, 1])
            of_entity = numpy.where(numpy.isnan(batch.targets), of_entity, batch.targets)
            values, d_entity = CategoricalCrossentropy()(
                scores.entity, numpy.stack([1.0 - of_entity, of_entity], axis=1)
            )
            total += float(values.sum())
        gradient = scores.joint_gradient(slope) if self.include_outside else scores.gradient(d_entity, slope)
        if batch.augmented is None:
            return TokenGradient(total, gradient)
        more, d_augmented = self._augmented(wanted, batch.augmented)
        return TokenGradient(total + more, gradient, d_augmented)

    def _augmented(self, wanted: Array, augmented: Augmented) -> Tuple[float, Array]:
        other = token_scores(augmented.outputs)
        values, slope = KLDivergence()(self._log_f(other), wanted[augmented.tokens])
        if self.include_outside:
            return float(values.sum()), other.joint_gradient(slope)
        return float(values.sum()), other.gradient(numpy.zeros_like(other.entity), slope)

    @property
    def _counts_all(self) -> bool:
        return self.threshold == 0.0 and not self.include_outside

    def _log_f(self, scores: TokenScores) -> Array:
        return scores.joint() if self.include_outside else scores.types

    def _used(self, scores: TokenScores) -> BoolMask:
        log_probability = scores.joint().max(axis=1) if self.include_outside else scores.entity[:, 1]
        used: BoolMask = numpy.exp(log_probability) >= self.threshold
        return used


def sharpen(log_probabilities: Array, frequencies: Array) -> Array:
    """Compute soft labels: squared probabilities, divided by the frequency of each tag, and normalized (Equation 8,
    after Xie et al. 2016).

    log_probabilities (Array): Shape (n_tokens, n_tags).
    frequencies (Array): Shape (n_tags,): g; tags that never occur get the probability 0.
    RETURNS (Array): Shape (n_tokens, n_tags); rows sum to 1.
    """
    with numpy.errstate(divide="ignore", invalid="ignore"):
        scores = 2.0 * log_probabilities - numpy.log(frequencies)
    scores = numpy.where(frequencies > 0.0, scores, -numpy.inf)
    highest = scores.max(axis=1, keepdims=True)
    known = numpy.isfinite(highest)
    weights = numpy.exp(scores - numpy.where(known, highest, 0.0))
    return weights / numpy.where(known, weights.sum(axis=1, keepdims=True), 1.0)
