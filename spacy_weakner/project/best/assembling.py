"""One pipeline of several: term lists, heads that only propose, and perhaps what decides between them."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config

from ...corpus.docbin import copy_with_groups
from ...corpus.weak import weak_group, weak_sources
from ...pipelines import add_sentences
from ..lists import RULER

HEAD, COMBINER = "crf_ner", "ent_combiner"
# Of how many sequences the entities are candidates.
N_BEST = 5


def assemble(
    lists: Mapping[str, Path], members: Mapping[str, Path], *, decides: bool = False, **settings: Any
) -> Language:
    """Put term lists and heads into one pipeline. They write span groups: `weak:<source>` and `pred:<name>`.

    lists (Mapping[str, Path]): Pipelines of term lists, by source.
    members (Mapping[str, Path]): Pipelines with a `crf_ner`, by the name that it gets.
    decides (bool): Whether the heads write `doc.ents`, and no candidates.
    **settings (Any): Settings that the heads have here.
    RETURNS (Language): The pipeline, which splits texts into sentences; its tokenizer and vectors are those of the
        member, or list, with most vectors.
    """
    first = max([*members.values(), *lists.values()], key=_vectors_size)
    names = load_config(first / "config.cfg")["nlp"]["pipeline"]
    nlp = spacy.load(first, exclude=names)
    nlp.config["training"]["score_weights"] = {"ents_f": 1.0}
    nlp.meta["performance"] = {}  # that of one component
    add_lists(nlp, lists, annotate_ents=False)
    add_sentences(nlp)
    for name, path in members.items():
        writes = {"scores": True} if decides else {"annotate_ents": False, "n_best": N_BEST}
        _add_part(nlp, path, HEAD, name, **{**writes, **settings})
    return nlp


def predict_docs(nlp: Language, docs: Sequence[Doc]) -> List[Doc]:
    """Let the heads of a pipeline say what they find. What lists say of the Docs is taken from these.

    nlp (Language): The pipeline.
    docs (Sequence[Doc]): Docs of its vocabulary, with a group for each weak source; they stay as they are.
    RETURNS (List[Doc]): Copies, as the pipeline leaves them.
    """
    copies = [copy_with_groups(doc, map(weak_group, weak_sources(doc))) for doc in docs]
    rulers = [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory == RULER]
    return list(nlp.pipe(copies, disable=rulers))


def add_lists(nlp: Language, lists: Mapping[str, Path], **changes: Any) -> None:
    """Add term lists.

    nlp (Language): The pipeline that gets them.
    lists (Mapping[str, Path]): Pipelines of term lists, by source.
    **changes (Any): Settings that they have here.
    """
    for n, path in enumerate(lists.values(), start=1):
        _add_part(nlp, path, RULER, RULER if len(lists) == 1 else f"{RULER}_{n}", **changes)


def add_combiner(nlp: Language, *, sources: Sequence[str], members: Sequence[str]) -> Any:
    """Add what decides between the candidates, which has yet to be fitted.

    nlp (Language): The pipeline.
    sources (Sequence[str]): Weak sources whose matches are candidates.
    members (Sequence[str]): Heads whose proposals are.
    RETURNS (Any): The component.
    """
    return nlp.add_pipe(COMBINER, config={"sources": list(sources), "predictions": list(members)})


def _add_part(nlp: Language, path: Path, component: str, name: str, **changes: Any) -> None:
    """Add a trained component of another pipeline, under a new name and with some changed settings."""
    config = load_config(path / "config.cfg", interpolate=True)
    settings: Dict[str, Any] = dict(config["components"][component])
    factory = settings.pop("factory")
    pipe: Any = nlp.add_pipe(factory, name=name, config={**settings, **changes})
    pipe.from_disk(path / component, exclude=["vocab"])


def _vectors_size(pipeline: Path) -> int:
    path = pipeline / "vocab" / "vectors"
    return path.stat().st_size if path.exists() else 0
