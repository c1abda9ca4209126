"""Assembles one pipeline from others: term lists, heads, and perhaps a combiner."""

from functools import reduce
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config

from ..abbreviations.component import Abbreviations
from ..corpus.docbin import copy_with_groups
from ..corpus.language import CorpusLanguage
from ..corpus.sentences import SENTENCIZER
from ..corpus.weak import weak_group, weak_sources
from ..files import atomic_path
from ..gazetteer_ruler.entities import SHORTER
from ..pipelines import load_pipeline
from .encoding import HEAD, add_encoder, encoder_of, listening
from .lists import ABBREVIATIONS, BINDING, LINKER, RULER, SHORT_FORMS

COMBINER = "ent_combiner"
PROPOSES = {"annotate_ents": False, "nested": True}
WRITES = {"scores": True}
# Least probability of a head's entities in projects without gold: too few of the others are right (best.md).
THRESHOLD = 0.6
ON_PUBLIC_DATA = (
    "On the test sets of public data, with nine lists, the list's matches together with a head's probable entities "
    "(where they overlap, the longest span) had on average 2.2 points of F1 more than the list alone (-0.3 to +7.7)."
)
STUDENT_WITHOUT_GOLD = (
    "On public data, with four lists, the list and a student had from 0.6 points of F1 less to 4.9 more than with its "
    "teacher on a Transformer, and from 1.4 less to 5.1 more than with what a linear CRF learns from the list."
)


def assemble(
    lists: Mapping[str, Path],
    heads: Mapping[str, Path],
    settings: Mapping[str, Any],
    language: CorpusLanguage,
    *,
    stored: bool = False,
) -> Language:
    """Combine term lists (by source) and heads (by their new names) in one pipeline, which splits texts into sentences
    as the corpora are split.
    Lists write the span groups `weak:<source>`; `settings` override those of the heads. The tokenizer and
    the vectors come from the part with the largest vectors. Heads on a frozen Transformer share one; with `stored`,
    they read its stored vectors, which exist for the sentences of the gold and dev only."""
    first = max([*heads.values(), *lists.values()], key=_vectors_size)
    nlp = spacy.load(first, exclude=load_config(first / "config.cfg")["nlp"]["pipeline"])
    nlp.config["training"]["score_weights"] = {"ents_f": 1.0}
    nlp.meta["performance"] = {}  # scores of one part, not of the whole
    _add_lists(nlp, lists, annotate_ents=False)
    for name, path in heads.items():
        model = load_config(path / "config.cfg", interpolate=True)["components"][HEAD]["model"]
        encoded = encoder_of(model)
        if encoded is not None and not stored:
            add_encoder(nlp, encoded)
            model = listening(model, encoded)
        _add_part(nlp, path, HEAD, name, {**settings, "model": model})
    language.add_sentences(nlp)
    return nlp


def list_and_head(lists: Mapping[str, Path], head: Path, output: Path, language: CorpusLanguage) -> Path:
    """Write the pipeline for projects without gold: the lists' matches and the head's probable entities; where they
    overlap, the longest span. Entities get no scores, since the head's probabilities cannot be calibrated without
    gold."""
    nlp = assemble({}, {HEAD: head}, {"scores": False, "threshold": THRESHOLD}, language)
    _add_lists(nlp, lists, annotate_ents=True, overwrite=SHORTER)
    if SENTENCIZER in nlp.pipe_names:
        nlp.remove_pipe(SENTENCIZER)
    language.add_sentences(nlp)  # with the terms of the lists
    return save(nlp, output, lists)


def save(nlp: Language, output: Path, lists: Mapping[str, Path], binding: Optional[Mapping[str, Path]] = None) -> Path:
    """Write a pipeline atomically, after adding the components of lists that process entities: binding terms (also of
    lists that the pipeline does not read, given as `binding`), short forms and ids."""
    for n, path in _binding(lists if binding is None else binding):
        _add_part(nlp, path, BINDING, _numbered(BINDING, n), {})
    for n, path in enumerate(lists.values(), start=1):
        names = load_config(path / "config.cfg")["nlp"]["pipeline"]
        if ABBREVIATIONS in names and ABBREVIATIONS not in nlp.pipe_names:
            nlp.add_pipe(ABBREVIATIONS)
        if LINKER in names:
            _add_part(nlp, path, LINKER, _numbered(LINKER, n), {})
    with atomic_path(output) as temporary:
        nlp.to_disk(temporary)
    return output


def last_steps(lists: Mapping[str, Path], binding: Optional[Mapping[str, Path]] = None) -> Callable[[Doc], Doc]:
    """Return the steps for binding terms and short forms that `save` adds if a list has some, to apply them to
    predictions before scoring."""
    configs = (load_config(path / "config.cfg") for path in lists.values())
    declared = _binding(lists if binding is None else binding)
    steps: List[Any] = [load_pipeline(path).get_pipe(BINDING) for _, path in declared]
    if any(ABBREVIATIONS in config["nlp"]["pipeline"] for config in configs):
        steps.append(Abbreviations())
    return lambda doc: reduce(lambda done, step: step(done), steps, doc)


def _binding(lists: Mapping[str, Path]) -> List[Tuple[int, Path]]:
    """Return the lists with binding terms, with their numbers."""
    found = enumerate(lists.values(), start=1)
    return [(n, path) for n, path in found if BINDING in load_config(path / "config.cfg")["nlp"]["pipeline"]]


def _numbered(name: str, n: int) -> str:
    return name if n == 1 else f"{name}_{n}"


def predict_docs(nlp: Language, docs: Sequence[Doc]) -> List[Doc]:
    """Predict copies of Docs of the same vocabulary, keeping the matches of lists that the Docs already have."""
    copies = [copy_with_groups(doc, map(weak_group, weak_sources(doc))) for doc in docs]
    rulers = [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory == RULER]
    return list(nlp.pipe(copies, disable=rulers))


def _add_lists(nlp: Language, lists: Mapping[str, Path], **settings: Any) -> None:
    for n, path in enumerate(lists.values(), start=1):
        _add_part(nlp, path, RULER, RULER if len(lists) == 1 else f"{RULER}_{n}", settings)
        config = load_config(path / "config.cfg")
        if SHORT_FORMS in config["nlp"]["pipeline"]:
            short = dict(config["components"][SHORT_FORMS])
            nlp.add_pipe(short.pop("factory"), name=f"{SHORT_FORMS}_{n}", config=short)


def _add_part(nlp: Language, path: Path, component: str, name: str, settings: Mapping[str, Any]) -> None:
    """Add a trained component of another pipeline under a new name, with some settings changed."""
    config = load_config(path / "config.cfg", interpolate=True)
    trained: Dict[str, Any] = {**config["components"][component], **settings}
    pipe: Any = nlp.add_pipe(trained.pop("factory"), name=name, config=trained)
    pipe.from_disk(path / component, exclude=["vocab"])


def _vectors_size(pipeline: Path) -> int:
    path = pipeline / "vocab" / "vectors"
    return path.stat().st_size if path.exists() else 0
