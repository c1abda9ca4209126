"""Named-entity recognition as machine reading comprehension: every label is a question about the text."""

from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats3d

from ..encoders.queried import Queried
from ..errors import Errors, WeaknerError, check_range
from ..files import is_text
from ..heads.entities import EntityHead, Prediction
from ..heads.factories import entity_head_factory
from ..heads.head import Loss, TrainingBatch
from ..heads.layers import to_host
from ..heads.spans import merge_candidates, warn_of_spans
from ..heads.teacher import HeadWithTeacher, Teacher, require_own_encoder
from ..ty import Array, BoolMask, Entity, SpanArray
from .boundaries import Boundaries, Relabeler, boundaries_loss, probabilities, read_boundaries, score_boundaries
from .decoding import find_entities, most_probable, pair_boundaries, select_answers
from .entity_types import EntityTyping, Mentions
from .queries import check_queries


class MRCTarget(NamedTuple):
    """The target of one sentence.

    boundaries (Boundaries): Where entities start and end.
    mentions (Optional[Mentions]): Its entities, for the types; None: types are not learned.
    """

    boundaries: Boundaries
    mentions: Optional[Mentions] = None


# Probability above which `score_candidates` uses starts and ends.
_LEAST = 0.1


class MRCNer(HeadWithTeacher[List[Floats3d], MRCTarget, Prediction], EntityHead[List[Floats3d], MRCTarget]):
    """A component that represents every label by a question, predicts where answers begin and end, and writes them to
    `doc.ents` (Li et al. 2020).

    All pairs of a start and an end are tried, and the entities without overlaps that have the largest sum of
    probabilities over the Doc are kept. (The papers pair every start with the nearest end, which is often an improbable
    one if the threshold is low.) Labels have no weights of their own, so questions of a trained component can be
    changed (`set_question`). `ent._.weakner_score` is the product of the probabilities of the entity's start and end.

    vocab (Vocab): The shared vocabulary.
    model (Model[Queried, List[Floats3d]]): The extractor, e.g. `spacy_weakner.MRCExtractor.v1`.
    name (str): Name of the component in the pipeline.
    threshold (float): Probability above which boundaries are predicted. Of more than 100,000 pairs in a Doc, only the
        most probable ones are used.
    max_width (Optional[int]): Maximum number of tokens of an entity, in training and prediction. None: any number, but
        a start is paired with the 64 nearest ends only.
    positive_weight (float): Factor on the loss of positive boundaries. Values above 1 compensate for the many negative
        tokens.
    relabel (Optional[Relabeler]): Replace the annotated labels by the predictions of the teacher: the model at the last
        renewal by the training clock, or, with `at_start`, at the start of training. For example
        `spacy_weakner.SelfPicking.v1`.
    typing (Optional[EntityTyping]): Also learn types within the labels, for example `spacy_weakner.FineTyping.v1`. The
        model needs a layer for them (its `n_types`).
    nested (bool): Keep entities for each label separately, so those of different labels may overlap. All (that overlap
        no existing entity of the Doc) are written to the span group `pred:<name>`, with their probabilities in
        `attrs["scores"]`.
    spans_key (Optional[str]): Span group of the training examples to train on, which may overlap; None: `doc.ents`.
        Predictions are also written to this group: with `nested` those of each label, otherwise the entities. Its score
        `spans_<spans_key>_f` gets a weight in `[training.score_weights]`, unless it has one there.
    head_learn_rate (float): Factor on the learning rate of the layers that score boundaries.
    overwrite (bool): Whether to replace existing entities in `doc.ents`.
    annotate_ents (bool): Write `doc.ents`. If False, predictions are written only to the span group `pred:<name>`, with
        their probabilities, for another component that selects from them.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): If a setting is out of range, or the encoder belongs to another component.
    """

    labels_have_weights = False

    def __init__(
        self,
        vocab: Vocab,
        model: Model[Queried, List[Floats3d]],
        name: str = "mrc_ner",
        *,
        threshold: float = 0.5,
        max_width: Optional[int] = 10,
        positive_weight: float = 1.0,
        relabel: Optional[Relabeler] = None,
        typing: Optional[EntityTyping] = None,
        nested: bool = False,
        spans_key: Optional[str] = None,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        annotate_ents: bool = True,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, overwrite=overwrite, scorer=scorer)
        self.annotate_ents = annotate_ents
        check_range("threshold", threshold, 0.0, 1.0)
        check_range("positive_weight", positive_weight, 0.0, None)
        check_range("max_width", max_width, 1, None, optional=True)
        require_own_encoder(name, model, "reads its questions with the encoder of the text", "encoder.tok2vec")
        self.threshold = threshold
        self.max_width = max_width
        self.positive_weight = positive_weight
        self.relabel = relabel
        layer = model.maybe_get_ref("typing")
        if typing is not None and (layer is None or layer.get_dim("nO") != typing.n_types):
            raise WeaknerError(
                f"'{name}' must learn {typing.n_types} types, but its model has no layer for them. Set n_types = "
                f"{typing.n_types} in its [model]."
            )
        self.typing = typing
        self.needs_clock = relabel is not None or typing is not None
        # Types must be found before the first update.
        self._relabels_at_start: bool = getattr(relabel, "at_start", False)
        self._teacher: Teacher = Teacher(typing is not None or self._relabels_at_start)
        self.nested = nested
        self.spans_key = spans_key
        self.cfg["queries"] = {}

    # Labels and questions

    @property
    def queries(self) -> Dict[str, str]:
        """RETURNS (Dict[str, str]): The question of each label."""
        return dict(self.cfg["queries"])

    def _check_stored(self) -> None:
        super()._check_stored()
        queries: Any = self.cfg.get("queries")
        asked = [label for label, query in queries.items() if is_text(query)] if isinstance(queries, dict) else []
        if self.is_initialized and not {*self.labels} <= {*asked}:
            reason = "its questions in 'cfg' are not strings by label"
            raise WeaknerError(Errors.WK800.format(name=self.name, reason=reason))

    def set_question(self, label: str, query: str) -> None:
        """Add a label with its question, or change the question of a label. Also possible after training.

        label (str): The label.
        query (str): The question.
        RAISES (WeaknerError): If one of them is empty.
        """
        check_queries({label: query}, self.name)
        if label not in self.labels:
            self.cfg["labels"] = [*self.cfg["labels"], label]
            self.vocab.strings.add(label)
        self.cfg["queries"] = {**self.cfg["queries"], label: query}

    @property
    def n_outputs(self) -> int:
        """RETURNS (int): 2: a score for starts, and one for ends."""
        return 2

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
        queries: Optional[Dict[str, str]] = None,
    ) -> None:
        """Set the questions and build the model; warn if entities are too wide to be predicted, and if no example has
        the span group to train on.

        get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; None: those of the questions.
        queries (Optional[Dict[str, str]]): The question of each label, e.g. from `spacy_weakner.Queries.v1`.
        RAISES (WeaknerError): If a label, given or in the examples, has no question.
        """
        given = queries or {}
        if given and self.is_initialized:  # the questions of an earlier training
            self.cfg["labels"], self.cfg["queries"] = [], {}
        for label in given if labels is None else labels:
            if label in given:
                self.set_question(label, given[label])
        missing = [label for label in (*self.labels, *(labels or ())) if label not in self.cfg["queries"]]
        if missing or not self.cfg["queries"]:
            raise self._no_question(missing)
        super().initialize(get_examples, nlp=nlp, labels=list(labels or self.labels))
        if labels is None:  # given labels are intended; others then raise an error in training
            unasked = {label for eg in get_examples() for label in self.example_labels(eg)} - {*self.labels}
            if unasked:
                raise self._no_question(sorted(unasked))
        warn_of_spans(self.name, get_examples, self.spans_key, self.max_width)

    def _no_question(self, labels: Sequence[str]) -> WeaknerError:
        where = f"[initialize.components.{self.name}.queries]"
        reason = f"no question for the labels {', '.join(labels)}" if labels else "no questions are given"
        return WeaknerError(Errors.WK036.format(where=where, reason=reason))

    def reset_training(self) -> None:
        super().reset_training()
        if self.typing is not None:
            self.typing.reset()

    @property
    def outputs_per_token(self) -> int:
        """RETURNS (int): One for each question."""
        return max(1, len(self.labels))

    def model_inputs(self, docs: List[Doc]) -> Queried:
        """Return the Docs with the current questions: the weights may come from a component with other questions, and a
        teacher may be older than a question."""
        return Queried(docs, [self.cfg["queries"][label] for label in self.labels])

    # Training

    def encode_target(self, example: Example) -> MRCTarget:
        """Return where the annotated entities of an example start and end."""
        label_ids = {label: i for i, label in enumerate(self.labels)}
        return MRCTarget(read_boundaries(example, label_ids, spans_key=self.spans_key, max_width=self.max_width))

    def forward_loss(self, batch: TrainingBatch[MRCTarget]) -> Loss:
        """Compute the loss of all questions and of the types."""
        targets = self.targets_with_teacher(batch)
        outputs, backprop = self.begin_update(batch)
        vectors: List[Any] = list(outputs)
        wanted = [target.boundaries for target in targets]
        loss, learn_boundaries = boundaries_loss(self.model.get_ref("head"), vectors, wanted, self.positive_weight)
        if self.typing is None:
            return loss / batch.n_sentences, lambda: backprop(learn_boundaries())
        more, learn_types = self.typing.loss(self.model.get_ref("typing"), vectors, [to.mentions for to in targets])

        def learn() -> None:
            gradients = learn_boundaries()
            learn_types(gradients)
            backprop(gradients)

        return (loss + more) / batch.n_sentences, learn

    # The teacher

    def add_predictions(self, teacher: Model, docs: List[Doc], targets: List[MRCTarget]) -> List[MRCTarget]:
        if self.relabel is not None and (self._relabels_at_start or self._teacher.step):
            nothing = numpy.zeros((0, len(self.labels), 2))

            def read(_: List[Doc], vectors: Any) -> List[Array]:
                return list(map(probabilities, self._scores(vectors, teacher)))

            predicted = self.map_outputs(docs, read, nothing, model=teacher)
            targets = [
                MRCTarget(self.relabel(to.boundaries, prediction))
                for to, prediction in zip(targets, predicted, strict=True)
            ]
        if self.typing is not None:
            found = self._mentions(self.typing, docs, targets)
            targets = [to._replace(mentions=mentions) for to, mentions in zip(targets, found, strict=True)]
        return targets

    def _mentions(self, typing: EntityTyping, docs: List[Doc], targets: List[MRCTarget]) -> List[Mentions]:
        """Return the entities of some sentences, with the teacher's vectors."""
        spans = [to.boundaries.spans for to in targets]
        ops, width = self.model.ops, self.model.get_ref("typing").get_dim("nI")

        def read(_: List[Doc], vectors: Any, spans: List[SpanArray]) -> List[Mentions]:
            pooled = [typing.pool(values[..., :width], some) for values, some in zip(vectors, spans, strict=True)]
            return list(map(Mentions, spans, to_host(ops, pooled)))

        nothing = Mentions(numpy.zeros((0, 3), dtype="int64"), numpy.zeros((0, 0), dtype="float32"))
        return self.map_outputs(docs, read, nothing, spans, model=self._teacher.model)

    def observe(self, batches: Iterator[TrainingBatch[MRCTarget]]) -> None:
        typing = self.typing
        if typing is not None:
            found = (self._mentions(typing, batch.texts.docs, batch.targets) for batch in batches)
            vectors = (mentions.vectors for some in found for mentions in some if len(mentions.spans))
            typing.renew(self.model.get_ref("typing"), vectors)

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used = self.annotated(examples)
        golds = [self.encode_target(eg).boundaries for eg in used]

        def read(_: List[Doc], vectors: Any, wanted: List[Boundaries]) -> List[Array]:
            scores = self._biased_scores(vectors)
            return [
                numpy.where(to.wanted, -values, values)[to.known] for values, to in zip(scores, wanted, strict=True)
            ]

        every = numpy.concatenate(self.map_outputs((eg.predicted for eg in used), read, numpy.zeros(0), golds))
        if not len(every):  # the annotation cannot be aligned
            raise WeaknerError(Errors.WK025.format(name=self.name))
        return lambda temperature: float(numpy.logaddexp(0.0, every / temperature).mean())

    # Prediction

    def decode(self, docs: List[Doc], outputs: List[Floats3d]) -> List[Prediction]:
        """Pair starts and ends, and resolve overlaps."""
        found = self._find(outputs, self.threshold, [self.preset_tokens(doc) for doc in docs])
        return [select_answers(entities, len(doc), self.nested) for doc, entities in zip(docs, found, strict=True)]

    def score_candidates(self, docs: Iterable[Doc]) -> List[List[Tuple[Entity, float]]]:
        """Return the spans that may be entities, with their probabilities.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[List[Tuple[Entity, float]]]): For each Doc, the pairs of a start and an end that both have a
            probability above 0.1, or above the threshold if it is lower.
        """

        def read(docs: List[Doc], outputs: List[Floats3d]) -> List[List[Tuple[Entity, float]]]:
            free = [numpy.zeros(len(doc), dtype=bool) for doc in docs]
            found = self._find(outputs, min(self.threshold, _LEAST), free)
            return [[(entity, score) for entity, (_, score) in sorted(entities.items())] for entities in found]

        return self.map_sentences(docs, read, [], merge_candidates)

    def _find(
        self, outputs: List[Floats3d], threshold: float, preset: List[BoolMask]
    ) -> List[Dict[Entity, Tuple[float, float]]]:
        """Find entities, which may overlap; see `find_entities`."""
        boundaries = self._biased_scores(outputs)
        spans = [pair_boundaries(probabilities(scores) > threshold, self.max_width) for scores in boundaries]
        spans = list(map(most_probable, spans, boundaries))
        read = partial(find_entities, labels=self.labels, temperature=self.temperature)
        return list(map(read, boundaries, spans, preset))

    def _scores(self, vectors: Any, model: Optional[Model] = None) -> List[Array]:
        """Compute log-odds of boundaries, (n_tokens, n_labels, 2) for each Doc, on the host."""
        return score_boundaries((self.model if model is None else model).get_ref("head"), list(vectors))

    def _biased_scores(self, vectors: Any) -> List[Array]:
        """Return these log-odds minus the bias, which favors "O"."""
        return [odds - self.bias for odds in self._scores(vectors)]


make_mrc_ner = entity_head_factory("mrc_ner", MRCNer, "model")
