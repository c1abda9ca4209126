"""Named-entity recognition by classifying spans."""

from itertools import pairwise
from pathlib import Path
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..batching import split_rows
from ..corpus.overlaps import without_overlaps
from ..corpus.weak import is_weak
from ..errors import Errors, WeaknerError
from ..heads.entities import EntityHead, Prediction
from ..heads.factories import entity_head_factory
from ..heads.head import Loss, TrainingBatch
from ..heads.spans import merge_candidates, warn_of_spans
from ..losses import log_softmax
from ..ty import BoolMask, Entity, SpanArray
from .candidates import enumerate_spans, span_index, touches, widest, without
from .losses import cross_entropy, unlikelihood
from .oracle import Oracle
from .samplers import START, NegativeSampler
from .targets import LabelIds, SpanTarget, read_target

# Minimum probability of spans that `score_candidates` returns.
_LEAST = 0.05


class SpanNer(EntityHead[List[Floats2d], SpanTarget]):
    """A component that classifies spans, and writes entities to `doc.ents`: the most probable first, without overlaps.

    It is trained on the annotated entities and on a few other spans, sampled in every update, so that unlabeled
    entities are seldom taken as "O" (Li et al. 2021). It does not distinguish "O" and missing tokens: all spans except
    the annotated ones may be sampled, in sentences that are annotated or weakly labeled. `ent._.weakner_score` is the
    probability of the entity's label, given its span.

    vocab (Vocab): The shared vocabulary.
    model (Model[List[Doc], List[Floats2d]]): The classifier, e.g. `spacy_weakner.SpanClassifier.v1`.
    name (str): Name of the component in the pipeline.
    sampler (NegativeSampler): The sampler of negatives, e.g. `spacy_weakner.UniformNegativeSampler.v1`.
    max_width (Optional[int]): Maximum number of tokens of an entity: wider spans are neither predicted nor sampled.
        None (the papers): any width in sentences of up to 1,000 tokens, where time and memory grow with the square of
        the length; in longer ones, the width at which there are a million spans, but at least 10.
    nested (bool): Write all spans that are entities (and overlap no existing entity of the Doc), including overlapping
        ones, to the span group `pred:<name>`, with their probabilities in `attrs["scores"]`.
    spans_key (Optional[str]): Span group of the training examples to train on, which may overlap; None: `doc.ents`.
        Predictions are also written to this group: with `nested` all spans, otherwise the entities. Its score
        `spans_<spans_key>_f` gets a weight in `[training.score_weights]`, unless it has one there.
    incorrect_spans_key (Optional[str]): Span group of the training examples with spans that are known to be wrong: they
        do not have their label or, if they have no label, are not entities. (As in spaCy's `ner`.)
    head_learn_rate (float): Factor on the learning rate of the scorer.
    overwrite (bool): Whether to replace existing entities in `doc.ents`.
    annotate_ents (bool): Write `doc.ents`. If False, predictions are written only to the span group `pred:<name>`, with
        their probabilities, for another component that selects from them.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): If the maximum width is below 1.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "span_ner",
        *,
        sampler: NegativeSampler,
        max_width: Optional[int] = 10,
        nested: bool = False,
        spans_key: Optional[str] = None,
        incorrect_spans_key: Optional[str] = None,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        annotate_ents: bool = True,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, overwrite=overwrite, scorer=scorer)
        self.annotate_ents = annotate_ents
        if max_width is not None and max_width < 1:
            raise WeaknerError(Errors.WK005.format(setting="max_width", value=max_width, expected="1 or more, or null"))
        self.sampler = sampler
        self.needs_clock = sampler.weighted
        self.max_width = max_width
        self.nested = nested
        self.spans_key = spans_key
        self.incorrect_spans_key = incorrect_spans_key
        self._oracle: Optional[Oracle] = None

    @property
    def n_outputs(self) -> int:
        """RETURNS (int): The number of labels, including "O"."""
        return len(self.labels) + 1

    # Training

    def is_annotated(self, example: Example) -> bool:
        """Return True if an example is annotated with entities. Weakly labeled ones are, even without any entity: their
        spans may be sampled like those of others."""
        return (self.spans_key is None and is_weak(example.reference)) or super().is_annotated(example)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
        oracle: Optional[Path] = None,
    ) -> None:
        """Find the labels and build the model; warn if entities are too wide to be predicted, and if no example has the
        span group to train on.

        get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; None: those of the examples, sorted.
        oracle (Optional[Path]): A trained pipeline with a `span_ner` of the same labels, for the sampler. It is neither
            trained nor saved here: a loaded pipeline has no oracle for further training until it is initialized.
        RAISES (WeaknerError): If there are no labels, or the oracle is unusable, or missing though the sampler needs
            it.
        """
        super().initialize(get_examples, nlp=nlp, labels=labels)
        self._oracle = None if oracle is None else Oracle(oracle, self.name, self.labels, self.max_width)
        self._check_oracle()
        warn_of_spans(self.name, get_examples, self.spans_key, self.max_width)

    def encode_target(self, example: Example) -> SpanTarget:
        """Return the annotated spans of an example, and those known to be wrong."""
        return read_target(
            example,
            {label: i for i, label in enumerate(self.labels, start=1)},
            self.is_annotated(example),
            spans_key=self.spans_key,
            incorrect_spans_key=self.incorrect_spans_key,
            max_width=widest(len(example.predicted), self.max_width),
        )

    def forward_loss(self, batch: TrainingBatch[SpanTarget]) -> Loss:
        """Sample negatives, and score them together with the annotated spans."""
        outputs, backprop = self.begin_update(batch)
        ops: Any = self.model.ops
        drawn = self._draw(outputs, batch.targets)
        n = len(drawn.spans)
        if not n + len(drawn.wrong_spans):
            return 0.0, lambda: backprop([ops.xp.zeros_like(rows) for rows in outputs])
        spans = numpy.concatenate([drawn.spans, drawn.wrong_spans])
        scores, backprop_head = self.model.get_ref("head").begin_update(
            (ops.flatten(outputs), ops.asarray2i(spans.astype("int32")))
        )
        on_host = ops.to_numpy(scores)
        loss, gradient = cross_entropy(on_host[:n], drawn.labels)
        more, wrong_gradient = unlikelihood(on_host[n:], drawn.wrong_labels)

        def learn() -> None:
            d_scores = ops.asarray2f(numpy.concatenate([gradient, wrong_gradient]).astype("float32"))
            backprop(split_rows(backprop_head(d_scores), outputs))

        return (loss + more) / batch.n_sentences, learn

    def _draw(self, vectors: List[Floats2d], targets: List[SpanTarget]) -> "_Drawn":
        """Select the spans of an update."""
        offsets = numpy.cumsum([0, *(target.n_tokens for target in targets)])
        candidates = [self._candidates(target) for target in targets]
        docs = [target.doc for target in targets]
        log_probabilities: List[Any] = [None] * len(targets)
        self._check_oracle()
        if self._oracle is not None:
            log_probabilities = self._oracle(docs, candidates)
        elif self.sampler.weighted:
            log_probabilities = self._score_candidates(vectors, candidates)
        tick = START if self._tick is None else self._tick
        spans, labels, wrong, wrong_labels = [], [], [], []
        for target, indices, given, offset in zip(targets, candidates, log_probabilities, offsets, strict=False):
            drawn = indices[self.sampler(len(indices), target.n_tokens, given, tick)] if len(indices) else indices
            spans += [target.spans + offset, drawn + offset]
            labels += [target.labels, numpy.zeros(len(drawn), dtype="int64")]
            wrong.append(target.wrong_spans + offset)
            wrong_labels.append(target.wrong_labels)
        return _Drawn(*map(numpy.concatenate, (spans, labels, wrong, wrong_labels)))

    def _check_oracle(self) -> None:
        if self.sampler.exclude and self._oracle is None:
            raise WeaknerError(
                f"'{self.name}' excludes spans by an oracle (exclude = {self.sampler.exclude}), but has none. Give a "
                f"pipeline that was trained with uniform negatives, in [initialize.components.{self.name}] oracle = "
                "PATH, or set exclude = 0."
            )
        if self._oracle is not None and not (self.sampler.exclude or self.sampler.weighted):
            raise WeaknerError(
                f"'{self.name}' has an oracle that its sampler never uses. Set exclude above 0, use a "
                "WeightedNegativeSampler, or remove the oracle."
            )

    def _candidates(self, target: SpanTarget) -> SpanArray:
        # All spans that are neither annotated nor known to be wrong.
        if not target.annotated:
            return enumerate_spans(0)
        spans = enumerate_spans(target.n_tokens, self.max_width)
        known = [
            span_index(listed.tolist(), target.n_tokens, self.max_width)
            for listed in (target.spans, target.wrong_spans)
        ]
        if len(target.unclear):
            unclear = numpy.isin(numpy.arange(target.n_tokens), target.unclear)
            known.append(numpy.flatnonzero(touches(spans, unclear)))
        return spans[without(len(spans), known)]

    def _score_candidates(self, vectors: List[Floats2d], candidates: List[SpanArray]) -> List[Any]:
        # No dropout in the scorer; the encoder is not run again.
        if not any(map(len, candidates)):
            return [numpy.zeros((0, self.n_outputs))] * len(candidates)
        return split_rows(log_softmax(self._score(vectors, candidates)), candidates)

    def _score(self, vectors: List[Floats2d], spans: List[SpanArray]) -> Any:
        """Return the concatenated scores of the spans of all sentences, on the host."""
        ops = self.model.ops
        offsets = numpy.cumsum([0, *map(len, vectors)])
        every: Any = numpy.concatenate([indices + offset for indices, offset in zip(spans, offsets, strict=False)])
        inputs = (ops.flatten(vectors), ops.asarray2i(every.astype("int32")))
        return ops.to_numpy(self.model.get_ref("head").predict(inputs))

    def _biased_scores(self, vectors: List[Floats2d], spans: List[SpanArray]) -> Any:
        """Return these scores with the bias, as in prediction."""
        towards_outside: Any = self.bias * (numpy.arange(self.n_outputs) == 0)
        return self._score(vectors, spans) + towards_outside.astype("float32")

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used = self.annotated(examples)
        targets = [self.encode_target(eg) for eg in used]

        def score(docs: List[Doc], vectors: List[Floats2d], targets: List[SpanTarget]) -> List[Any]:
            spans = [enumerate_spans(len(doc), self.max_width) for doc in docs]
            parts = split_rows(self._biased_scores(vectors, spans), spans)
            labels = [_labels(target, len(some), self.max_width) for target, some in zip(targets, spans, strict=True)]
            return list(zip(parts, labels, strict=True))

        nothing: Any = None
        pairs = self.map_outputs([eg.predicted for eg in used], score, nothing, targets)
        scores = numpy.concatenate([scores for scores, _ in pairs]).astype("float64")
        labels = numpy.concatenate([labels for _, labels in pairs])
        return lambda temperature: cross_entropy(scores / temperature, labels)[0] / len(labels)

    # Prediction

    def decode(self, docs: List[Doc], outputs: List[Floats2d]) -> List[Prediction]:
        """Classify the spans of some Docs. Entities are kept in the order of their probability, unless they overlap one
        that is kept (Li et al. 2021, Section 3.3)."""
        spans = [_allowed(self.preset_tokens(doc), self.max_width) for doc in docs]
        if not any(map(len, spans)):
            return [self.empty_prediction for _ in docs]
        scores = self._biased_scores(outputs, spans)
        labels = scores.argmax(axis=1)
        rows = numpy.flatnonzero(labels)
        index, best = numpy.arange(len(rows)), labels[rows]
        # Ranks are computed without the temperature, so that calibration does not change entities.
        ranks = log_softmax(scores[rows])[index, best]
        probabilities = numpy.exp(log_softmax(scores[rows], self.temperature)[index, best]).tolist()
        found = zip(numpy.concatenate(spans)[rows].tolist(), best.tolist(), strict=True)
        entities = [(start, end, self.labels[label - 1]) for (start, end), label in found]
        borders = numpy.searchsorted(rows, numpy.cumsum([0, *map(len, spans)])).tolist()
        result = []
        for doc, (low, high) in zip(docs, pairwise(borders), strict=True):
            some, chances = entities[low:high], probabilities[low:high]
            chosen = without_overlaps([entity[:2] for entity in some], ranks[low:high], len(doc))
            candidates = (some, chances) if self.nested else (None, ())
            result.append(Prediction([some[i] for i in chosen], [chances[i] for i in chosen], *candidates))
        return result

    def score_candidates(self, docs: Iterable[Doc]) -> List[List[Tuple[Entity, float]]]:
        """Return the spans that may be entities, with their probabilities.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[List[Tuple[Entity, float]]]): For each Doc, the spans and labels with a probability of at least
            0.05, by start and end.
        """

        def read(docs: List[Doc], vectors: List[Floats2d]) -> List[List[Tuple[Entity, float]]]:
            spans = [enumerate_spans(len(doc), self.max_width) for doc in docs]
            return list(map(self._probable, spans, self._log_probabilities(docs, vectors, spans)))

        return self.map_sentences(docs, read, [], merge_candidates)

    def _probable(self, spans: SpanArray, log_probabilities: Any) -> List[Tuple[Entity, float]]:
        probabilities = numpy.exp(log_probabilities)[:, 1:]
        rows, labels = numpy.nonzero(probabilities >= _LEAST)
        found = zip(spans[rows].tolist(), labels.tolist(), probabilities[rows, labels].tolist(), strict=True)
        return [((start, end, self.labels[label]), score) for (start, end), label, score in found]

    def span_log_probabilities(self, docs: Iterable[Doc], spans: Sequence[SpanArray]) -> List[Any]:
        """Compute the log-probabilities of some spans.

        docs (Iterable[Doc]): The Docs, which are not split; not changed.
        spans (Sequence[SpanArray]): Spans of each Doc, shape (n_spans, 2).
        RETURNS (List[Any]): Log-probabilities for each Doc, shape (n_spans, n_labels), "O" first.
        """
        nothing: Any = numpy.zeros((0, self.n_outputs))
        return self.map_outputs(docs, self._log_probabilities, nothing, spans)

    def _log_probabilities(self, docs: List[Doc], vectors: List[Floats2d], spans: List[SpanArray]) -> List[Any]:
        if not any(map(len, spans)):
            return [numpy.zeros((0, self.n_outputs)) for _ in docs]
        return split_rows(log_softmax(self._biased_scores(vectors, spans), self.temperature), spans)


class _Drawn(NamedTuple):
    """The spans of one update, as offsets into the concatenated tokens."""

    spans: SpanArray
    labels: LabelIds
    wrong_spans: SpanArray
    wrong_labels: LabelIds


def _labels(target: SpanTarget, n_spans: int, max_width: Optional[int]) -> LabelIds:
    """Return the label of every span of a complete annotation, in the order of `enumerate_spans`."""
    labels = numpy.zeros(n_spans, dtype="int64")
    labels[span_index(target.spans.tolist(), target.n_tokens, max_width)] = target.labels
    return labels


def _allowed(preset: BoolMask, max_width: Optional[int]) -> SpanArray:
    """Return the spans of a Doc that may be entities: they contain no token whose annotation must not change."""
    spans = enumerate_spans(len(preset), max_width)
    return spans[~touches(spans, preset)] if preset.any() else spans


make_span_ner = entity_head_factory("span_ner", SpanNer, "model", "sampler")
