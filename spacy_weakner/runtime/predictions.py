"""What a component of a trained pipeline says about Docs, without writing to them."""

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
    """A component of a pipeline that is asked: the named one, or `pipelines.default_component`. `is_one` is True for
    components of the kind, `what` they do and `heads` that do it are for messages."""

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

    def bare(self, docs: List[Doc]) -> List[Doc]:
        """Copies of Docs with what the component may see: words, what the sources that it reads say, and what the
        components before it write (it may listen to one)."""
        groups = [weak_group(source) for source in getattr(self.pipe, "sources_read", ())]
        return run_before(self.nlp, self.name, [copy_with_groups(doc, groups, self.nlp.vocab) for doc in docs])


class TagPredictor(Predictor):
    """A component that scores tags: whole sequences, and those of each token. Probabilities that are no numbers
    are an error."""

    def __init__(self, model: Union[str, Path], component: Optional[str] = None) -> None:
        super().__init__(model, component, lambda pipe: isinstance(pipe, TagScorer), "scores tags")

    @property
    def labels(self) -> Tuple[str, ...]:
        """The columns of the distributions."""
        return tuple(self.pipe.distribution_labels)

    def paths(self, docs: List[Doc]) -> List[PathScore]:
        """Per Doc the best sequence."""
        return [path for path, _ in self._scored(docs)]

    def distributions(self, docs: List[Doc]) -> List[NDArray[numpy.float64]]:
        """Per Doc (n_tokens, n_labels); rows sum to 1."""
        return [rows.astype("float64") for _, rows in self._scored(docs)]

    def with_distributions(
        self, docs: List[Doc], schemes: List[TagScheme]
    ) -> List[Tuple[PathScore, NDArray[numpy.float64]]]:
        """Per Doc the best sequence, and distributions over the tags of a scheme; see `scheme`."""
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
        """The tag scheme over the labels of the model, and those that it does not know of some entities."""
        labels = tuple(self.pipe.labels)
        return make_scheme(self.pipe.tag_scheme, (*labels, *sorted({label for _, _, label in entities} - {*labels})))
