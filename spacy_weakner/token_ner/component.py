"""Named-entity recognition by classifying tokens."""

from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..corpus.parts import Merge
from ..corpus.tags import MISSING, make_scheme, same_tokens
from ..corpus.weak import get_augmented
from ..errors import Errors, WeaknerError
from ..heads.entities import Prediction, make_predictions
from ..heads.factories import default_blocks, register_component
from ..heads.tagging import TaggingHead
from ..heads.teacher import RENEWAL_BATCH, Teacher, require_own_encoder
from ..losses import Array
from ..sources.strengths import Strength
from ..ty import PathScore
from .distribution import read_scores, to_outputs
from .objective import Augmented, Objective, TokenBatch

T = TypeVar("T")


class TokenTarget(NamedTuple):
    """What one sentence is trained on.

    rows (Array): One row per token; see `Objective.encode`.
    augmented (bool): Whether an augmented form of it is in the batch.
    teacher (Optional[Array]): Shape (n_tokens, n_tags): outputs of the teacher; None if there is none.
    """

    rows: Array
    augmented: bool
    teacher: Optional[Array] = None


class TokenNer(TaggingHead[TokenTarget]):
    """Classify tokens by two heads, whether a token belongs to an entity and which tag it has if it does, and write the
    entities to `doc.ents`.

    Every token gets its best tag by itself; under the scheme "IO" adjacent entities of one label become one.
    `ent._.weakner_score` is the probability that all tokens of the entity have their tags, the product of theirs.

    vocab (Vocab): The shared vocabulary.
    model (Model[List[Doc], List[Floats2d]]): The classifier, e.g. `spacy_weakner.TokenClassifier.v1`.
    name (str): Name of the component in the pipeline.
    objective (Objective): What to learn, e.g. `spacy_weakner.HardLabels.v1` or `spacy_weakner.NoiseRobustLearning.v1`.
    scheme (str): Tag scheme: "IO", "BIO" or "IOBES".
    teacher_decay (float): For objectives that learn from a teacher: how much of the old one stays at each renewal. 0:
        the teacher is the model as it was then; above: a moving average of its weights.
    head_learn_rate (float): Factor on the learning rate of the heads.
    overwrite (bool): Whether to replace entities that stand in `doc.ents` already.
    annotate_ents (bool): Write `doc.ents`. If not, what it finds goes to the span group `pred:<name>` alone, with its
        probabilities, for a component that decides about it.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): For an unknown scheme, an unusable decay, or an objective that needs an encoder of the
        component's own if there is none.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "token_ner",
        *,
        objective: Objective,
        scheme: str = "IO",
        teacher_decay: float = 0.0,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        annotate_ents: bool = True,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, overwrite=overwrite, scorer=scorer)
        self.annotate_ents = annotate_ents
        self.tag_scheme = make_scheme(scheme, ()).name  # which refuses an unknown one
        if objective.uses_teacher or objective.uses_augmented:
            require_own_encoder(name, model)
        self.objective = objective
        self.needs_clock = objective.uses_teacher
        self._teacher: Teacher = Teacher(teacher_decay, objective.teacher_at_start)

    def forget(self) -> None:
        """Forget an earlier training; the objective does, too."""
        super().forget()
        self.objective.reset()

    # Training

    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels in what the objective learns from of an example."""
        return self.objective.labels(example.reference)

    def encode_target(self, example: Example) -> TokenTarget:
        """What the objective learns from of an example; see its `encode`."""
        augmented = self.objective.uses_augmented and get_augmented(example.reference) is not None
        return TokenTarget(self.objective.encode(example, self.scheme), augmented)

    def encode_targets(self, examples: Iterable[Example]) -> List[TokenTarget]:
        """The same of several examples; once there is a teacher, with what it says.

        examples (Iterable[Example]): The examples.
        RETURNS (List[TokenTarget]): One each.
        RAISES (WeaknerError): For an unknown label, or if there should be a teacher and never will be.
        """
        examples = list(examples)
        targets = super().encode_targets(examples)
        teacher = self._teacher.of_update(self._tick, self.name) if self.needs_clock else None
        if teacher is None:
            return targets
        docs = [eg.predicted for eg in examples]
        said = self._teacher.says(docs, lambda unread: self.token_outputs(unread, teacher))
        return [target._replace(teacher=own) for target, own in zip(targets, said, strict=True)]

    def training_docs(self, examples: List[Example]) -> List[Doc]:
        """The Docs of the examples and, for objectives that want them, their augmented forms."""
        docs = super().training_docs(examples)
        if not self.objective.uses_augmented:
            return docs
        return docs + [_augmented_doc(eg) for eg in examples if get_augmented(eg.reference) is not None]

    def compute_loss(self, outputs: List[Floats2d], targets: List[TokenTarget]) -> Tuple[float, List[Floats2d]]:
        """The objective on all tokens of the batch."""
        ops, n = self.model.ops, len(targets)
        scores = [ops.to_numpy(own).reshape(-1, self.n_outputs) for own in outputs]
        batch = TokenBatch(numpy.concatenate(scores[:n]), *_concatenate(targets))
        if len(scores) > n:
            starts = numpy.cumsum([0, *(len(own) for own in scores[:n])])
            tokens = [
                numpy.arange(start, start + len(target.rows))
                for start, target in zip(starts, targets, strict=False)
                if target.augmented
            ]
            batch = batch._replace(augmented=Augmented(numpy.concatenate(scores[n:]), numpy.concatenate(tokens)))
        result = self.objective(batch)
        gradients = [result.outputs]
        if batch.augmented is not None:
            unused = result.augmented is None
            gradients.append(numpy.zeros_like(batch.augmented.outputs) if unused else result.augmented)
        gradient = numpy.concatenate(gradients).astype("float32")
        parts: List[Any] = numpy.split(gradient, numpy.cumsum([len(own) for own in scores])[:-1])
        n_sentences = sum(len(target.rows) > 0 for target in targets)
        return result.loss / max(1, n_sentences), [ops.asarray2f(part) for part in parts]

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used = self.annotated(examples)
        outputs = numpy.concatenate(self.token_outputs([eg.predicted for eg in used]))
        tags = numpy.concatenate([self.scheme.from_example(eg) for eg in used])
        rows = numpy.flatnonzero(tags != MISSING)
        if not len(rows):  # what is annotated does not align
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return lambda temperature: -float(read_scores(outputs, temperature, self.bias).joint()[rows, tags[rows]].mean())

    def starting_votes(self, strengths: Sequence[Strength]) -> Array:
        """Weights of the votes: what votes for any tag, and not for "O", votes for an entity."""
        return to_outputs(super().starting_votes(strengths))

    # The teacher

    def renew(self, examples: Iterable[Example]) -> None:
        """Make the model as it is now the teacher, and let the objective see what it says of the corpus. The training
        clock calls this.

        examples (Iterable[Example]): The corpus.
        RAISES (WeaknerError): If it has no tokens.
        """
        if not (self.needs_clock and self._teacher.is_due(self._tick)):
            return
        self._teacher.renew(self.model, self._tick)
        counts: List[int] = []
        self.objective.renew(self._observe(examples, counts))
        if not sum(counts):
            raise WeaknerError(Errors.WK037.format(name=self.name))

    def _observe(self, examples: Iterable[Example], counts: List[int]) -> Iterator[Tuple[Array, Any]]:
        for batch in minibatch(examples, RENEWAL_BATCH):
            rows, said = _concatenate(self.encode_targets(self.split_examples(batch)[1]))
            counts.append(len(rows))
            yield rows, said

    def training_statistics(self) -> Dict[str, float]:
        """RETURNS (Dict[str, float]): What the objective counted since the last call."""
        return self.objective.statistics()

    # Prediction

    def decode(self, docs: List[Doc], outputs: List[Floats2d], bias: Optional[float] = None) -> List[Prediction]:
        """The best tag of every token, and the probabilities of the entities that they make."""
        bias = self.bias if bias is None else bias
        scores: Any = numpy.concatenate(outputs)  # type: ignore[arg-type]
        joint = read_scores(scores, bias=bias).joint()
        joint[numpy.concatenate(list(map(self.preset_tokens, docs))), 1:] = -numpy.inf
        tags = joint.argmax(axis=1)
        begins = numpy.cumsum([0, *map(len, docs)])
        spans = self.scheme.decode_all(numpy.split(tags, begins[1:-1]))
        cooled = read_scores(scores, self.temperature, bias).joint()[numpy.arange(len(tags)), tags]
        places = spans[:, 1:3] + begins[spans[:, 0], None]
        # The sums from each start to its end are every second one.
        sums = numpy.add.reduceat(numpy.append(cooled, 0.0), places.reshape(-1))[::2]
        return make_predictions(len(docs), spans, self.labels, numpy.exp(sums))

    def distributions(self, docs: Iterable[Doc]) -> List[Floats2d]:
        """Distribution over the tags of every token.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[Floats2d]): Per Doc float32 (n_tokens, n_tags), columns as in `distribution_labels`.
        """
        return self._of_sentences(docs, self._distribution, self._merge_rows)

    def score_paths(self, docs: Iterable[Doc]) -> List[PathScore]:
        """The best tags of every Doc, with the sum of their log-probabilities, before and after calibration.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[PathScore]): One per Doc; the empty Doc has score 0 and log-probability 0.
        """
        return self._of_sentences(docs, self._path_score, self._merge_paths)

    def score_tags(self, docs: Iterable[Doc]) -> List[Tuple[PathScore, Floats2d]]:
        """What `score_paths` and `distributions` say, in one pass of the model.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[Tuple[PathScore, Floats2d]]): One pair per Doc.
        """
        return self._of_sentences(
            docs, lambda scores: (self._path_score(scores), self._distribution(scores)), self._merge_tags
        )

    def _of_sentences(self, docs: Iterable[Doc], read: Callable[[Floats2d], T], merge: Merge[T]) -> List[T]:
        empty: Any = numpy.zeros((0, self.n_outputs), dtype="float32")
        nothing = read(empty)
        return self.map_sentences(docs, lambda _, outputs: list(map(read, outputs)), nothing, merge)

    def _distribution(self, scores: Floats2d) -> Any:
        return numpy.exp(read_scores(scores, self.temperature, self.bias).joint()).astype("float32")

    def _path_score(self, scores: Floats2d) -> PathScore:
        names, joint = self.scheme.tags, read_scores(scores, bias=self.bias).joint()
        tags = joint.argmax(axis=1)
        rows = numpy.arange(len(tags))
        cooled = read_scores(scores, self.temperature, self.bias).joint()[rows, tags].sum()
        return PathScore([names[tag] for tag in tags], float(joint[rows, tags].sum()), float(cooled))


def _concatenate(targets: List[TokenTarget]) -> Tuple[Array, Optional[Array]]:
    """What all tokens learn, and what the teacher says of them."""
    said = [target.teacher for target in targets if target.teacher is not None]
    return numpy.concatenate([target.rows for target in targets]), numpy.concatenate(said) if said else None


def _augmented_doc(example: Example) -> Doc:
    words, doc = get_augmented(example.reference) or [], example.predicted
    if len(words) != len(doc) or not same_tokens(doc, example.reference):
        raise WeaknerError(Errors.WK021.format(what="augmented words", text=example.reference.text[:50]))
    return Doc(doc.vocab, words=words, spaces=[bool(token.whitespace_) for token in doc])


make_token_ner = register_component("token_ner", TokenNer, default_blocks("token_ner", "model", "objective"))
