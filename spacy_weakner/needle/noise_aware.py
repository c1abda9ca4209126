"""The noise-aware loss of NEEDLE (Jiang et al. 2021, Equations 3 and 4)."""

from dataclasses import dataclass
from typing import Sequence, Set

import numpy
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.tags import MISSING, TagScheme, hard_labels
from ..corpus.weak import get_confidence, get_confidence_unit, is_weak
from ..crf.kernel import CRFParameters
from ..crf_ner.likelihood import CRFGradient, CRFTarget, Weights, n_with_tokens, sentence_losses
from ..errors import Errors, WeaknerError, check_choice, check_range
from ..ty import Array

LEVELS = ("sentence", "token")
# The gradient of log(1 - P) is proportional to 1 / -log P. Below this, rounding errors of log Z exceed -log P.
SMALLEST_LOSS = 1e-9


@dataclass(frozen=True)
class NoiseAwareCRF:
    """A loss that weights labels by their confidence. With the probability P of a sentence's tags under the model, and
    the probability w that they are right (the confidence), the loss is (Jiang et al. 2021, Equation 3)

        L = -w log P - (1 - w) log(1 - P)

    Its minimum is at P = w. Strong sentences have w = 1, for which L is the negative log-likelihood. Missing tags are
    marginalized: P is then the probability of all sequences that agree with the other tags.

    For a whole, long sentence, P is nearly 0 and log(1 - P) vanishes, so L decreases until the sentence is memorized.
    Against this, our variant for the level "token" uses for P the geometric mean over the n annotated tokens, and
    multiplies L by n; it needs confidences that were calibrated per token.

    level (str): "sentence" (the paper) or "token".
    strong_weight (float): w of strong sentences; the authors' code has 0.95.
    """

    level: str = "sentence"
    strong_weight: float = 1.0

    def __post_init__(self) -> None:
        check_choice("level", self.level, LEVELS)
        check_range("strong_weight", self.strong_weight, 0.0, 1.0)

    def labels(self, doc: Doc) -> Set[str]:
        return hard_labels(doc)

    def encode(self, example: Example, scheme: TagScheme) -> CRFTarget:
        """Return the tags of an example with their confidence.

        RAISES (WeaknerError): If it is weakly labeled and has no confidence, or one for another unit.
        """
        doc = example.reference
        confidence = get_confidence(doc) if is_weak(doc) else self.strong_weight
        if confidence is None:
            raise WeaknerError(Errors.WK023.format(text=doc.text[:50]))
        unit = get_confidence_unit(doc)
        if unit not in (None, self.level):
            there, here = f"--unit {unit}", f"level = {self.level}"
            what = "The confidences of the corpus were calibrated"
            raise WeaknerError(Errors.WK020.format(what=what, there=there, here=here))
        return CRFTarget(scheme.from_example(example), confidence)

    def __call__(
        self, parameters: CRFParameters, emissions: Sequence[Array], targets: Sequence[CRFTarget]
    ) -> CRFGradient:
        tags = [target.tags for target in targets]
        confidence = numpy.asarray([target.weight for target in targets], dtype="float64")
        n_known = numpy.asarray([int((sentence != MISSING).sum()) for sentence in tags], dtype="float64")
        units = numpy.maximum(1.0, n_known) if self.level == "token" else numpy.ones(len(tags))
        losses, backprop = sentence_losses(parameters, emissions, tags)
        # -log P, per sentence or per token
        losses = losses / units
        # Sentences without any annotation have no loss.
        values = numpy.where(n_known > 0.0, units * noise_aware(losses, confidence), 0.0)
        mean = float(values.sum()) / max(1, n_with_tokens(emissions))
        return CRFGradient(mean, *backprop(noise_aware_slope(losses, confidence)))


def log_unlikelihood(loss: Weights) -> Weights:
    """Compute -log(1 - P), which is exact even if P is near 1.

    loss (Weights): -log P, above 0.
    RETURNS (Weights): Same shape.
    """
    result: Weights = -numpy.log(-numpy.expm1(-loss))
    return result


def noise_aware(loss: Weights, confidence: Weights) -> Weights:
    """Compute Equation 3: -w log P - (1 - w) log(1 - P).

    loss (Weights): -log P, at least 0.
    confidence (Weights): w.
    RETURNS (Weights): Same shape.
    """
    return confidence * loss + (1.0 - confidence) * log_unlikelihood(numpy.maximum(loss, SMALLEST_LOSS))


def noise_aware_slope(loss: Weights, confidence: Weights) -> Weights:
    """Compute the derivative of Equation 3 with respect to -log P: w - (1 - w) P / (1 - P).

    loss (Weights): -log P, at least 0.
    confidence (Weights): w.
    RETURNS (Weights): Same shape; negative where P > w.
    """
    with numpy.errstate(over="ignore"):  # P / (1 - P) is then 0
        odds = 1.0 / numpy.expm1(numpy.maximum(loss, SMALLEST_LOSS))
    result: Weights = confidence - (1.0 - confidence) * odds
    return result
