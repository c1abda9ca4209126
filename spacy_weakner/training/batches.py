"""The base of components that are much faster on batches of Docs than on single Docs."""

from abc import abstractmethod
from typing import Iterable, Iterator, List

from spacy import util
from spacy.pipeline import Pipe
from spacy.tokens import Doc


class BatchPipe(Pipe):
    """Base of components without gradient training that process batches."""

    @abstractmethod
    def annotate(self, docs: List[Doc]) -> None:
        """Annotate some Docs."""

    def __call__(self, doc: Doc) -> Doc:
        """Annotate a Doc, replacing the annotation of an earlier call."""
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 1000) -> Iterator[Doc]:
        """Annotate a stream of Docs in batches. Docs that are passed to the error handler are left out."""
        for docs in util.minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
                done = iter(docs)
            except Exception:
                # Process the Docs again, one by one: the error handler gets those that fail.
                done = super().pipe(docs)
            yield from done
