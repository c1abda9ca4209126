"""The sentences that a pipeline was trained on: scores on them are too high to calibrate with."""

import json
from pathlib import Path
from typing import Iterable, Sequence, Set

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..about import __title__
from ..corpus.docbin import SUFFIX, read_docs
from ..corpus.sentences import SHORT, SentenceSplitter, sentence_key
from ..errors import Errors, WeaknerError
from ..files import parse_json, write_text
from ..runtime.hashes import hash_text

# Key in the section of this package in `meta.json`: hashes of the gold sentences.
TRAINED_ON = "trained_on"
# Variables of configs with the gold that a pipeline is trained on.
_PATHS = ("train", "strong")
_DIGITS = 8  # of a hash


def remember(pipeline: Path, docs: Iterable[Doc]) -> None:
    """Store in the metadata of a pipeline that it was trained on these Docs."""
    path = pipeline / "meta.json"
    meta = parse_json(path.read_bytes())
    meta.setdefault(__title__, {})[TRAINED_ON] = "".join(sorted(_hashes(docs)))
    write_text(path, json.dumps(meta, indent=2, ensure_ascii=False) + "\n")


def check_unseen(nlp: Language, docs: Sequence[Doc], path: Path) -> None:
    """Raise an error if a pipeline was trained on sentences of a corpus: if its metadata has them, or the corpora in
    its config, where they still exist. Short sentences do not count."""
    stored = str((nlp.meta.get(__title__) or {}).get(TRAINED_ON, ""))
    known = {stored[i : i + _DIGITS] for i in range(0, len(stored), _DIGITS)}
    for value in (nlp.config["paths"].get(name) for name in _PATHS):
        if value and Path(value).suffix == SUFFIX and Path(value).is_file():
            known |= _hashes(read_docs(Path(value), Vocab()))
    splitter = SentenceSplitter(nlp)
    parts = [[doc, *splitter.sentences_of(doc)] for doc in docs]
    seen = [doc for doc, its in zip(docs, parts, strict=True) if not known.isdisjoint(_hashes(its))]
    if seen:
        raise WeaknerError(Errors.WK728.format(path=path, n=len(seen), of=len(docs), text=seen[0].text[:50]))


def _hashes(docs: Iterable[Doc]) -> Set[str]:
    return {hash_text(sentence_key(doc.text))[:_DIGITS] for doc in docs if len(doc) > SHORT}
