"""Small projects: what was found, corpora, and pipelines that find what they are told."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import spacy

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.language import CorpusLanguage, record_language
from spacy_weakner.corpus.weak import set_id, set_source, set_weak
from spacy_weakner.evaluation.compare import CandidateScores
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.prepare import CROSS_VALIDATION, DEV, NOTHING
from spacy_weakner.project.rules import Facts, Settings
from spacy_weakner.project.selection import Selection, TrainedCandidate
from spacy_weakner.ty import Entity

from ..util import make_doc

NLP = spacy.blank("xx")
LANGUAGE = CorpusLanguage.make("xx")
PEOPLE, PLACES = ("Anna", "Bob", "Clara"), ("Paris", "Rome", "Oslo")
ALL_TERMS = {"PER": list(PEOPLE), "LOC": list(PLACES)}
SCORES = {
    **{"name": "x", "tp": 8, "fp": 2, "fn": 2, "p": 80.0, "r": 80.0, "f1": 80.0, "words_per_second": 1000},
    "interval": {"low": 70.0, "high": 90.0},
    "difference": None,
}


def make_facts(**changes: Any) -> Facts:
    """What was found in a project that has everything."""
    found: Dict[str, Any] = {"size": "transformer", "gold": 100, "dev": 50, "text": 1000, "lists": 1, "weak": True}
    found.update(precision=80.0, recall=60.0, f1=68.6, chosen_by=DEV)
    return Facts(**{**found, **changes})


def make_trained(name: str, path: Any, scores: Optional[Dict[str, Any]] = SCORES) -> TrainedCandidate:
    """A candidate."""
    known = None if scores is None else CandidateScores.model_validate({**scores, "name": name})
    return TrainedCandidate(name=name, path=str(path), why="it is there", scores=known)


def make_selection(path: Path, name: str = "term list", scores: Optional[Dict[str, Any]] = SCORES) -> Selection:
    """A selection of one candidate."""
    chosen_by = NOTHING if scores is None else DEV
    settings = Settings(text_steps=400, negative_rate=0.2)
    return Selection(
        best=name,
        chosen_by=chosen_by,
        candidates=[make_trained(name, path, scores)],
        facts=make_facts(chosen_by=chosen_by),
        settings=settings,
        code="1.0 abc",
    )


def write_ruler(path: Path, terms: Dict[str, List[str]], lang: str = "xx") -> Path:
    """A pipeline that finds terms, and nothing else."""
    nlp = spacy.blank(lang)
    ruler = nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True})
    ruler.initialize(lambda: [], nlp=nlp, terms=terms or {"PER": ["nothing"]})
    nlp.config["training"]["score_weights"] = {"ents_f": 1.0}
    nlp.to_disk(path)
    return path


def sentences(n: int, start: int = 0) -> List[Tuple[str, List[Entity]]]:
    """Different sentences with a person and a place each."""
    rows = []
    for i in range(start, start + n):
        rows.append((f"{PEOPLE[i % 3]} went to {PLACES[i % 2]} {i}", [(0, 1, "PER"), (3, 4, "LOC")]))
    return rows


def write_gold(path: Path, n: int, start: int = 0) -> None:
    """A corpus of gold."""
    write_docs(path, [make_doc(NLP, text, entities) for text, entities in sentences(n, start)])


def write_weak(path: Path, n: int, start: int = 1000) -> None:
    """A corpus of weak labels: the people alone."""
    docs = []
    for text, entities in sentences(n, start):
        doc = make_doc(NLP, text, entities[:1], missing=range(1, 5))
        set_weak(doc)
        set_source(doc, "gazetteer", entities[:1])
        docs.append(doc)
    write_docs(path, docs)


def make_corpora(
    folder: Path, *, gold: int = 24, dev: int = 12, text: int = 20, scores: Optional[Dict[str, float]] = None
) -> Corpora:
    """The folder that `prepare`, `label`, `analyze` and `aggregate` leave."""
    corpora = Corpora(folder)
    chosen_by = DEV if dev else CROSS_VALIDATION if gold else NOTHING
    if gold:
        write_gold(corpora.gold, gold)
        docs = [make_doc(NLP, text, entities) for text, entities in sentences(gold)]
        for doc in docs:
            set_source(doc, "gazetteer", [(0, 1, "PER")])
        write_docs(corpora.gold_labeled, docs)
    if dev:
        write_gold(corpora.dev, dev, 100)
    if text:
        write_weak(corpora.weak / "part-00000.spacy", text)
    counts = {"gold": gold, "dev": dev, "test": 0, "text": text}
    folder.mkdir(exist_ok=True)
    for part in (corpora.annotated, corpora.text):
        part.mkdir(exist_ok=True)
        record_language(part, LANGUAGE)
    corpora.splits.write_text(json.dumps({**counts, "chosen_by": chosen_by, "notes": ["prepared"]}))
    if scores is not None:
        corpora.labels.write_text(json.dumps({"scores": scores, "proposal": None}))
    return corpora


def gold_rows(n: int, identifiers: Optional[Sequence[str]] = None) -> List[Dict[str, Any]]:
    """Gold as rows of JSONL."""
    rows: List[Dict[str, Any]] = [{"tokens": text.split(), "ents": entities} for text, entities in sentences(n)]
    for row, identifier in zip(rows, identifiers or (), strict=False):
        row["id"] = identifier
    return rows


def write_rows(path: Path, rows: Sequence[Dict[str, Any]]) -> Path:
    """Rows as JSONL."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def numbered(docs: Sequence[Any], identifiers: Sequence[Optional[str]]) -> List[Any]:
    """Docs with identifiers."""
    for doc, identifier in zip(docs, identifiers, strict=True):
        set_id(doc, identifier)
    return list(docs)
