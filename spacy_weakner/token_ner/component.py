"""Named-entity recognition by classifying tokens."""

from itertools import compress
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..batching import split_rows
from ..corpus.tags import MISSING, make_scheme, same_tokens
from ..corpus.weak import get_augmented
from ..errors import Errors, WeaknerError
from ..heads.entities import Prediction, make_predictions
from ..heads.factories import entity_head_factory
from ..heads.head import Loss, TrainingBatch
from ..heads.layers import to_host
from ..heads.tagging import TaggingHead, TagScores
from ..heads.teacher import HeadWithTeacher, Teacher, require_own_encoder
from ..ty import Array, PathScore
from .distribution import token_scores
from .objective import Augmented, Objective, TokenBatch


class TokenTarget(NamedTuple):
    """The target of one sentence.

    rows (Array): One row per token; see `Objective.encode`.
    augmented (bool): True if the batch has an augmented form of the sentence.
    teacher (Optional[Array]): Shape (n_tokens, n_tags): outputs of the teacher, if there is one.
    """

    rows: Array
    augmented: bool
    teacher: Optional[Array] = None


class TokenNer(HeadWithTeacher[List[Floats2d], TokenTarget, Prediction], TaggingHead[TokenTarget]):
    """A component that classifies tokens with two heads (whether a token belongs to an entity, and which tag it has if
    so), and writes the entities to `doc.ents`.

    The best tag of each token is chosen independently; with the scheme "IO", adjacent entities of one label are merged.
    `ent._.weakner_score` is the product of the probabilities of the tags of the entity's tokens.

    vocab (Vocab): The shared vocabulary.
    model (Model[List[Doc], List[Floats2d]]): The classifier, e.g. `spacy_weakner.TokenClassifier.v1`.
    name (str): Name of the component in the pipeline.
    objective (Objective): The training objective, e.g. `spacy_weakner.HardLabels.v1` or
        `spacy_weakner.NoiseRobustLearning.v1`.
    scheme (str): Tag scheme: "IO", "BIO" or "IOBES".
    head_learn_rate (float): Factor on the learning rate of the heads.
    overwrite (bool): Whether to replace existing entities in `doc.ents`.
    annotate_ents (bool): Write `doc.ents`. If False, predictions are written only to the span group `pred:<name>`, with
        their probabilities, for another component that selects from them.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): If the scheme is unknown, or the objective needs an encoder of the component's own.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "token_ner",
        *,
        objective: Objective,
        scheme: str = "IO",
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        annotate_ents: bool = True,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, overwrite=overwrite, scorer=scorer)
        self.annotate_ents = annotate_ents
        self.tag_scheme = make_scheme(scheme, ()).name  # raises an error for an unknown scheme
        if objective.uses_teacher or objective.uses_augmented:
            require_own_encoder(name, model, "learns from earlier states of its model or from augmented sentences")
        self.objective = objective
        self.needs_clock = objective.uses_teacher
        self._teacher: Teacher = Teacher(objective.teacher_at_start)

    def reset_training(self) -> None:
        super().reset_training()
        self.objective.reset()

    # Training

    def example_labels(self, example: Example) -> Iterable[str]:
        """Return the labels in the annotation that the objective uses."""
        return self.objective.labels(example.reference)

    def encode_target(self, example: Example) -> TokenTarget:
        """Return the target of an example for the objective; see its `encode`."""
        augmented = self.objective.uses_augmented and get_augmented(example.reference) is not None
        return TokenTarget(self.objective.encode(example, self.scheme), augmented)

    def forward_loss(self, batch: TrainingBatch[TokenTarget]) -> Loss:
        """Compute the objective on all tokens of the batch and of augmented sentences."""
        targets, used = self.targets_with_teacher(batch), [target.augmented for target in batch.targets]
        outputs, backprop = self.begin_update(batch, [_augmented_doc(eg) for eg in compress(batch.examples, used)])
        ops: Any = self.model.ops
        scores = [rows.reshape(-1, self.n_outputs) for rows in to_host(ops, outputs)]
        every, n_tokens = numpy.concatenate(scores), sum(len(target.rows) for target in targets)
        tokens = TokenBatch(every[:n_tokens], *_concatenate(targets))
        gradient = numpy.zeros(every.shape, dtype="float32")
        if any(used):
            originals = numpy.repeat(used, [len(target.rows) for target in targets])
            tokens = tokens._replace(augmented=Augmented(every[n_tokens:], numpy.flatnonzero(originals)))
        result = self.objective(tokens)
        gradient[:n_tokens] = result.outputs
        if result.augmented is not None:
            gradient[n_tokens:] = result.augmented
        return result.loss / batch.n_sentences, lambda: backprop(split_rows(ops.asarray2f(gradient), scores))

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used = self.annotated(examples)
        outputs = numpy.concatenate(self.token_outputs(eg.predicted for eg in used))
        tags = numpy.concatenate([self.scheme.from_example(eg) for eg in used])
        rows = numpy.flatnonzero(tags != MISSING)
        if not len(rows):  # the annotation cannot be aligned
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return lambda temperature: (
            -float(token_scores(outputs, temperature, self.bias).joint()[rows, tags[rows]].mean())
        )

    # The teacher

    def add_predictions(self, teacher: Model, docs: List[Doc], targets: List[TokenTarget]) -> List[TokenTarget]:
        predicted = self._teacher.predict(docs, lambda unread: self.token_outputs(unread, teacher))
        return [target._replace(teacher=rows) for target, rows in zip(targets, predicted, strict=True)]

    def observe(self, batches: Iterator[TrainingBatch[TokenTarget]]) -> None:
        counts: List[int] = []
        self.objective.renew(self._observe(batches, counts))
        if not sum(counts):
            raise ValueError(
                f"The corpus of the training clock has no tokens, so the teacher of '{self.name}' has "
                "nothing to predict. Correct 'corpus' in [training.before_update]."
            )

    def _observe(self, batches: Iterator[TrainingBatch[TokenTarget]], counts: List[int]) -> Iterator[Tuple[Array, Any]]:
        for batch in batches:
            rows, predicted = _concatenate(self.targets_with_teacher(batch))
            counts.append(len(rows))
            yield rows, predicted

    # Prediction

    def decode(self, docs: List[Doc], outputs: List[Floats2d]) -> List[Prediction]:
        """Find the best tag of every token, the entities, and their probabilities."""
        scores = numpy.concatenate(to_host(self.model.ops, outputs))
        joint = token_scores(scores, bias=self.bias).joint()
        joint[numpy.concatenate(list(map(self.preset_tokens, docs))), 1:] = -numpy.inf
        tags = joint.argmax(axis=1)
        begins = numpy.cumsum([0, *map(len, docs)])
        spans = self.scheme.decode_all(numpy.split(tags, begins[1:-1]))
        calibrated = token_scores(scores, self.temperature, self.bias).joint()[numpy.arange(len(tags)), tags]
        places = spans[:, 1:3] + begins[spans[:, 0], None]
        # Every second sum is that of an entity, from its start to its end.
        sums = numpy.add.reduceat(numpy.append(calibrated, 0.0), places.reshape(-1))[::2]
        return make_predictions(len(docs), spans, self.labels, numpy.exp(sums))

    def score_tags(self, docs: Iterable[Doc]) -> List[TagScores]:
        """Return the best tags of every Doc, with the sum of their log-probabilities before and after calibration, and
        the distribution over the tags of every token.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[TagScores]): One pair per Doc; the empty Doc has score 0 and log-probability 0.
        """

        def read(_: List[Doc], outputs: List[Floats2d]) -> List[TagScores]:
            return list(map(self._score_tags, to_host(self.model.ops, outputs)))

        return self.map_sentences(docs, read, self.no_tags, self.merge_tags)

    def _score_tags(self, outputs: Array) -> TagScores:
        names, joint = self.scheme.tags, token_scores(outputs, bias=self.bias).joint()
        calibrated = token_scores(outputs, self.temperature, self.bias).joint()
        tags, rows = joint.argmax(axis=1), numpy.arange(len(joint))
        path = PathScore(
            [names[tag] for tag in tags], float(joint[rows, tags].sum()), float(calibrated[rows, tags].sum())
        )
        return path, numpy.exp(calibrated).astype("float32")


def _concatenate(targets: List[TokenTarget]) -> Tuple[Array, Optional[Array]]:
    """Concatenate targets, and the outputs of the teacher, over sentences."""
    outputs = [target.teacher for target in targets if target.teacher is not None]
    return numpy.concatenate([target.rows for target in targets]), numpy.concatenate(outputs) if outputs else None


def _augmented_doc(example: Example) -> Doc:
    words, doc = get_augmented(example.reference) or [], example.predicted
    if len(words) != len(doc) or not same_tokens(doc, example.reference):
        raise WeaknerError(Errors.WK021.format(what="augmented words", text=example.reference.text[:50]))
    return Doc(doc.vocab, words=words, spaces=[bool(token.whitespace_) for token in doc])


make_token_ner = entity_head_factory("token_ner", TokenNer, "model", "objective")
