"""Keeps the package of the last run, and compares it with the new one on sentences that neither was trained on."""

import shutil
from pathlib import Path
from typing import List, Optional, Set

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import read_docs
from ..corpus.sentences import SHORT, sentence_key
from ..corpus.tags import same_tokens
from ..errors import WeaknerError
from ..evaluation.candidates import Candidate, Predictions
from ..files import atomic_path
from .folds import all_folds
from .selection import PREVIOUS, SELECTION, Selection

_FOLDER = "previous"


def keep_previous(output: Path) -> Optional[Selection]:
    """Copy the pipeline that `fit` has selected, the gold that it was trained on, and its predictions on held-out gold
    to a folder in `output`. Return its selection, or that of an earlier run if there is only one of these."""
    folder = output / _FOLDER
    try:
        earlier = Selection.load(output / SELECTION)
    except WeaknerError:  # a first run, or one after a run that was interrupted
        earlier = None
    if earlier is not None and Path(earlier.selected.path).is_dir():
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            pipeline, gold = temporary / "pipeline", all_folds(output / "folds")
            shutil.copytree(earlier.selected.path, pipeline)
            changes = {"path": str(pipeline)}
            if earlier.selected.predicted is not None:
                changes["predicted"] = str(shutil.copy(earlier.selected.predicted, temporary / "predicted.spacy"))
            if gold.exists():
                shutil.copy(gold, _gold_of(pipeline))
            kept = earlier.selected.model_copy(update=changes)
            earlier.model_copy(update={"candidates": [kept], "corpus": None}).save(temporary / SELECTION)
    try:
        return Selection.load(folder / SELECTION)
    except WeaknerError:  # there is none, or one of another version of this package
        return None


def predict_held_out(previous: Selection, corpus: Path) -> Optional[List[Doc]]:
    """Predict a corpus with the previous package. Sentences that it was trained on have the predictions of its
    cross-validation; None if there are others of these."""
    pipeline, predicted = Path(previous.selected.path), previous.selected.predicted
    held_out = {} if predicted is None else {sentence_key(doc.text): doc for doc in read_docs(Path(predicted), Vocab())}
    seen = _keys(_gold_of(pipeline)) - {*held_out}
    docs = []
    for gold, doc in Predictions(Candidate(PREVIOUS, pipeline), corpus):
        key = sentence_key(gold.text)
        known = held_out.get(key, doc)
        if key in seen or not same_tokens(known, gold):
            return None
        docs.append(known)
    return docs


def has_seen(previous: Path, corpus: Path) -> bool:
    """Return True if the previous package, given by its pipeline, was trained on a sentence of a corpus."""
    return bool(_keys(_gold_of(previous)) & _keys(corpus))


def _gold_of(previous: Path) -> Path:
    return previous.parent / "gold.spacy"


def _keys(corpus: Path) -> Set[str]:
    """Return the keys of all sentences but short ones, which are equal by chance."""
    docs = read_docs(corpus, Vocab()) if corpus.exists() else ()
    return {sentence_key(doc.text) for doc in docs if len(doc) > SHORT}
