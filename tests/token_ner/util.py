"""What the tests of the token classifier and of its objectives share."""

import math
from typing import Any, Dict, List, Sequence, Tuple

import numpy
import pytest
import spacy
from spacy.language import Language

from spacy_weakner.token_ner.component import TokenNer
from spacy_weakner.token_ner.model import build_token_classifier
from spacy_weakner.token_ner.objective import NoTeacher, TokenGradient
from spacy_weakner.ty import TrainingProgress

from ..util import TOK2VEC, head_pipeline, make_examples

CE = {"@losses": "spacy_weakner.CategoricalCrossentropy.v1"}
GCE = {"@losses": "spacy_weakner.GeneralizedCrossEntropy.v1"}
HARD = {"@misc": "spacy_weakner.HardLabels.v1", "loss": CE}
SOFT = {"@misc": "spacy_weakner.SoftLabels.v1"}
ROBUST = {"@misc": "spacy_weakner.NoiseRobustLearning.v1", "loss": GCE, "drop_outside": 0.0}
# All tokens teach, those too that an untrained teacher is not sure of.
SELF = {"@misc": "spacy_weakner.SelfTraining.v1", "threshold": 0.0}
schemes = pytest.mark.parametrize("scheme", ("IO", "BIO", "IOBES"))


def token_pipeline(objective: Dict[str, Any] = HARD, **settings: Any) -> Language:
    """An initialized pipeline with a small token_ner; see `head_pipeline`."""
    return head_pipeline("token_ner", objective=objective, **settings)


def random_outputs(n_tokens: int, n_tags: int = 4, seed: int = 0, scale: float = 2.0) -> Any:
    """Random outputs of a model."""
    return numpy.random.RandomState(seed).normal(size=(n_tokens, n_tags)) * scale


def probabilities(row: Sequence[float]) -> Tuple[float, List[float]]:
    """That a token belongs to an entity, and of the tags given that it does; as the equations say."""
    b, *z = row
    exponents = [math.exp(x - max(z)) for x in z]
    return 1 / (1 + math.exp(-b)), [x / sum(exponents) for x in exponents]


def joint(row: Sequence[float]) -> List[float]:
    """Of all tags, "O" first."""
    s, types = probabilities(row)
    return [1 - s, *(s * p for p in types)]


def ticked(nlp, step=0, interval=10):
    """The component, after a tick of the clock."""
    ner = nlp.get_pipe("token_ner")
    ner.tick(TrainingProgress(step, 0, 0.0, interval))
    return ner


def loss_of(nlp, examples):
    """The loss of one batch, from which nothing is learned."""
    return nlp.update(examples, sgd=False, losses={})["token_ner"]


class Spy(NoTeacher):
    """An objective that writes down what it is given, and whose gradient is one everywhere."""

    uses_teacher, teacher_at_start, uses_augmented = True, True, True

    def __init__(self, augmented_gradient=True):
        self.batches, self.renewals, self.augmented_gradient = [], [], augmented_gradient

    def labels(self, doc):
        return {ent.label_ for ent in doc.ents}

    def encode(self, example, scheme):
        """The sentence's length at every token."""
        return numpy.full(len(example.predicted), len(example.predicted))

    def renew(self, batches):
        self.renewals.append(list(batches))

    def __call__(self, batch):
        self.batches.append(batch)
        augmented = None
        if batch.augmented is not None and self.augmented_gradient:
            augmented = numpy.full(batch.augmented.outputs.shape, 2.0)
        return TokenGradient(1.0, numpy.ones(batch.outputs.shape), augmented)


def spied(nlp, encoder=None, **settings):
    """An initialized component with a Spy."""
    spy = Spy(**settings.pop("spy", {}))
    encoder = encoder or spacy.registry.resolve({"it": TOK2VEC})["it"]
    ner = TokenNer(nlp.vocab, build_token_classifier(encoder), objective=spy, **settings)
    ner.initialize(lambda: make_examples(nlp))
    ner.tick(TrainingProgress(0, 0, 0.0, 10))
    return ner, spy
