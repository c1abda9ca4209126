"""A trained pipeline, and gold that it has not seen, for what is chosen by it."""

from pathlib import Path
from typing import Iterable, List, NamedTuple, Optional, Union

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..corpus.docbin import read_docs
from ..corpus.entities import set_entities
from ..corpus.gold import find_gold
from ..errors import Errors, WeaknerError
from ..files import atomic_path, check_output
from ..heads.entities import EntityHead
from ..runtime.predictions import Predictor


class HeldOut(NamedTuple):
    """A component, and gold that it has not seen.

    nlp (Language): Its pipeline.
    name (str): Its name.
    pipe (EntityHead): The component.
    examples (List[Example]): The gold: complete, and with what the components before it write.
    """

    nlp: Language
    name: str
    pipe: EntityHead
    examples: List[Example]

    @classmethod
    def read(
        cls, output_path: Path, model: Union[str, Path], gold: Path, component: Optional[str], what: str
    ) -> "HeldOut":
        """Read both.

        output_path (Path): Where the changed pipeline goes; must not be there.
        model (Union[str, Path]): The pipeline.
        gold (Path): The gold: a `.spacy` file or a folder of them. It is held in memory.
        component (Optional[str]): Name of the component; None: the head that writes the entities.
        what (str): What it has to be able to, for messages.
        RETURNS (HeldOut): Both.
        RAISES (WeaknerError): For missing input, a pipeline without such a component, one in which another component
            decides on what its heads find, no complete gold, or a label that the component does not know.
        """
        check_output([Path(gold), *([Path(model)] if Path(model).exists() else [])], [output_path])
        if output_path.exists():
            raise WeaknerError(Errors.WK300.format(path=output_path))
        asked = Predictor(
            model,
            component,
            lambda pipe: isinstance(pipe, EntityHead),
            what,
            "a head for entities",
        )
        if component is None and not asked.pipe.annotate_ents:
            raise WeaknerError(Errors.WK703.format(name=asked.name))
        docs = list(filter(complete, read_docs(Path(gold), asked.nlp.vocab)))
        if not docs:
            raise WeaknerError(Errors.WK342.format(path=gold))
        _check_labels(asked.name, asked.pipe.labels, docs)
        examples = [Example(copy, doc) for copy, doc in zip(asked.bare(docs), docs, strict=True)]
        return cls(asked.nlp, asked.name, asked.pipe, examples)

    def save(self, output_path: Path) -> None:
        """Write the changed pipeline.

        output_path (Path): Its folder.
        """
        with atomic_path(output_path) as temporary:
            self.nlp.to_disk(temporary)


def complete(doc: Doc) -> bool:
    """Whether everything is known about the entities of a Doc with tokens; its gold becomes `doc.ents` then."""
    found = find_gold(doc)
    if not len(doc) or found is None or found.missing:
        return False
    set_entities(doc, sorted(found.entities), [True] * len(doc))
    return True


def _check_labels(name: str, labels: Iterable[str], docs: Iterable[Doc]) -> None:
    known = set(labels)
    for label in (ent.label_ for doc in docs for ent in doc.ents):
        if label not in known:
            listed = ", ".join(labels)
            raise WeaknerError(Errors.WK003.format(name=name, kind="entity", label=label, labels=listed))
