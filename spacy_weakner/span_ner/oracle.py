"""A trained classifier of spans that says what spans of a training corpus are.

What is drawn as "O" can be steered by the model that learns; but a model that has begun to take the unlabeled entities
for "O" draws ever more of them. A model that was trained before, with uniform negatives, and stays as it is does not
(the first form of the weights in the paper on weighted sampling, Section 4).
"""

from pathlib import Path
from typing import Any, List, Sequence

import numpy
from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.docbin import copy_with_groups
from ..errors import WeaknerError
from ..pipelines import load_pipeline, run_before
from .candidates import Spans
from .samplers import Floats

FACTORY = "span_ner"


class Oracle:
    """A frozen pipeline with a `span_ner`. Its probabilities are those that it gives: with its bias and temperature.

    path (Path): The pipeline.
    name (str): Name of the component that learns.
    labels (Sequence[str]): The labels of the component that learns, in its order.
    RAISES (WeaknerError): If it cannot be loaded, has no such component, or knows other labels.
    """

    def __init__(self, path: Path, name: str, labels: Sequence[str]) -> None:
        self.nlp: Language = load_pipeline(path)
        names = [other for other in self.nlp.pipe_names if self.nlp.get_pipe_meta(other).factory == FACTORY]
        if not names:
            raise WeaknerError(
                f"{path} is no oracle for the sampling of negatives: it has no component of the factory '{FACTORY}'."
            )
        self.name = names[0]
        pipe: Any = self.nlp.get_pipe(self.name)
        known = list(pipe.labels)
        if {*known} != {*labels}:
            reason = f"it has the labels {', '.join(known)}, and the component has {', '.join(labels)}"
            raise WeaknerError(f"{path} is no oracle for '{name}': {reason}. Train both on the same labels.")
        self._pipe = pipe
        self._columns = [0, *(1 + known.index(label) for label in labels)]

    def __call__(self, docs: Sequence[Doc], spans: Sequence[Spans]) -> List[Floats]:
        """Ask for some spans.

        docs (Sequence[Doc]): The Docs; only their words are read.
        spans (Sequence[Spans]): Per Doc shape (n_spans, 2).
        RETURNS (List[Floats]): Per Doc shape (n_spans, n_labels): log-probabilities, "O" first.
        """
        copies = [copy_with_groups(doc, [], self.nlp.vocab) for doc in docs]
        found = self._pipe.span_log_probabilities(run_before(self.nlp, self.name, copies), spans)
        return [numpy.asarray(scores[:, self._columns], dtype="float64") for scores in found]
