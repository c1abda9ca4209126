"""Fixed vectors in the place of an encoder."""

from typing import Any, Callable, List, Sequence, Tuple

import numpy
import spacy
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps

VOCAB = spacy.blank("xx").vocab


class Vectors:
    """An encoder that gives fixed vectors, and keeps the gradients that come back."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = [numpy.asarray(array, dtype="float32") for array in arrays]
        self.gradients: List[Any] = []
        width = max(array.shape[1] for array in self.arrays)
        self.model: Model = Model("vectors", self.forward, dims={"nO": width}, ops=NumpyOps())

    def forward(self, model: Model, docs: List[Doc], is_train: bool) -> Tuple[List[Any], Callable]:
        def backprop(gradient: List[Any]) -> List[Any]:
            self.gradients = gradient
            return []

        return self.arrays, backprop

    @property
    def docs(self) -> List[Doc]:
        """One Doc per array, of its length."""
        return [Doc(VOCAB, words=["x"] * len(array)) for array in self.arrays]


def random_vectors(lengths: Sequence[int], width: int = 4, empty_width: int = 4) -> Vectors:
    """Vectors of so many tokens. Some encoders give (0, 0) arrays for Docs without tokens: then `empty_width` is 0."""
    rng = numpy.random.RandomState(0)
    return Vectors([rng.normal(size=(n, width if n else empty_width)) for n in lengths])


def module_of(model: Model) -> Any:
    """The torch module within a model."""
    return next(shim._model for node in model.walk() for shim in node.shims)
