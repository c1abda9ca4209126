"""Named-entity recognition with a conditional random field that understands missing labels."""

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
from ..corpus.weak import is_weak, weak_group
from ..crf.decoding import entity_log_probabilities, probable_spans, viterbi
from ..crf.kernel import Batch, CRFParameters, Lattice, forward_backward, pad
from ..errors import Errors, Warnings, WeaknerError, check_range
from ..heads.entities import Prediction, make_predictions
from ..heads.factories import ENTITIES, ENTITY_SCORES, default_config, recipe_blocks, takes_settings_of
from ..heads.head import Loss, TrainingBatch
from ..heads.layers import to_device, to_host
from ..heads.tagging import TaggingHead, TagScores
from ..losses import Array
from ..sources.features import SourceFeatureSettings, set_weights, weak_marked
from ..sources.initial import gold_with_sources, initial_weights, starting_weights
from ..ty import PathScore
from .likelihood import SequenceLoss, Target, sentence_losses
from .model import add_crf_gradient, crf_parameters

DECODING = "decoding"
# The least probability of a candidate, but of those that are written as entities.
_LEAST = 0.05


class CRFNer(TaggingHead[Target]):
    """Tag tokens with a linear-chain CRF and write the best sequence to `doc.ents`.

    Tokens whose annotation is missing are marginalized in training. What stands in `doc.ents` already is kept
    (unless `overwrite`): the tokens of such entities are "O" to the decoder.

    vocab (Vocab): The shared vocabulary.
    model (Model[List[Doc], List[Floats2d]]): The tagger, e.g. `spacy_weakner.CRFTagger.v1`.
    name (str): Name of the component in the pipeline.
    loss (SequenceLoss): What to minimize, e.g. `spacy_weakner.PartialCRF.v1`.
    scheme (str): Tag scheme: "IO", "BIO" or "IOBES".
    constrain (Union[bool, str]): Forbid transitions that the scheme does not allow: True in the partition function and
        in decoding; "decoding" everywhere but in training, so that annotations may break the scheme, as completed weak
        labels do.
    scores (bool): Set `ent._.weakner_score` to the entity's marginal probability: the sum over all tag sequences in
        which exactly this entity stands. Off, it is None, which saves a pass of forward-backward.
    nested (bool): Write all entities with a probability of at least 0.05, also overlapping ones, to the span group
        `pred:<name>`, with their marginal probabilities in `attrs["scores"]`.
    threshold (float): Entities whose probability (calibrated, if it is) is lower are not written, also without
        `scores`.
    head_learn_rate (float): Factor on the learning rate of the emission layer and the transitions.
    overwrite (bool): Whether to replace entities that stand in `doc.ents` already.
    annotate_ents (bool): Write `doc.ents`. If not, what it finds goes to the span group `pred:<name>` alone, with its
        probabilities, for a component that decides about it.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): For an unknown scheme, an unusable `constrain`, or a `threshold` that is no probability.
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
        self.tag_scheme = make_scheme(scheme, ()).name  # which refuses an unknown one
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

    # What sources say

    @property
    def sources_read(self) -> List[str]:
        """RETURNS (List[str]): The weak sources whose labels the model reads beside the words."""
        layer = self.model.maybe_get_ref("source_features")
        return [] if layer is None else list(layer.attrs["settings"].sources)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
    ) -> None:
        """Find the labels and build the model; its source features, if it has any, start as the sources' own reading.
        What was calibrated is forgotten.

        get_examples (Callable[[], Iterable[Example]]): Gives a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The labels; without them those of the examples, sorted.
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
        """As `TrainableHead` does it; the source features know which sentences are weakly labeled."""
        if not self.sources_read:
            return super().batch_loss(examples)
        self._check_sources(examples)
        with weak_marked(examples):
            return super().batch_loss(examples)

    def _check_sources(self, examples: List[Example]) -> None:
        """Warn if the first gold sentences have no labels of the sources that the model reads."""
        gold = [eg.predicted for eg in examples if len(eg.predicted) and not is_weak(eg.reference)]
        if self._sources_checked or not gold:
            return
        self._sources_checked = True
        groups = list(map(weak_group, self.sources_read))
        if not any(group in doc.spans for doc in gold for group in groups):
            warnings.warn(Warnings.WK906.format(name=self.name, groups=", ".join(groups)), stacklevel=4)

    # Training

    def example_labels(self, example: Example) -> Iterable[str]:
        """The labels in what the loss learns from of an example."""
        return self.loss.labels(example.reference)

    def encode_target(self, example: Example) -> Target:
        """What the loss learns from of an example; see its `encode`."""
        return self.loss.encode(example, self.scheme)

    def forward_loss(self, batch: TrainingBatch[Target]) -> Loss:
        """The configured loss. The transition scores, which the forward pass does not use, get their gradient here."""
        outputs, backprop = self.begin_update(batch)
        ops = self.model.ops
        parameters = crf_parameters(self.model) if self.constrain == DECODING else self._parameters()
        result = self.loss(parameters, to_host(ops, outputs), batch.targets)

        def learn() -> None:
            add_crf_gradient(self.model, result.parameters)
            backprop(to_device(ops, result.emissions))

        return result.loss, learn

    def held_out_loss(self, examples: Iterable[Example]) -> Callable[[float], float]:
        used, outputs = self.annotated(examples)
        emissions = self._biased(self.token_outputs([eg.predicted for eg in used], outputs=outputs))
        tags = [self.scheme.from_example(eg) for eg in used]
        parameters = self._parameters()

        def loss(temperature: float) -> float:
            cooled = [scores / temperature for scores in emissions]
            losses, _ = sentence_losses(parameters.scaled(1 / temperature), cooled, tags)
            return float(losses.mean())

        return loss

    # Prediction

    def decode(self, docs: List[Doc], outputs: List[Floats2d], bias: Optional[float] = None) -> List[Prediction]:
        """Best sequences, and probabilities of entities where the settings ask for them."""
        parameters, batch = self._parameters(), self._restrict_to_free_tokens(docs, pad(self._biased(outputs, bias)))
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
        """The best tag sequence of every Doc with its Viterbi score and its log-probability, and the marginal
        distribution over the tags of every token.

        docs (Iterable[Doc]): The Docs; not changed.
        RETURNS (List[TagScores]): One pair per Doc; the empty Doc has score 0 and log-probability 0.
        """
        return self.map_sentences(docs, self._score_tags, self.no_tags, self.merge_tags)

    def _score_tags(self, docs: List[Doc], emissions: List[Array]) -> List[TagScores]:
        parameters, batch = self._parameters(), pad(self._biased(emissions))
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

    def _biased(self, emissions: Sequence[Any], bias: Optional[float] = None) -> Sequence[Any]:
        bias = self.bias if bias is None else bias
        towards_outside: Any = bias * (numpy.arange(self.n_outputs) == 0)
        return [scores + towards_outside for scores in emissions] if bias else emissions

    def _lattice(self, parameters: CRFParameters, batch: Batch) -> Lattice:
        cooled = Batch(batch.emissions / self.temperature, batch.lengths, batch.order)
        return forward_backward(parameters.scaled(1 / self.temperature), cooled)

    def _probabilities(self, lattice: Lattice, spans: NDArray[numpy.int64]) -> Array:
        """The probability of each span: number of the Doc, start, end and number of the label."""
        scheme, labels = self.scheme, self.labels
        rows = numpy.argsort(lattice.batch.order)[spans[:, 0]]
        spelled = [(i, j, scheme.span_tags(labels[label], j - i)) for _, i, j, label in spans.tolist()]
        return numpy.exp(entity_log_probabilities(lattice, rows, spelled, scheme.continuations()))

    def _restrict_to_free_tokens(self, docs: List[Doc], batch: Batch) -> Batch:
        # Tokens whose annotation has to stay are "O" to the decoder.
        preset = [self.preset_tokens(doc) for doc in docs]
        if not any(tokens.any() for tokens in preset):
            return batch
        allowed = [~tokens[:, None] | (numpy.arange(self.n_outputs) == 0) for tokens in preset]
        return batch.restrict(batch.pad_like(allowed, True, "bool"))


@Language.factory(
    "crf_ner",
    assigns=ENTITIES,
    default_config=default_config(CRFNer, **recipe_blocks("crf_ner", "model", "loss")),
    default_score_weights=ENTITY_SCORES,
)
@takes_settings_of(CRFNer)
def make_crf_ner(nlp: Language, name: str, **settings: Any) -> CRFNer:
    """Create the component; the settings are those of `CRFNer`."""
    return CRFNer(nlp.vocab, name=name, **settings)
