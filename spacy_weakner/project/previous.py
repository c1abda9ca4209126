"""Keeps the package of the last run, and compares it with the new one on sentences that neither was trained on."""

import shutil
from pathlib import Path
from typing import List, Optional, Set, Tuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..calibration.seen import TRAINED_ON, hashes, recorded
from ..corpus.docbin import read_docs
from ..corpus.sentences import sentence_key
from ..corpus.tags import same_tokens
from ..errors import WeaknerError
from ..evaluation.candidates import Candidate, Predictions
from ..evaluation.compare import CandidateScores
from ..files import atomic_path, parse_json
from ..runtime.devices import on_device
from .comparing import Comparison
from .rules import Rule
from .selection import PREVIOUS, SELECTION, Selection

_FOLDER = "previous"
# With fewer sentences, packages are not compared, unless there are no others.
LEAST = 20


def keep_previous(output: Path, inputs: str) -> Optional[Selection]:
    """Copy the pipeline that `fit` has selected, and its predictions on held-out gold, to a folder in `output`. Return
    its selection, or that of an earlier run if there is only one of these. A run with the same `inputs` is repeated, so
    what was the previous package for it still is."""
    folder = output / _FOLDER
    try:
        earlier = Selection.load(output / SELECTION)
    except WeaknerError:  # a first run, or one after a run that was interrupted
        earlier = None
    if earlier is not None and earlier.inputs != inputs and Path(earlier.selected.path).is_dir():
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            pipeline = temporary / "pipeline"
            shutil.copytree(earlier.selected.path, pipeline)
            changes = {"path": str(pipeline)}
            if earlier.selected.predicted is not None:
                changes["predicted"] = str(shutil.copy(earlier.selected.predicted, temporary / "predicted.spacy"))
            kept = earlier.selected.model_copy(update=changes)
            earlier.model_copy(update={"candidates": [kept], "corpus": None}).save(temporary / SELECTION)
    try:
        kept_before = Selection.load(folder / SELECTION)
    except WeaknerError:  # there is none, or one of another version of this package
        return None
    # A run that was interrupted may have kept the package of the run that is repeated now.
    return None if kept_before.inputs == inputs else kept_before


def predict_held_out(previous: Selection, corpus: Path) -> List[Optional[Doc]]:
    """Predict a corpus with the previous package. Sentences that it was trained on have the predictions of its
    cross-validation; None for others of these, and for sentences that it splits into other tokens."""
    pipeline, predicted = Path(previous.selected.path), previous.selected.predicted
    held_out = {} if predicted is None else {sentence_key(doc.text): doc for doc in read_docs(Path(predicted), Vocab())}
    seen, docs = _seen_by(pipeline), []
    for gold, doc in Predictions(Candidate(PREVIOUS, pipeline), corpus):
        known = held_out.get(sentence_key(gold.text), None if seen & hashes([gold]) else doc)
        docs.append(known if known is not None and same_tokens(known, gold) else None)
    return docs


def compare_previous(
    compared: Comparison, previous: Optional[Selection], best: str
) -> Tuple[List[CandidateScores], List[Rule]]:
    """Score the previous package, if there is one, beside the best candidate; return also what limits the
    comparison."""
    if previous is None:
        return [], []
    rows: List[CandidateScores] = []
    try:
        with on_device(compared.context.gpu_id):
            docs = predict_held_out(previous, compared.corpus)
    except WeaknerError as error:  # of another version of this package
        limits = [f"it is not compared: {error}"]
    else:
        n, left_out = len(docs), docs.count(None)
        limits = [
            f"{left_out} of the {n} sentences are left out, since it was trained on them or splits them into other "
            "tokens"
        ]
        if n - left_out < min(n, LEAST):
            limits = [f"it is not compared: {limits[0]}, and the others are too few"]
        else:
            rows = compared.score_previous(Path(previous.selected.path), docs, best)
            new = n - previous.facts.gold if compared.dev is None else 0
            text = f"{new} of the {n} sentences are new; if 'suggest' chose them, they are harder for it than others"
            limits = [*(limits if left_out else ()), *([text] if new > 0 else ())]
    why = "; ".join(limits)
    if why:
        compared.context.say(f"the previous package: {why}")
    return rows, [Rule(name=PREVIOUS, trained=True, why=why) for _ in rows]


def has_seen(previous: Path, corpus: Path, new: Optional[Path] = None) -> bool:
    """Return True if the previous package, given by its pipeline, was trained on a sentence of a corpus that the new
    one was not trained on."""
    seen = _seen_by(previous) - (set() if new is None else _seen_by(new))
    return bool(seen & hashes(read_docs(corpus, Vocab())))


def _seen_by(pipeline: Path) -> Set[str]:
    return recorded(parse_json((pipeline / "meta.json").read_bytes()), TRAINED_ON)
