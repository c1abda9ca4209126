"""Runs the components before another one in training, outside of the loop of `spacy train`."""

from typing import Iterable, Iterator

from spacy.language import Language
from spacy.training import Example
from spacy.util import _pipe, minibatch

BATCH_SIZE = 256


def annotated(nlp: Language, name: str, examples: Iterable[Example]) -> Iterator[Example]:
    """Run components on the predicted Docs, as `spacy train` does in updates: those of `training.annotating_components`
    that precede the component `name`, which may use their annotations."""
    wanted = nlp.config.get("training", {}).get("annotating_components", ())
    before = nlp.component_names[: nlp.component_names.index(name)]
    # `nlp.components` includes those sourced from another pipeline, which are disabled during initialization.
    pipes = [(other, pipe) for other, pipe in nlp.components if other in before and other in wanted]
    for batch in minibatch(examples, BATCH_SIZE):
        for other, pipe in pipes:
            docs = _pipe((eg.predicted for eg in batch), pipe, other, nlp.default_error_handler, {})
            for example, doc in zip(batch, docs, strict=True):
                example.predicted = doc
        yield from batch
