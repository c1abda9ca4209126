"""Word vectors that a pipeline needs no more."""

from typing import Callable

from spacy.language import Language
from spacy.vectors import Vectors
from thinc.api import Model

# spaCy's layer that reads vectors of the vocabulary when it predicts.
_READER = "static_vectors"


def make_drop_vectors() -> Callable[[Language], Language]:
    """Callback for `[training.before_to_disk]`: leaves out word vectors, unless a component reads them when it
    predicts. Clusters of `spacy_weakner.IndicatorFeatures.v1` are stored with the head, so that a pipeline of linear
    heads is small whatever vectors it was initialized with. Registered as `spacy_weakner.DropVectors.v1`.

    RETURNS (Callable[[Language], Language]): The callback.
    """
    return drop_vectors


def drop_vectors(nlp: Language) -> Language:
    """Remove the vectors of a pipeline's vocabulary, unless a component reads them; returns the pipeline."""
    # Disabled components, too.
    models = [getattr(pipe, "model", None) for _, pipe in nlp.components]
    if not any(node.name == _READER for model in models if isinstance(model, Model) for node in model.walk()):
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings)
    return nlp
