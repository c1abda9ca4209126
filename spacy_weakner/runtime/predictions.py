"""Predictions of a component of a trained pipeline for Docs, which are not changed."""

from pathlib import Path
from typing import Any, Callable, Iterable, List, Optional, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.docbin import copy_with_groups
from ..corpus.tags import TagScheme, make_scheme
from ..corpus.weak import weak_group
from ..errors import Errors, WeaknerError
from ..pipelines import default_component, load_pipeline, run_before
from ..ty import Entity, PathScore, TagScorer, TagScores


class Predictor:
    """A component of a pipeline: the named one, or `pipelines.default_component`. `is_one` returns True for suitable
    components. `what` they do, and the `heads` that do it, are for messages."""

    pipe: Any

    def __init__(
        self,
        model: Union[str, Path],
        component: Optional[str],
        is_one: Callable[[Any], bool],
        what: str,
        heads: str = "a crf_ner or a token_ner",
    ) -> None:
        self.model = str(model)
        self.nlp = load_pipeline(model)
        if component is None:
            found = default_component(self.nlp, is_one)
        else:
            found = next(((n, pipe) for n, pipe in self.nlp.pipeline if n == component and is_one(pipe)), None)
        if found is None:
            named = f" and is named '{component}'" if component else ""
            names = ", ".join(self.nlp.component_names)
            message = Errors.WK341.format(pipeline=self.model, what=what, named=named, names=names, heads=heads)
            raise WeaknerError(message)
        self.name, self.pipe = found

    def copies(self, docs: List[Doc]) -> List[Doc]:
        """Return copies of Docs with only words and the spans of the sources that the component reads."""
        groups = [weak_group(source) for source in getattr(self.pipe, "sources_read", ())]
        return [copy_with_groups(doc, groups, self.nlp.vocab) for doc in docs]

    def bare(self, docs: List[Doc]) -> List[Doc]:
        """Return `copies` with the output of the preceding components (it may listen to one of them): all that the
        component may see."""
        return run_before(self.nlp, self.name, self.copies(docs))


class TagPredictor(Predictor):
    """A component that scores whole tag sequences, and the tags of each token. Non-finite probabilities raise an
    error."""

    def __init__(self, model: Union[str, Path], component: Optional[str] = None) -> None:
        super().__init__(model, component, lambda pipe: isinstance(pipe, TagScorer), "scores tags")

    @property
    def labels(self) -> Tuple[str, ...]:
        """The columns of the distributions."""
        return tuple(self.pipe.distribution_labels)

    def paths(self, docs: List[Doc]) -> List[PathScore]:
        """Return the best tag sequence of each Doc."""
        return [path for path, _ in self._scored(docs)]

    def distributions(self, docs: List[Doc]) -> List[NDArray[numpy.float64]]:
        """Return the distributions of each Doc, (n_tokens, n_labels); rows sum to 1."""
        return [rows.astype("float64") for _, rows in self._scored(docs)]

    def with_distributions(
        self, docs: List[Doc], schemes: List[TagScheme]
    ) -> List[Tuple[PathScore, NDArray[numpy.float64]]]:
        """Return the best sequence of each Doc, and distributions over the tags of a scheme; see `scheme`."""
        result = []
        for (path, given), scheme in zip(self._scored(docs), schemes, strict=True):
            rows = numpy.zeros((len(given), len(scheme.tags)))
            rows[:, [scheme.index[tag] for tag in self.labels]] = given
            result.append((path, rows))
        return result

    def _scored(self, docs: List[Doc]) -> List[TagScores]:
        scored: List[TagScores] = self.pipe.score_tags(self.bare(docs))
        for doc, (_, rows) in zip(docs, scored, strict=True):
            if not numpy.isfinite(rows).all():
                raise WeaknerError(Errors.WK343.format(text=doc.text[:50], pipeline=self.model))
        return scored

    def scheme(self, entities: Iterable[Entity]) -> TagScheme:
        """Return the tag scheme over the labels of the model, and additional labels of some entities."""
        labels = tuple(self.pipe.labels)
        return make_scheme(self.pipe.tag_scheme, (*labels, *sorted({label for _, _, label in entities} - {*labels})))
