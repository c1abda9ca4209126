"""Components that are much faster on many Docs together than on one after the other."""

from abc import abstractmethod
from typing import Iterable, Iterator, List

from spacy import util
from spacy.pipeline import Pipe
from spacy.tokens import Doc


class BatchPipe(Pipe):
    """Base of components without gradient training that work on batches."""

    @abstractmethod
    def annotate(self, docs: List[Doc]) -> None:
        """Write to some Docs."""

    def __call__(self, doc: Doc) -> Doc:
        """Write to a Doc, replacing what an earlier call wrote."""
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 1000) -> Iterator[Doc]:
        """Write to a stream of Docs, so many together; those that the error handler takes
        are left out."""
        for docs in util.minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
                done = iter(docs)
            except Exception:
                # Once more, one by one: the error handler gets those that fail, the others pass.
                done = super().pipe(docs)
            yield from done
