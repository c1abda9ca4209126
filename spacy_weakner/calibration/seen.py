"""The sentences that a pipeline was trained or chosen on: scores on them are too high."""

import json
from pathlib import Path
from typing import Any, Iterable, List, Mapping, NamedTuple, Sequence, Set

from spacy.language import Language
from spacy.tokens import Doc

from ..about import __title__
from ..corpus.docbin import SUFFIX, found_files, stream_docs
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


class Unseen(NamedTuple):
    """Docs without sentences that a pipeline was trained or chosen on.

    docs (List[Doc]): The Docs.
    unknown (List[str]): Settings of the pipeline's config that name corpora which cannot be read here, if no other
        record tells what they contained.
    """

    docs: List[Doc]
    unknown: List[str]


def unseen(nlp: Language, docs: Sequence[Doc]) -> Unseen:
    """Leave out Docs with sentences that a pipeline was trained or chosen on: those in its metadata, and in the corpora
    that its config names. Short sentences do not count; but if some Docs are left out, short ones are too, since they
    may be from the same corpora."""
    known, unknown = recorded(nlp.meta, TRAINED_ON, CHOSEN_ON), []
    is_recorded = bool(known)
    for name in _PATHS:
        value = nlp.config["paths"].get(name)
        if not value:
            continue
        path = Path(value)
        if path.suffix == SUFFIX if path.is_file() else found_files(path):
            known |= hashes(stream_docs(path))
        elif not is_recorded:
            unknown.append(f"paths.{name} = {path}")
    splitter = SentenceSplitter(nlp)
    found = [doc for doc in docs if known.isdisjoint(hashes([doc, *splitter.sentences_of(doc)]))]
    return Unseen(found if len(found) == len(docs) else [doc for doc in found if len(doc) > SHORT], unknown)


def hashes(docs: Iterable[Doc]) -> Set[str]:
    """Return the hashes of all sentences but short ones, which are equal by chance."""
    return {hash_text(sentence_key(doc.text))[:_DIGITS] for doc in docs if len(doc) > SHORT}
