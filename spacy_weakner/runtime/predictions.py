"""What a component of a trained pipeline says about Docs, without writing to them."""

from pathlib import Path
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.docbin import copy_with_groups
from ..corpus.tags import TagScheme, make_scheme
from ..corpus.weak import weak_group
from ..errors import Errors, WeaknerError
from ..pipelines import default_component, load_pipeline, run_before
from ..ty import Entity, PathScore, TagScorer

_TAGS = "scores tags"


class Predictor:
    """A component that is asked.

    model (Union[str, Path]): The folder of a pipeline, or the name of an installed package.
    component (Optional[str]): Name of the component; None: the last one that is able to.
    is_one (Callable[[Any], bool]): Whether a component is of the kind.
    what (str): What it does, for messages.
    heads (str): Which components do that.
    sources (Sequence[str]): Weak sources that it may see the labels of.
    RAISES (WeaknerError): If the pipeline cannot be loaded, or has no such component.
    """

    pipe: Any

    def __init__(
        self,
        model: Union[str, Path],
        component: Optional[str],
        is_one: Callable[[Any], bool],
        what: str,
        heads: str = "a crf_ner or a token_ner",
        sources: Sequence[str] = (),
    ) -> None:
        self.model = str(model)
        self.nlp = load_pipeline(model)
        self._heads = heads
        if component is None:
            found = default_component(self.nlp, is_one)
        else:
            found = next(((n, pipe) for n, pipe in self.nlp.pipeline if n == component and is_one(pipe)), None)
        if found is None:
            raise self._no_pipe(what, component)
        self.name, self.pipe = found
        # What the component itself reads beside the words, too.
        self._groups = [
            weak_group(source) for source in dict.fromkeys([*sources, *getattr(self.pipe, "sources_read", ())])
        ]

    def bare(self, docs: List[Doc]) -> List[Doc]:
        """Copies of Docs with what the component may see: words, sources, and what the components before it write."""
        copies = [copy_with_groups(doc, self._groups, self.nlp.vocab) for doc in docs]
        return run_before(self.nlp, self.name, copies)

    def _no_pipe(self, what: str, component: Optional[str]) -> WeaknerError:
        named = f" and is named '{component}'" if component else ""
        names = ", ".join(self.nlp.component_names)
        message = Errors.WK341.format(pipeline=self.model, what=what, named=named, names=names, heads=self._heads)
        return WeaknerError(message)


class PathPredictor(Predictor):
    """A component that scores tag sequences."""

    def __init__(self, model: Union[str, Path], component: Optional[str] = None) -> None:
        super().__init__(model, component, _scores_tags, _TAGS)

    def __call__(self, docs: List[Doc]) -> List[PathScore]:
        """Score Docs."""
        return [path for path, _ in self.pipe.score_tags(self.bare(docs))]

    def with_distributions(
        self, docs: List[Doc], schemes: List[TagScheme]
    ) -> List[Tuple[PathScore, NDArray[numpy.float64]]]:
        """Score Docs, and give distributions over tags."""
        result = []
        for (path, given), scheme in zip(self.pipe.score_tags(self.bare(docs)), schemes, strict=True):
            rows = numpy.zeros((len(given), len(scheme.tags)))
            rows[:, [scheme.index[tag] for tag in self.pipe.distribution_labels]] = given
            result.append((path, rows))
        return result

    def scheme(self, entities: Iterable[Entity]) -> TagScheme:
        """The tag scheme over the labels of the model, and those that it does not know of some entities."""
        labels = tuple(self.pipe.labels)
        return make_scheme(self.pipe.tag_scheme, (*labels, *sorted({label for _, _, label in entities} - {*labels})))


class TokenPredictor(Predictor):
    """A component that gives a distribution over tags for every token."""

    def __init__(
        self, model: Union[str, Path], component: Optional[str] = None, *, sources: Sequence[str] = ()
    ) -> None:
        super().__init__(model, component, _scores_tags, _TAGS, sources=sources)

    @property
    def labels(self) -> Tuple[str, ...]:
        """The columns of the distributions."""
        return tuple(self.pipe.distribution_labels)

    @property
    def scheme(self) -> str:
        """Name of the tag scheme that the columns are written in."""
        return str(self.pipe.tag_scheme)

    def __call__(self, docs: List[Doc]) -> List[NDArray[numpy.float64]]:
        """Distributions over tags."""
        return [rows.astype("float64") for _, rows in self.pipe.score_tags(self.bare(docs))]


def _scores_tags(pipe: Any) -> bool:
    return isinstance(pipe, TagScorer)
