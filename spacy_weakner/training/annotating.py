"""What stands before a component in training, outside of `spacy train`'s own loop."""

from typing import Iterable, Iterator

from spacy.language import Language
from spacy.training import Example
from spacy.util import _pipe, minibatch

BATCH_SIZE = 256


def annotated(nlp: Language, name: str, examples: Iterable[Example]) -> Iterator[Example]:
    """Run the components over the predicted Docs that write what a component reads, as `spacy train` does in updates:
    those of `training.annotating_components` that stand before it."""
    wanted = nlp.config.get("training", {}).get("annotating_components", ())
    before = nlp.component_names[: nlp.component_names.index(name)]
    # Those that come from another pipeline are disabled while a pipeline is initialized.
    pipes = [(other, pipe) for other, pipe in nlp.components if other in before and other in wanted]
    for batch in minibatch(examples, BATCH_SIZE):
        for other, pipe in pipes:
            docs = _pipe((eg.predicted for eg in batch), pipe, other, nlp.default_error_handler, {})
            for example, doc in zip(batch, docs, strict=True):
                example.predicted = doc
        yield from batch
