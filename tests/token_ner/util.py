"""What the tests of the token classifier and of its objectives share."""

import math
from typing import Any, Dict, List, Sequence, Tuple

import numpy
from spacy.language import Language

from ..util import head_pipeline

CE = {"@losses": "spacy_weakner.CategoricalCrossentropy.v1"}
GCE = {"@losses": "spacy_weakner.GeneralizedCrossEntropy.v1"}
HARD = {"@misc": "spacy_weakner.HardLabels.v1", "loss": CE}
SOFT = {"@misc": "spacy_weakner.SoftLabels.v1"}
ROBUST = {"@misc": "spacy_weakner.NoiseRobustLearning.v1", "loss": GCE, "drop_outside": 0.0}
# All tokens teach, those too that an untrained teacher is not sure of.
SELF = {"@misc": "spacy_weakner.SelfTraining.v1", "threshold": 0.0}


def token_pipeline(objective: Dict[str, Any] = HARD, **settings: Any) -> Language:
    """An initialised pipeline with a small token_ner; see `head_pipeline`."""
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
