"""Classification of sentences, to train a shared encoder when there are few token labels."""

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ..corpus.parts import Part
from ..errors import Errors, UnknownLabel, Warnings, WeaknerError, check_range
from ..heads.factories import default_config, default_encoder, takes_settings_of
from ..heads.head import Loss, TrainableHead, TrainingBatch
from ..losses import log_softmax, sigmoid
from ..ty import Floats
from .losses import exclusive_loss, independent_loss


class SentenceCategory(TrainableHead[Floats2d, Floats, Floats]):
    """A component that classifies sentences (Docs), and writes the probabilities of their categories to `doc.cats`.

    It is like spaCy's `textcat` on max-pooled token vectors, with two differences for joint training with entity
    recognition on a shared encoder (Kruengkrai et al. 2020): the weight of its loss can be set, and Docs without a
    known category have no loss, instead of being trained to have no category.

    For a Doc without visible tokens, every category is 0.

    vocab (Vocab): The shared vocabulary.
    model (Model[List[Doc], Floats2d]): The classifier, e.g. `spacy_weakner.SentenceCategory.v1`.
    name (str): Name of the component in the pipeline.
    loss_weight (float): Factor lambda on the loss (Equation 3).
    exclusive_classes (bool): Whether a sentence has exactly one category. If not, categories are predicted separately,
        and a category that `doc.cats` lacks is missing (but counts as 0 when scores are computed, as in spaCy).
    head_learn_rate (float): Factor on the learning rate of the linear layer.
    scorer (Optional[Callable]): The scoring method.
    RAISES (WeaknerError): If the weight is negative.
    """

    by_sentence = False
    kind = "category"
    nothing_to_learn = Warnings.WK904

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], Floats2d],
        name: str = "sentence_category",
        *,
        loss_weight: float = 1.0,
        exclusive_classes: bool = True,
        head_learn_rate: float = 1.0,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, head_learn_rate=head_learn_rate, scorer=scorer)
        check_range("loss_weight", loss_weight, 0.0, None)
        self.loss_weight = loss_weight
        self.exclusive_classes = exclusive_classes
        self.cfg["positive_label"] = None

    @property
    def n_outputs(self) -> int:
        """RETURNS (int): The number of categories."""
        return len(self.labels)

    # Initialization

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Sequence[str]] = None,
        positive_label: Optional[str] = None,
    ) -> None:
        """Find the categories and build the model.

        get_examples (Callable[[], Iterable[Example]]): Returns a sample of the training examples.
        nlp (Optional[Language]): The pipeline.
        labels (Optional[Sequence[str]]): The categories; None: those of the examples, sorted.
        positive_label (Optional[str]): With two exclusive categories, the one whose F1 is the score.
        RAISES (WeaknerError): If there are no categories, or only one exclusive category; or if the positive label is
            not one of two exclusive categories.
        """
        super().initialize(get_examples, nlp=nlp, labels=labels)
        if positive_label is not None and not (
            self.exclusive_classes and self.n_outputs == 2 and positive_label in self.labels
        ):
            expected = f"one of two exclusive categories (here: {', '.join(self.labels)})"
            message = Errors.WK005.format(setting="positive_label", value=positive_label, expected=expected)
            raise WeaknerError(message)
        self.cfg["positive_label"] = positive_label

    def check_labels(self) -> None:
        super().check_labels()
        if self.exclusive_classes and self.n_outputs < 2:
            raise WeaknerError(Errors.WK042.format(name=self.name, label=self.labels[0]))

    def example_labels(self, example: Example) -> Iterable[str]:
        """Return the categories in an example's annotation, including those with the value 0."""
        return list(example.reference.cats)

    def is_annotated(self, example: Example) -> bool:
        """Return True if any category of an example is annotated; if categories are exclusive, a positive one."""
        values = example.reference.cats.values()
        return 1.0 in values if self.exclusive_classes else bool(values)

    # Training

    def encode_target(self, example: Example) -> Floats:
        """Return the annotated values of the categories.

        example (Example): The example.
        RETURNS (Floats): Shape (n_categories,): 1 if the category applies, 0 if it does not, NaN if it is missing; all
            NaN for a Doc without tokens.
        RAISES (WeaknerError): If several exclusive categories apply, or a value is not a probability.
        RAISES (UnknownLabel): If an unknown category applies.
        """
        row: Floats = numpy.full(self.n_outputs, numpy.nan)
        if not len(example.predicted):
            return row
        cats = example.reference.cats
        if not self.exclusive_classes:
            for label, value in cats.items():
                check_range(f"doc.cats['{label}']", value, 0.0, 1.0)
        elif any(value not in (0.0, 1.0) for value in cats.values()) or sum(cats.values()) > 1:
            raise WeaknerError(Errors.WK041.format(text=example.reference.text[:50], cats=cats, name=self.name))
        elif not self.is_annotated(example):
            return row
        else:
            row[:] = 0.0
        columns = {label: i for i, label in enumerate(self.labels)}
        for label, value in cats.items():
            # A category that does not apply need not be one of the labels.
            if label in columns:
                row[columns[label]] = value
            elif value:
                raise UnknownLabel(label)
        return row

    def forward_loss(self, batch: TrainingBatch[Floats]) -> Loss:
        """Compute the weighted cross-entropy of the Docs with a known category, summed and divided by all Docs."""
        outputs, backprop = self.begin_update(batch)
        ops: Any = self.model.ops
        truths = numpy.stack(batch.targets)
        loss = exclusive_loss if self.exclusive_classes else independent_loss
        values, gradient = loss(ops.to_numpy(outputs), truths)
        mean = float(values.sum()) / batch.n_sentences
        return self.loss_weight * mean, lambda: backprop(ops.asarray2f(self.loss_weight * gradient))

    def score(self, examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
        """Score predictions.

        examples (Iterable[Example]): Predictions and gold.
        RETURNS (Dict[str, Any]): The scores; empty without a scorer.
        """
        if self.scorer is None:
            return {}
        settings = {"positive_label": self.cfg["positive_label"], "exclusive_classes": self.exclusive_classes}
        return dict(self.scorer(list(examples), labels=self.labels, **settings, **kwargs))

    # Prediction

    @property
    def empty_prediction(self) -> Floats:
        return numpy.zeros(self.n_outputs)

    def decode(self, docs: List[Doc], outputs: Floats2d) -> List[Floats]:
        """Return probabilities of the categories, shape (n_categories,) for each Doc."""
        scores: Any = self.model.ops.to_numpy(outputs)
        rows = numpy.exp(log_softmax(scores)) if self.exclusive_classes else sigmoid(scores)
        rows[[doc.text.isspace() for doc in docs]] = 0.0  # with a shared encoder, Docs have white space
        return list(rows)

    def merge(self, doc: Doc, parts: List[Part], predictions: List[Floats]) -> Floats:
        return predictions[0] if predictions else self.empty_prediction

    def set_annotations(self, docs: Iterable[Doc], predictions: List[Floats]) -> None:
        """Write `doc.cats`; other categories in it are kept.

        docs (Iterable[Doc]): The Docs.
        predictions (List[Floats]): The output of `predict`.
        """
        for doc, row in zip(docs, predictions, strict=True):
            doc.cats.update(zip(self.labels, row.tolist(), strict=True))


MODEL = {"@architectures": "spacy_weakner.SentenceCategory.v1", "tok2vec": default_encoder()}


@Language.factory(
    "sentence_category",
    assigns=["doc.cats"],
    default_config=default_config(SentenceCategory, scorer="spacy_weakner.category_scorer.v1", model=MODEL),
    default_score_weights={
        "cats_score": 1.0,
        "cats_score_desc": None,
        "cats_micro_p": None,
        "cats_micro_r": None,
        "cats_micro_f": None,
        "cats_macro_p": None,
        "cats_macro_r": None,
        "cats_macro_f": None,
        "cats_macro_auc": None,
        "cats_f_per_type": None,
    },
)
@takes_settings_of(SentenceCategory)
def make_sentence_category(nlp: Language, name: str, **settings: Any) -> SentenceCategory:
    """Create the component with the settings of `SentenceCategory`."""
    return SentenceCategory(nlp.vocab, name=name, **settings)
