"""What a trained pipeline says about Docs, without writing to them."""

from pathlib import Path
from typing import Any, Iterable, List, Optional, Tuple, Union

import numpy
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc

from ...annotations.corpus import bare_copy
from ...annotations.tags import TagScheme, make_scheme
from ...errors import Errors, WeaknerError
from ...ty import Entity, PathScore, PathScorer, TokenDistributions
from .pipelines import first_pipe, load_pipeline, run_before


class PathPredictor:
    """A pipeline that scores tag sequences.

    model (Union[str, Path]): Its folder, or the name of an installed package.
    component (Optional[str]): Name of the component to ask; None: the first one that scores tag sequences.
    RAISES (WeaknerError): If the pipeline cannot be loaded, or has no such component.
    """

    def __init__(self, model: Union[str, Path], component: Optional[str] = None) -> None:
        self.model = str(model)
        self.nlp = load_pipeline(model)
        self.name, self.pipe = find_path_scorer(self.nlp, self.model, component)

    def __call__(self, docs: List[Doc]) -> List[PathScore]:
        """Score Docs.

        docs (List[Doc]): Docs of the pipeline's vocabulary; only their words are used.
        RETURNS (List[PathScore]): One per Doc.
        """
        return self.pipe.score_paths(self._prepare(docs))

    def distributions(self, docs: List[Doc], schemes: List[TagScheme]) -> List[NDArray[numpy.float64]]:
        """Distributions over tags.

        docs (List[Doc]): As above.
        schemes (List[TagScheme]): Per Doc the tags that are the columns; see `scheme`.
        RETURNS (List[NDArray[numpy.float64]]): Per Doc (n_tokens, n_tags); rows sum to 1.
        RAISES (WeaknerError): If the component gives none.
        """
        if not isinstance(self.pipe, TokenDistributions):
            raise _no_pipe(self.nlp, self.model, "gives distributions over tags", self.name)
        result = []
        for own, scheme in zip(self.pipe.distributions(self._prepare(docs)), schemes, strict=True):
            result.append(numpy.zeros((len(own), len(scheme.tags))))
            result[-1][:, [scheme.index[tag] for tag in self.pipe.distribution_labels]] = own
        return result

    def _prepare(self, docs: List[Doc]) -> List[Doc]:
        return run_before(self.nlp, self.name, [bare_copy(doc) for doc in docs])

    def scheme(self, entities: Iterable[Entity]) -> TagScheme:
        """The tag scheme over the labels of the model, and those that it does not know of some entities.

        entities (Iterable[Entity]): The entities.
        RETURNS (TagScheme): The scheme.
        """
        labels = tuple(self.pipe.labels)
        return make_scheme(self.pipe.tag_scheme, (*labels, *sorted({label for _, _, label in entities} - {*labels})))


class TokenPredictor:
    """A pipeline that gives a distribution over tags for every token.

    model (Union[str, Path]): Its folder, or the name of an installed package.
    component (Optional[str]): Name of the component to ask; None: the first one that gives distributions.
    RAISES (WeaknerError): If the pipeline cannot be loaded, or has no such component.
    """

    def __init__(self, model: Union[str, Path], component: Optional[str] = None) -> None:
        self.model = str(model)
        self.nlp = load_pipeline(model)
        found = first_pipe(self.nlp, TokenDistributions, component)
        if found is None:
            raise _no_pipe(self.nlp, self.model, "gives distributions over tags", component)
        self.name, self.pipe = found

    @property
    def labels(self) -> Tuple[str, ...]:
        """The columns of the distributions."""
        return tuple(self.pipe.distribution_labels)

    @property
    def scheme(self) -> str:
        """Name of the tag scheme that the columns are written in."""
        return str(self.pipe.tag_scheme)

    def __call__(self, docs: List[Doc]) -> List[NDArray[numpy.float64]]:
        """Distributions over tags.

        docs (List[Doc]): Docs of any vocabulary; only their words are used.
        RETURNS (List[NDArray[numpy.float64]]): Per Doc (n_tokens, n_labels); rows sum to 1.
        """
        bare = [bare_copy(doc, self.nlp.vocab) for doc in docs]
        return [rows.astype("float64") for rows in self.pipe.distributions(run_before(self.nlp, self.name, bare))]


def find_path_scorer(nlp: Language, model: str, component: Optional[str] = None) -> Tuple[str, Any]:
    """The component of a pipeline that scores tag sequences.

    nlp (Language): The pipeline.
    model (str): How its user named it.
    component (Optional[str]): Name of the component; None: the first one that can.
    RETURNS (Tuple[str, Any]): Its name and the component, a `PathScorer`.
    RAISES (WeaknerError): If there is none.
    """
    found = first_pipe(nlp, PathScorer, component)
    if found is None:
        raise _no_pipe(nlp, model, "scores tag sequences", component)
    return found


def _no_pipe(nlp: Language, model: str, what: str, component: Optional[str]) -> WeaknerError:
    named = f" and is named '{component}'" if component else ""
    names = ", ".join(nlp.component_names)
    return WeaknerError(Errors.WK341.format(pipeline=model, what=what, named=named, names=names))
