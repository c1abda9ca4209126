"""Removes word vectors that a pipeline no longer needs."""

from typing import Callable

from spacy.language import Language
from spacy.vectors import Vectors
from thinc.api import Model

# spaCy's layer that uses vectors of the vocabulary in prediction.
_READER = "static_vectors"


def make_drop_vectors() -> Callable[[Language], Language]:
    """Create a callback for `[training.before_to_disk]` that removes word vectors unless a component uses them in
    prediction. Clusters of `spacy_weakner.IndicatorFeatures.v1` are stored with the head, so that a pipeline of linear
    heads is small regardless of the vectors for its initialization. Registered as `spacy_weakner.DropVectors.v1`.

    RETURNS (Callable[[Language], Language]): The callback.
    """
    return drop_vectors


def drop_vectors(nlp: Language) -> Language:
    """Remove the vectors of a pipeline's vocabulary unless a component uses them; return the pipeline."""
    # Including disabled components.
    models = [getattr(pipe, "model", None) for _, pipe in nlp.components]
    if not any(node.name == _READER for model in models if isinstance(model, Model) for node in model.walk()):
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings)
    return nlp
