"""Learning from labels of which many are wrong (Meng et al. 2021, Section 2.2 and Appendix C)."""

from dataclasses import dataclass, field
from typing import Iterator, Optional, Set, Tuple

import numpy
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, IntTags, TagScheme, hard_labels
from ..errors import check_range
from ..losses import ProbabilityLoss
from ..token_ner.distribution import token_scores
from ..token_ner.objective import TokenBatch, TokenGradient, hard_label_loss
from ..ty import Array, BoolMask


@dataclass
class NoiseRobustLearning:
    """An objective for noisy hard labels: a loss that is robust to wrong labels, random dropping of "O" tokens, and
    removal of labels with which the model does not agree (Meng et al. 2021, Equation 5):

        L = sum_i w_i loss(f_i, y_i),   w_i = 1 if the teacher's probability of y_i is above the threshold

    where loss(f_i, y_i) is the loss of both heads, as in `HardLabels`, summed over tokens (unless `whole_tag`). The
    authors' code uses the mean of each head over its own tokens, so that tags have more weight. The teacher is the
    model at the last renewal; before the first one no labels are removed. The labels of a minority tag, of which more
    than the share `minority` would be removed, are all kept.

    Tokens without a label must be "O", not missing (`aggregate --unmatched outside`): otherwise there are no negatives.

    loss (ProbabilityLoss): For example `spacy_weakner.GeneralizedCrossEntropy.v1`.
    drop_outside (float): Share of the tokens labeled "O" without a loss, since unlabeled entities are among them. They
        are sampled once for the whole training, from the seed and the sentence.
    threshold (Optional[float]): Labels with at most this probability of the whole tag are removed; None: no labels are
        removed, and no teacher is needed.
    minority (float): See above.
    seed (int): Seed of the dropping; members of an ensemble should have different seeds.
    whole_tag (bool): Apply the loss to the probability f of the whole tag, as in Equations 3 and 5, instead of to each
        head separately, as in the authors' code.
    RAISES (WeaknerError): If a share or probability is out of range, or the seed is negative.
    """

    loss: ProbabilityLoss
    drop_outside: float = 0.5
    threshold: Optional[float] = 0.7
    minority: float = 0.9
    seed: int = 0
    whole_tag: bool = False
    _minorities: BoolMask = field(init=False, repr=False, compare=False)

    teacher_at_start = False
    uses_augmented = False

    def __post_init__(self) -> None:
        check_range("drop_outside", self.drop_outside, 0.0, 1.0)
        check_range("minority", self.minority, 0.0, 1.0)
        check_range("seed", self.seed, 0, None)
        check_range("threshold", self.threshold, 0.0, 1.0, optional=True)
        self.reset()

    def reset(self) -> None:
        """Remove the minority labels of an earlier training."""
        self._minorities = numpy.zeros(0, dtype=bool)

    @property
    def uses_teacher(self) -> bool:
        """RETURNS (bool): True if labels are removed."""
        return self.threshold is not None

    def labels(self, doc: Doc) -> Set[str]:
        return hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> Array:
        """Return the tags; those of dropped tokens are missing."""
        tags = scheme.from_example(example)
        if self.drop_outside == 0.0:
            return tags
        key = get_string_id(example.reference.text)
        drawn = numpy.random.default_rng([self.seed, key]).uniform(size=len(tags)) < self.drop_outside
        return numpy.where((tags == 0) & drawn, MISSING, tags)

    def renew(self, batches: Iterator[Tuple[Array, Array]]) -> None:
        """Find the minority labels.

        batches (Iterator[Tuple[Array, Array]]): Tags and outputs of the teacher.
        """
        counts: Array = numpy.zeros((2, 1))
        for tags, outputs in batches:
            labeled = tags > 0
            trusted = self._trusted(outputs, tags)
            found = [numpy.bincount(tags[mask], minlength=outputs.shape[1]) for mask in (labeled, labeled & ~trusted)]
            counts = counts + numpy.stack(found)
        tokens, doubted = counts
        # The first tag is "O".
        self._minorities = doubted > self.minority * tokens if len(tokens) > 1 else numpy.zeros(0, dtype=bool)

    def __call__(self, batch: TokenBatch) -> TokenGradient:
        tags: IntTags = batch.targets
        known = tags != MISSING
        if batch.teacher is None or self.threshold is None:
            return hard_label_loss(self.loss, batch.outputs, tags, known, self.whole_tag)
        trusted = self._trusted(batch.teacher, tags)
        if len(self._minorities):
            trusted |= (tags > 0) & self._minorities[numpy.maximum(tags, 0)]
        return hard_label_loss(self.loss, batch.outputs, tags, known & trusted, self.whole_tag)

    def _trusted(self, teacher: Array, tags: IntTags) -> BoolMask:
        # Tokens whose tags the teacher agrees with.
        with numpy.errstate(divide="ignore"):
            low = numpy.log(self.threshold or 0.0)
        trusted: BoolMask = token_scores(teacher).joint()[numpy.arange(len(tags)), numpy.maximum(tags, 0)] > low
        return trusted
