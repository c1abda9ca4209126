"""Named-entity recognition by classifying tokens."""

from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..annotations.entities import trim_whitespace
from ..annotations.tags import MISSING, SCHEMES, TagScheme, make_scheme, same_tokens
from ..annotations.weak import get_augmented
from ..errors import Errors, WeaknerError
from ..losses import Array
from ..training.base import Prediction
from ..training.defaults import default_config
from ..training.taught import RENEWAL_BATCH, TaughtHead
from ..training.teacher import require_own_encoder
from ..ty import PathScore
from .distribution import read_scores
from .objective import Augmented, Objective, TokenBatch

DEFAULTS = default_config("token_ner")


@Language.factory(
    "token_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={
        "model": DEFAULTS["model"],
        "objective": DEFAULTS["objective"],
        "scheme": "IO",
        "teacher_decay": 0.0,
        "head_learn_rate": 1.0,
        "overwrite": False,
        "scorer": {"@scorers": "spacy.ner_scorer.v1"},
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def make_token_ner(
    nlp: Language,
    name: str,
    model: Model[List[Doc], List[Floats2d]],
    objective: Objective,
    scheme: str,
    teacher_decay: float,
    head_learn_rate: float,
    overwrite: bool,
    scorer: Optional[Callable],
) -> "TokenNer":
    """Create the component; the arguments are those of `TokenNer`."""
    return TokenNer(
        nlp.vocab,
        model,
        name,
        objective=objective,
        scheme=scheme,
        teacher_decay=teacher_decay,
        head_learn_rate=head_learn_rate,
        overwrite=overwrite,
        scorer=scorer,
    )


class TokenTarget(NamedTuple):
    """What one sentence is trained on.

    rows (Array): One row per token; see `Objective.encode`.
    doc (Doc): The sentence, for the teacher.
    augmented (bool): Whether an augmented form of it is in the batch.
    """

    rows: Array
    doc: Doc
    augmented: bool


class TokenNer(TaughtHead):
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
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(
            vocab,
            model,
            name,
            teacher_decay=teacher_decay,
            head_learn_rate=head_learn_rate,
            overwrite=overwrite,
            scorer=scorer,
        )
        if scheme not in SCHEMES:
            raise WeaknerError(Errors.WK009.format(scheme=scheme, schemes=", ".join(SCHEMES)))
        if objective.uses_teacher or objective.uses_augmented:
            require_own_encoder(name, model)
        self.objective = objective
        self.needs_clock = objective.uses_teacher
        self.tag_scheme = scheme

    @property
    def teacher_at_start(self) -> bool:
        """RETURNS (bool): What the objective says."""
        return self.objective.teacher_at_start

    @property
    def scheme(self) -> TagScheme:
        """RETURNS (TagScheme): The tag scheme over the component's labels."""
        return make_scheme(self.tag_scheme, self.labels)

    @property
    def n_outputs(self) -> int:
        """RETURNS (int): The number of tags: one score for the entity head, and one for each tag but "O"."""
        return len(self.scheme)

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The columns of `distributions`: the tags."""
        return self.scheme.tags

    # Training

    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels in what the objective learns from of an example."""
        return self.objective.labels(example.reference)

    def encode_target(self, example: Example) -> TokenTarget:
        """What the objective learns from of an example; see its `encode`."""
        augmented = self.objective.uses_augmented and get_augmented(example.reference) is not None
        return TokenTarget(self.objective.encode(example, self.scheme), example.predicted, augmented)

    def training_docs(self, examples: List[Example]) -> List[Doc]:
        """The Docs of the examples and, for objectives that want them, their augmented forms."""
        docs = super().training_docs(examples)
        if not self.objective.uses_augmented:
            return docs
        return docs + [_augmented_doc(eg) for eg in examples if get_augmented(eg.reference) is not None]

    def compute_loss(self, scores: List[Floats2d], targets: List[TokenTarget]) -> Tuple[float, List[Floats2d]]:
        """The objective on all tokens of the batch.

        scores (List[Floats2d]): The model's output, for the Docs of `training_docs`.
        targets (List[TokenTarget]): One per example.
        RETURNS (Tuple[float, List[Floats2d]]): Mean loss per sentence; per Doc the gradient of the sum.
        RAISES (WeaknerError): If the objective needs a teacher and there will never be one.
        """
        ops, n = self.model.ops, len(targets)
        outputs = [ops.to_numpy(own).reshape(-1, self.n_outputs) for own in scores]
        batch = TokenBatch(numpy.concatenate(outputs[:n]), _concatenate(targets), self._ask_teacher(targets))
        if len(outputs) > n:
            starts = numpy.cumsum([0, *(len(own) for own in outputs[:n])])
            tokens = [
                numpy.arange(start, start + len(target.rows))
                for start, target in zip(starts, targets, strict=False)
                if target.augmented
            ]
            batch = batch._replace(augmented=Augmented(numpy.concatenate(outputs[n:]), numpy.concatenate(tokens)))
        result = self.objective(batch)
        gradients = [result.outputs]
        if batch.augmented is not None:
            unused = result.augmented is None
            gradients.append(numpy.zeros_like(batch.augmented.outputs) if unused else result.augmented)
        gradient = numpy.concatenate(gradients).astype("float32")
        parts: List[Any] = numpy.split(gradient, numpy.cumsum([len(own) for own in outputs])[:-1])
        n_sentences = sum(len(target.rows) > 0 for target in targets)
        return result.loss / max(1, n_sentences), [ops.asarray2f(part) for part in parts]

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used = self.annotated(examples)
        scores: List[Any] = list(self.score_tokens([eg.predicted for eg in used]))
        outputs = numpy.concatenate(scores)
        tags = numpy.concatenate([self.scheme.from_example(eg) for eg in used])
        rows = numpy.flatnonzero(tags != MISSING)
        if not len(rows):  # what is annotated does not align
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return lambda temperature: -float(read_scores(outputs, temperature).joint()[rows, tags[rows]].mean())

    # The teacher

    def look_through_teacher(self, examples: Iterable[Example]) -> None:
        """Let the objective see what the teacher makes of the corpus.

        examples (Iterable[Example]): The corpus.
        RAISES (WeaknerError): If it has no tokens.
        """
        counts: List[int] = []
        self.objective.renew(self._observe(examples, counts))
        if not sum(counts):
            raise WeaknerError(Errors.WK037.format(name=self.name))

    def _observe(self, examples: Iterable[Example], counts: List[int]) -> Iterator[Tuple[Array, Array]]:
        for batch in minibatch(examples, RENEWAL_BATCH):
            targets = self.encode_targets(batch)
            rows = _concatenate(targets)
            counts.append(len(rows))
            yield rows, self._ask_teacher(targets)

    def _ask_teacher(self, targets: List[TokenTarget]) -> Any:
        teacher = self.ask_for_teacher() if self.needs_clock else None
        if teacher is None:
            return None
        nothing: Any = numpy.zeros((0, self.n_outputs), dtype="float32")
        docs = [target.doc for target in targets]
        return numpy.concatenate(self.map_scores(docs, lambda _, scores: scores, nothing, teacher))

    def training_statistics(self) -> Dict[str, float]:
        """RETURNS (Dict[str, float]): What the objective counted since the last call."""
        return self.objective.statistics()

    # Prediction

    def decode(self, docs: List[Doc], scores: List[Floats2d]) -> List[Prediction]:
        """The best tag of every token, and the probabilities of the entities that they make."""
        result = []
        for doc, outputs in zip(docs, scores, strict=True):
            log_probabilities = read_scores(outputs).joint()
            log_probabilities[self.preset_tokens(doc), 1:] = -numpy.inf
            tags = log_probabilities.argmax(axis=1)
            entities = trim_whitespace(doc, self.scheme.decode(tags.tolist()))
            chances = read_scores(outputs, self.temperature).joint()[numpy.arange(len(tags)), tags]
            result.append(
                Prediction(entities, [float(numpy.exp(chances[start:end].sum())) for start, end, _ in entities])
            )
        return result

    def distributions(self, docs: Iterable[Doc]) -> List[Floats2d]:
        """Distribution over the tags of every token.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[Floats2d]): Per Doc float32 (n_tokens, n_tags), columns as in `distribution_labels`.
        """

        def chances(_: List[Doc], scores: List[Floats2d]) -> List[Any]:
            return [numpy.exp(read_scores(own, self.temperature).joint()).astype("float32") for own in scores]

        nothing: Any = numpy.zeros((0, self.n_outputs), dtype="float32")
        return self.map_scores(docs, chances, nothing)

    def score_paths(self, docs: Iterable[Doc]) -> List[PathScore]:
        """The best tags of every Doc, with the sum of their log-probabilities, before and after calibration.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[PathScore]): One per Doc; the empty Doc has score 0 and log-probability 0.
        """
        names = self.scheme.tags

        def score(_: List[Doc], scores: List[Floats2d]) -> List[PathScore]:
            result = []
            for own in scores:
                joint = read_scores(own).joint()
                tags = joint.argmax(axis=1)
                rows = numpy.arange(len(tags))
                cooled = read_scores(own, self.temperature).joint()[rows, tags].sum()
                result.append(PathScore([names[tag] for tag in tags], float(joint[rows, tags].sum()), float(cooled)))
            return result

        return self.map_scores(docs, score, PathScore([], 0.0, 0.0))


def _concatenate(targets: List[TokenTarget]) -> Array:
    return numpy.concatenate([target.rows for target in targets])


def _augmented_doc(example: Example) -> Doc:
    words, doc = get_augmented(example.reference) or [], example.predicted
    if len(words) != len(doc) or not same_tokens(doc, example.reference):
        raise WeaknerError(Errors.WK021.format(what="augmented words", text=example.reference.text[:50]))
    return Doc(doc.vocab, words=words, spaces=[bool(token.whitespace_) for token in doc])
