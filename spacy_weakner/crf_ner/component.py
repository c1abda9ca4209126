"""Named-entity recognition with a conditional random field that supports missing labels."""

import warnings
from typing import Any, Callable, Iterable, List, Optional, Sequence, Union

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..corpus.tags import make_scheme
from ..corpus.weak import absent_groups, is_weak, weak_group
from ..crf.decoding import entity_log_probabilities, probable_spans, viterbi
from ..crf.kernel import CRFParameters, Lattice, PaddedBatch, forward_backward, pad_emissions
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..heads.entities import Prediction, make_predictions
from ..heads.factories import entity_head_factory
from ..heads.head import Loss, TrainingBatch
from ..heads.layers import to_device, to_host
from ..heads.tagging import TaggingHead, TagScores
from ..sources.features import SourceFeatureSettings, set_weights, weak_marked
from ..sources.initial import gold_with_sources, initial_weights, starting_weights
from ..ty import Array, PathScore
from .likelihood import CRFTarget, SequenceLoss, sentence_losses
from .model import add_crf_gradient, crf_parameters

DECODING = "decoding"
# Minimum probability of a candidate, except for those that are also entities.
_LEAST = 0.05


class CRFNer(TaggingHead[CRFTarget]):
    """A component that tags tokens with a linear-chain CRF and writes the entities of the best sequence to `doc.ents`.

    In training, tokens with missing annotation are marginalized. Existing entities in `doc.ents` are kept (unless
    `overwrite`): the decoder treats their tokens as "O".

    vocab (Vocab): The shared vocabulary.
    model (Model[List[Doc], List[Floats2d]]): The tagger, e.g. `spacy_weakner.CRFTagger.v1`.
    name (str): Name of the component in the pipeline.
    loss (SequenceLoss): The loss to minimize, e.g. `spacy_weakner.PartialCRF.v1`.
    scheme (str): Tag scheme: "IO", "BIO" or "IOBES".
    constrain (Union[bool, str]): Where to forbid transitions that the scheme does not allow. True: in training and in
        decoding; "decoding": not in training, so that annotations may break the scheme, as completed weak labels do.
    scores (bool): Set `ent._.weakner_score` to the entity's marginal probability: the sum over all tag sequences that
        contain exactly this entity. If False, it is None, which saves a forward-backward pass.
    nested (bool): Write all entities with a probability of at least 0.05, including overlapping ones, to the span group
        `pred:<name>`, with their marginal probabilities in `attrs["scores"]`.
    threshold (float): Minimum (calibrated) probability of entities that are written, also if `scores` is False.
    head_learn_rate (float): Factor on the learning rate of the emission layer and the transitions.
    overwrite (bool): Whether to replace existing entities in `doc.ents`.
    annotate_ents (bool): Write `doc.ents`. If False, predictions are written only to the span group `pred:<name>`, with
        their probabilities, for another component that selects from them.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): If the scheme is unknown, `constrain` is invalid, or `threshold` is not in [0, 1].
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "crf_ner",
        *,
        loss: SequenceLoss,
        scheme: str = "BIO",
        constrain: Union[bool, str] = True,
        scores: bool = False,
        nested: bool = False,
        threshold: float = 0.0,
        head_learn_rate: float = 1.0,
        overwrite: bool = False,
        annotate_ents: bool = True,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, overwrite=overwrite, scorer=scorer)
        self.annotate_ents = annotate_ents
        self.tag_scheme = make_scheme(scheme, ()).name  # raises an error for an unknown scheme
        if constrain not in (True, False, DECODING):
            expected = f"true, false or '{DECODING}'"
            raise WeaknerError(Errors.WK005.format(setting="constrain", value=repr(constrain), expected=expected))
        check_range("threshold", threshold, 0.0, 1.0)
        self.loss = loss
        self.constrain = constrain
        self.scores = scores
        self.nested = nested
        self.threshold = threshold
        self._sources_checked = False

    # Source features

    @property
    def sources_read(self) -> List[str]:
        """RETURNS (List[str]): The weak sources whose labels are features of the model."""
        layer = self.model.maybe_get_ref("source_features")
        return [] if layer is None else list(layer.attrs["settings"].sources)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model. The weights of source features, if there are any, are initialized so
        that the model predicts the labels of the sources. The calibration is reset.

        get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; None: those of the examples, sorted.
        RAISES (WeaknerError): If there are no labels.
        """
        super().initialize(get_examples, nlp=nlp, labels=labels)
        self._sources_checked = False
        layer = self.model.maybe_get_ref("source_features")
        if layer is not None:
            settings: SourceFeatureSettings = layer.attrs["settings"]
            initial = initial_weights(
                settings,
                self.labels,
                lambda: gold_with_sources(filter(self.is_annotated, get_examples()), settings.sources, nlp),
            )
            set_weights(layer, self.labels, starting_weights(self.scheme, initial))

    def batch_loss(self, examples: List[Example]) -> Loss:
        """Compute the loss like `TrainableHead`, with weakly labeled sentences marked for the source features."""
        if not self.sources_read:
            return super().batch_loss(examples)
        self._check_sources(examples)
        with weak_marked(examples):
            return super().batch_loss(examples)

    def _check_sources(self, examples: List[Example]) -> None:
        """Warn if the first gold sentences have no labels of the sources that are features."""
        gold = [eg.predicted for eg in examples if len(eg.predicted) and not is_weak(eg.reference)]
        if self._sources_checked or not gold:
            return
        self._sources_checked = True
        groups = list(map(weak_group, self.sources_read))
        if not any(group in doc.spans for doc in gold for group in groups):
            warnings.warn(Warnings.WK906.format(name=self.name, groups=", ".join(groups)), stacklevel=4)

    def predict(self, docs: Iterable[Doc]) -> List[Prediction]:
        """Predict like `TrainableHead`; warn if a source that the model reads has labeled none of the Docs."""
        docs = list(docs)
        predictions = super().predict(docs)
        absent = absent_groups(docs, map(weak_group, self.sources_read))
        if absent:
            warnings.warn(Warnings.WK907.format(name=self.name, missing=", ".join(absent)), stacklevel=1)
        return predictions

    # Training

    def example_labels(self, example: Example) -> Iterable[str]:
        """Return the labels in the annotation that the loss uses."""
        return self.loss.labels(example.reference)

    def encode_target(self, example: Example) -> CRFTarget:
        """Return the target of an example for the loss; see its `encode`."""
        return self.loss.encode(example, self.scheme)

    def forward_loss(self, batch: TrainingBatch[CRFTarget]) -> Loss:
        """Compute the configured loss. The transition scores, which are not used in the forward pass, get their
        gradient here."""
        outputs, backprop = self.begin_update(batch)
        ops = self.model.ops
        parameters = crf_parameters(self.model) if self.constrain == DECODING else self._parameters()
        result = self.loss(parameters, to_host(ops, outputs), batch.targets)

        def learn() -> None:
            add_crf_gradient(self.model, result.parameters)
            backprop(to_device(ops, result.emissions))

        return result.loss, learn

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used = self.annotated(examples)
        emissions = self._biased(self.token_outputs(eg.predicted for eg in used))
        tags = [self.scheme.from_example(eg) for eg in used]
        parameters = self._parameters()

        def loss(temperature: float) -> float:
            calibrated = [scores / temperature for scores in emissions]
            losses, _ = sentence_losses(parameters.scaled(1 / temperature), calibrated, tags)
            return float(losses.mean())

        return loss

    # Prediction

    def decode(self, docs: List[Doc], outputs: List[Floats2d]) -> List[Prediction]:
        """Find the best sequences, and the probabilities of entities if the settings need them."""
        parameters, batch = self._parameters(), self._restrict_to_free_tokens(docs, self._padded(outputs))
        best = self.scheme.decode_all([path.tags for path in viterbi(parameters, batch)])
        wanted = self.scores or not self.annotate_ents
        if not (wanted or self.threshold or self.nested):
            return make_predictions(len(docs), best, self.labels)
        lattice = self._lattice(parameters, batch)
        probabilities = self._probabilities(lattice, best)
        kept = probabilities >= self.threshold
        result = make_predictions(len(docs), best[kept], self.labels, probabilities[kept] if wanted else None)
        if not self.nested:
            return result
        tags = numpy.array(
            [[*self.scheme.span_tags(label, 3)[:2], *self.scheme.span_tags(label, 1)] for label in self.labels]
        )
        every = probable_spans(lattice, tags, _LEAST)
        every[:, 0] = batch.order[every[:, 0]]
        every = every[self._probabilities(lattice, every) >= _LEAST]
        every = numpy.unique(numpy.concatenate([every, best]), axis=0)
        listed = make_predictions(len(docs), every, self.labels, self._probabilities(lattice, every))
        return [
            found._replace(candidates=more.entities, candidate_scores=more.scores)
            for found, more in zip(result, listed, strict=True)
        ]

    def score_tags(self, docs: Iterable[Doc]) -> List[TagScores]:
        """Return the best tag sequence of every Doc with its Viterbi score and log-probability, and the marginal
        distribution over the tags of every token.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[TagScores]): One pair per Doc; the empty Doc has score 0 and log-probability 0.
        """
        return self.map_sentences(docs, self._score_tags, self.no_tags, self.merge_tags)

    def _score_tags(self, docs: List[Doc], outputs: List[Floats2d]) -> List[TagScores]:
        parameters, batch = self._parameters(), self._padded(outputs)
        lattice = self._lattice(parameters, batch)
        rows = [rows.astype("float32") for rows in batch.unpad(lattice.token_marginals())]
        tags, log_z, paths = self.scheme.tags, lattice.log_z[numpy.argsort(batch.order)], []
        for path, total in zip(viterbi(parameters, batch), log_z.tolist(), strict=True):
            log_probability = min(0.0, path.score / self.temperature - total)
            paths.append(PathScore([tags[t] for t in path.tags], path.score, log_probability))
        return list(zip(paths, rows, strict=True))

    def _parameters(self) -> CRFParameters:
        parameters = crf_parameters(self.model)
        return parameters.constrained(*self.scheme.allowed_transitions()) if self.constrain else parameters

    def _padded(self, outputs: List[Floats2d]) -> PaddedBatch:
        return pad_emissions(self._biased(to_host(self.model.ops, outputs)))

    def _biased(self, emissions: Sequence[Any]) -> Sequence[Any]:
        towards_outside: Any = self.bias * (numpy.arange(self.n_outputs) == 0)
        return [scores + towards_outside for scores in emissions] if self.bias else emissions

    def _lattice(self, parameters: CRFParameters, batch: PaddedBatch) -> Lattice:
        calibrated = PaddedBatch(batch.emissions / self.temperature, batch.lengths, batch.order)
        return forward_backward(parameters.scaled(1 / self.temperature), calibrated)

    def _probabilities(self, lattice: Lattice, spans: NDArray[numpy.int64]) -> Array:
        """Compute the probabilities of spans, given as number of the Doc, start, end and number of the label."""
        scheme, labels = self.scheme, self.labels
        rows = numpy.argsort(lattice.batch.order)[spans[:, 0]]
        spelled = [(i, j, scheme.span_tags(labels[label], j - i)) for _, i, j, label in spans.tolist()]
        return numpy.exp(entity_log_probabilities(lattice, rows, spelled, scheme.continuations()))

    def _restrict_to_free_tokens(self, docs: List[Doc], batch: PaddedBatch) -> PaddedBatch:
        # The decoder treats tokens whose annotation must not change as "O".
        preset = [self.preset_tokens(doc) for doc in docs]
        if not any(tokens.any() for tokens in preset):
            return batch
        allowed = [~tokens[:, None] | (numpy.arange(self.n_outputs) == 0) for tokens in preset]
        return batch.restrict(batch.pad_like(allowed, True, "bool"))


make_crf_ner = entity_head_factory("crf_ner", CRFNer, "model", "loss")
