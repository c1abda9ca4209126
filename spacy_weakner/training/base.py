"""What all heads that find entities share. A head adds targets, loss and decoding."""

import math
from abc import abstractmethod
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..annotations.preset import blocked_tokens, preset_tokens
from ..annotations.tags import BoolMask
from ..annotations.weak import PREDICTED_PREFIX, get_soft_labels, set_group
from ..errors import Errors, WeaknerError
from ..ty import Entity
from .learner import Learner

if not Span.has_extension("weakner_score"):
    Span.set_extension("weakner_score", default=None)


class Prediction(NamedTuple):
    """What a head predicts for one Doc.

    entities (List[Entity]): Without overlaps.
    scores (List[Optional[float]]): Probability of each entity; None where it was not asked for.
    candidates (Optional[List[Entity]]): For the group `pred:<name>`; None: write no group.
    candidate_scores (List[Optional[float]]): Probability of each candidate.
    """

    entities: List[Entity]
    scores: List[Optional[float]]
    candidates: Optional[List[Entity]] = None
    candidate_scores: Sequence[Optional[float]] = ()


class TrainableHead(Learner):
    """Base of the heads: what entities ask of a component, beside what all learners do.

    The model is a Model[List[Doc], List[Floats2d]], with one row per token.

    vocab (Vocab): The shared vocabulary.
    model (Model): The model.
    name (str): Name of the component in the pipeline.
    head_learn_rate (float): Factor on the learning rate for all that does not belong to the encoder.
    overwrite (bool): Whether entities that stand in `doc.ents` already are replaced. If not they are kept, and
        predicted entities fill the rest.
    scorer (Optional[Callable]): The scoring method.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str,
        *,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, scorer=scorer)
        self.overwrite = overwrite
        self.cfg["temperature"] = 1.0

    # Calibration

    @property
    def temperature(self) -> float:
        """RETURNS (float): Divides the scores before they become probabilities; 1 until it is calibrated."""
        return float(self.cfg["temperature"])

    def set_temperature(self, temperature: float) -> None:
        """Change the temperature; it is saved with the component.

        temperature (float): Above 0.
        RAISES (WeaknerError): If it is not.
        """
        if not 0.0 < temperature < math.inf:
            raise WeaknerError(Errors.WK005.format(setting="temperature", value=temperature, expected="above 0"))
        self.cfg["temperature"] = float(temperature)

    @abstractmethod
    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        """How badly the probabilities fit gold that was not trained on.

        examples (Iterable[Example]): The gold; the model runs over it once.
        RETURNS (Callable[[float], float]): From a temperature to the mean negative log-likelihood.
        RAISES (WeaknerError): If none of the examples is annotated.
        """

    def annotated(self, examples: Iterable[Example]) -> List[Example]:
        """The examples that say something.

        examples (Iterable[Example]): Some examples.
        RETURNS (List[Example]): Those that have tokens and are annotated.
        RAISES (WeaknerError): If there are none.
        """
        used = [eg for eg in examples if len(eg.predicted) and self.is_annotated(eg)]
        if not used:
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return used

    # Training

    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels that an example shows; by default those of its entities."""
        return (ent.label_ for ent in example.reference.ents)

    def is_annotated(self, example: Example) -> bool:
        """Whether an example can teach the component anything; by default, whether it says anything on entities."""
        return bool(example.reference.has_annotation("ENT_IOB"))

    def teaches(self, example: Example) -> bool:
        return self.is_annotated(example) or get_soft_labels(example.reference) is not None

    def sample_output(self, docs: List[Doc]) -> List[Floats2d]:
        return [self.model.ops.alloc2f(len(doc), self.n_outputs) for doc in docs]

    @abstractmethod
    def compute_loss(self, scores: List[Floats2d], targets: List[Any]) -> Tuple[float, List[Floats2d]]:
        """The mean loss per sentence, and the gradient of the sum over sentences with respect to the scores."""

    # Prediction

    @abstractmethod
    def decode(self, docs: List[Doc], scores: List[Floats2d]) -> List[Prediction]:
        """Turn the model's output into predictions.

        docs (List[Doc]): Docs of like length, none of them empty.
        scores (List[Floats2d]): The model's output per Doc; see `outputs_on_host`.
        RETURNS (List[Prediction]): One per Doc.
        """

    @property
    def nothing(self) -> Prediction:
        """RETURNS (Prediction): The prediction for a Doc without tokens."""
        return Prediction([], [])

    def score_tokens(self, docs: Iterable[Doc]) -> List[Floats2d]:
        """Run the model.

        docs (Iterable[Doc]): The Docs.
        RETURNS (List[Floats2d]): Per Doc (n_tokens, n_outputs), on the host.
        """
        nothing: Any = numpy.zeros((0, self.n_outputs), dtype="float32")
        return self.map_scores(docs, lambda _, scores: scores, nothing)

    def set_annotations(self, docs: Iterable[Doc], predictions: List[Prediction]) -> None:
        """Write `doc.ents`, `ent._.weakner_score` and, where there are candidates, the span group `pred:<name>`.

        docs (Iterable[Doc]): The Docs.
        predictions (List[Prediction]): As `predict` gave them.
        """
        for doc, prediction in zip(docs, predictions, strict=True):
            ents = [] if self.overwrite else list(doc.ents)
            blocked = [] if self.overwrite else blocked_tokens(doc)
            for (start, end, label), score in zip(prediction.entities, prediction.scores, strict=True):
                ent = Span(doc, start, end, label=label)
                if score != ent._.weakner_score:  # an earlier run may have left one
                    ent._.weakner_score = score
                ents.append(ent)
            doc.set_ents(sorted(ents, key=lambda ent: ent.start), blocked=blocked)
            if prediction.candidates is not None:
                group = PREDICTED_PREFIX + self.name
                set_group(doc, group, prediction.candidates, list(prediction.candidate_scores))

    def preset_tokens(self, doc: Doc) -> BoolMask:
        """Tokens whose annotation has to stay: those of entities that stand in a Doc already, and blocked ones.

        doc (Doc): The Doc.
        RETURNS (BoolMask): Shape (n_tokens,).
        """
        if self.overwrite:
            return numpy.zeros(len(doc), dtype=bool)
        return preset_tokens(doc)
