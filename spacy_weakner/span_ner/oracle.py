"""An oracle: a trained span classifier whose probabilities for spans of a training corpus guide negative sampling.

The model in training can guide the sampling itself, but once it predicts "O" for unlabeled entities, it samples more
and more of them as negatives. A frozen model that was trained with uniform negatives does not (the first form of the
weights in the paper on weighted sampling, Section 4).
"""

from pathlib import Path
from typing import Any, List, Optional, Sequence

import numpy
from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import copy_with_groups
from ..errors import WeaknerError
from ..heads.teacher import PredictionCache
from ..pipelines import load_pipeline, run_before
from ..ty import Floats, SpanArray
from .candidates import enumerate_spans, span_index

FACTORY = "span_ner"


class Oracle:
    """A frozen pipeline with a `span_ner`, whose bias and temperature apply to its probabilities. It reads no sentence
    twice, within a memory limit.

    path (Path): The pipeline.
    name (str): Name of the component in training.
    labels (Sequence[str]): The labels of the component in training, in its order.
    max_width (Optional[int]): The maximum width of its spans.
    RAISES (WeaknerError): If the pipeline cannot be loaded, has no such component, or has other labels.
    """

    def __init__(self, path: Path, name: str, labels: Sequence[str], max_width: Optional[int]) -> None:
        self.nlp: Language = load_pipeline(path)
        names = [other for other in self.nlp.pipe_names if self.nlp.get_pipe_meta(other).factory == FACTORY]
        if not names:
            raise WeaknerError(
                f"{path} cannot be the oracle of a negative sampler: it has no component of the factory '{FACTORY}'."
            )
        self.name = names[0]
        pipe: Any = self.nlp.get_pipe(self.name)
        known = list(pipe.labels)
        if {*known} != {*labels}:
            reason = f"it has the labels {', '.join(known)}, but the component has {', '.join(labels)}"
            raise WeaknerError(f"{path} cannot be the oracle of '{name}': {reason}. Train both on the same labels.")
        self._pipe = pipe
        self._columns = [0, *(1 + known.index(label) for label in labels)]
        self._max_width = max_width
        self._cache = PredictionCache()

    def __call__(self, docs: Sequence[Doc], spans: Sequence[SpanArray]) -> List[Floats]:
        """Compute the log-probabilities of some spans.

        docs (Sequence[Doc]): The Docs; only their words are used.
        spans (Sequence[SpanArray]): Spans of each Doc, shape (n_spans, 2).
        RETURNS (List[Floats]): Log-probabilities for each Doc, shape (n_spans, n_labels), "O" first.
        """
        copies = [copy_with_groups(doc, [], self.nlp.vocab) for doc in docs]
        found = zip(self._cache.predict(copies, self._read), docs, spans, strict=True)
        return [scores[span_index(some.tolist(), len(doc), self._max_width)] for scores, doc, some in found]

    def _read(self, docs: List[Doc]) -> List[Floats]:
        """Compute the log-probabilities of all spans."""
        spans = [enumerate_spans(len(doc), self._max_width) for doc in docs]
        found = self._pipe.span_log_probabilities(run_before(self.nlp, self.name, docs), spans)
        return [numpy.asarray(scores[:, self._columns], dtype="float64") for scores in found]
