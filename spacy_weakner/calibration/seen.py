"""The sentences that a pipeline was trained or chosen on: scores on them are too high."""

import json
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Sequence, Set

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..about import __title__
from ..corpus.docbin import SUFFIX, read_docs
from ..corpus.sentences import SHORT, SentenceSplitter, sentence_key
from ..files import parse_json, write_text
from ..runtime.hashes import hash_text

# Keys in the section of this package in `meta.json`: hashes of the gold sentences that the pipeline was trained on, and
# of others by which it or its settings were chosen.
TRAINED_ON, CHOSEN_ON = "trained_on", "chosen_on"
# Variables of configs with such gold.
_PATHS = ("train", "strong", "dev")
_DIGITS = 8  # of a hash


def remember(pipeline: Path, trained: Iterable[Doc], chosen: Iterable[Doc] = ()) -> None:
    """Store in the metadata of a pipeline that it was trained, and chosen, on these Docs."""
    path = pipeline / "meta.json"
    meta = parse_json(path.read_bytes())
    for key, docs in ((TRAINED_ON, trained), (CHOSEN_ON, chosen)):
        meta.setdefault(__title__, {})[key] = "".join(sorted(hashes(docs)))
    write_text(path, json.dumps(meta, indent=2, ensure_ascii=False) + "\n")


def recorded(meta: Mapping[str, Any], *keys: str) -> Set[str]:
    """Return the hashes that are stored in the metadata of a pipeline."""
    stored = "".join(str((meta.get(__title__) or {}).get(key, "")) for key in keys)
    return {stored[i : i + _DIGITS] for i in range(0, len(stored), _DIGITS)}


def unseen(nlp: Language, docs: Sequence[Doc]) -> List[Doc]:
    """Return the Docs without sentences that a pipeline was trained or chosen on: those in its metadata, and in the
    corpora in its config, where they still exist. Short sentences do not count."""
    known = recorded(nlp.meta, TRAINED_ON, CHOSEN_ON)
    for value in (nlp.config["paths"].get(name) for name in _PATHS):
        if value and Path(value).suffix == SUFFIX and Path(value).is_file():
            known |= hashes(read_docs(Path(value), Vocab()))
    splitter = SentenceSplitter(nlp)
    return [doc for doc in docs if known.isdisjoint(hashes([doc, *splitter.sentences_of(doc)]))]


def hashes(docs: Iterable[Doc]) -> Set[str]:
    """Return the hashes of all sentences but short ones, which are equal by chance."""
    return {hash_text(sentence_key(doc.text))[:_DIGITS] for doc in docs if len(doc) > SHORT}
