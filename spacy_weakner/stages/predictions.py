"""What a trained pipeline says about Docs, without writing to them."""

from pathlib import Path
from typing import Any, Iterable, List, Optional, Tuple, Union

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations.corpus import bare_copy
from ..annotations.tags import TagScheme, make_scheme
from ..errors import Errors, WeaknerError
from ..ty import Entity, PathScore, PathScorer
from .pipelines import load_pipeline


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
        names = [name for name, _ in self.nlp.pipeline]
        # Encoders that the component listens to come before it.
        self._before = names[: names.index(self.name)]

    def __call__(self, docs: List[Doc]) -> List[PathScore]:
        """Score Docs.

        docs (List[Doc]): Docs of the pipeline's vocabulary; only their words are used.
        RETURNS (List[PathScore]): One per Doc.
        """
        copies = [bare_copy(doc) for doc in docs]
        if self._before:
            with self.nlp.select_pipes(enable=self._before):
                copies = list(self.nlp.pipe(copies))
        return self.pipe.score_paths(copies)

    def scheme(self, entities: Iterable[Entity]) -> TagScheme:
        """The tag scheme over the labels of the model, and those that it does not know of some entities.

        entities (Iterable[Entity]): The entities.
        RETURNS (TagScheme): The scheme.
        """
        labels = tuple(self.pipe.labels)
        return make_scheme(self.pipe.tag_scheme, (*labels, *sorted({label for _, _, label in entities} - {*labels})))


def find_path_scorer(nlp: Language, model: str, component: Optional[str] = None) -> Tuple[str, Any]:
    """The component of a pipeline that scores tag sequences.

    nlp (Language): The pipeline.
    model (str): How its user named it.
    component (Optional[str]): Name of the component; None: the first one that can.
    RETURNS (Tuple[str, Any]): Its name and the component, a `PathScorer`.
    RAISES (WeaknerError): If there is none.
    """
    for name, pipe in nlp.pipeline:
        if component in (None, name) and isinstance(pipe, PathScorer):
            return name, pipe
    named = f" and is named '{component}'" if component else ""
    names = ", ".join(nlp.component_names)
    what = "scores tag sequences"
    raise WeaknerError(Errors.WK341.format(pipeline=model, what=what, named=named, names=names))
