"""What belongs together when gold is split: sentences of one document, and copies of a sentence."""

from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from spacy.tokens import Doc

from ..corpus.docbin import write_docs
from ..corpus.documents import document_of
from ..corpus.sentences import sentence_key
from ..corpus.weak import GOLD_GROUP, MATCHED_GROUP, PREDICTED_PREFIX, SUSPECT_GROUP, WEAK_PREFIX, get_id
from ..runtime.hashes import hash_text

# Tokens up to which a sentence ("METHODS :") may well occur in two documents by chance.
SHORT = 3
_NO_LABELS = (WEAK_PREFIX, PREDICTED_PREFIX)


class FoldDocs(NamedTuple):
    """One fold, and all other Docs without copies of it."""

    held_out: List[Doc]
    rest: List[Doc]


class FoldFiles(NamedTuple):
    """Their corpora."""

    held_out: Path
    rest: Path


def count_documents(docs: Sequence[Doc]) -> int:
    """Number of documents; 0 where identifiers do not tell."""
    named = [name for name in (document_of(get_id(doc)) for doc in docs) if name is not None]
    known = len(set(named))
    # Only if a document has several sentences do its identifiers say more than the texts.
    return known if known < len(named) else 0


def group_docs(docs: Sequence[Doc], seed: str, *, least: int = 1) -> List[List[Doc]]:
    """Group sentences: by document if identifiers name at least so many, else by text. The seed orders the groups by
    their identifiers and texts, whatever the order of `docs`."""
    by_document = count_documents(docs) >= max(1, least)
    groups: Dict[str, List[Doc]] = {}
    for doc in sorted(docs, key=lambda doc: doc.text):
        document = document_of(get_id(doc)) if by_document else None
        key = f"text {sentence_key(doc.text)}" if document is None else f"document {document}"
        groups.setdefault(hash_text(f"{seed} {key}"), []).append(doc)
    return [groups[key] for key in sorted(groups)]


def without_copies(docs: Sequence[Doc], others: Sequence[Doc]) -> List[Doc]:
    """Leave out sentences that stand among others too, but for short ones."""
    there = {sentence_key(doc.text) for doc in others}
    return [doc for doc in docs if len(doc) <= SHORT or sentence_key(doc.text) not in there]


def split_folds(docs: Sequence[Doc], folds: int, seed: int = 0) -> List[FoldDocs]:
    """Split gold for cross-validation: by document, or by sentence where there are fewer documents than folds, or a
    rest would hold no label. There are fewer than `folds` where there are fewer different sentences."""
    found = _deal(group_docs(docs, str(seed), least=folds), folds)
    return found if learnable(found) else _deal(group_docs(docs, str(seed), least=len(docs) + 1), folds)


def write_folds(folds: Sequence[FoldDocs], folder: Path) -> List[FoldFiles]:
    """Write folds as `fold-<n>.spacy` and `rest-<n>.spacy`, with n from 1 on."""
    files = [FoldFiles(folder / f"fold-{n}.spacy", folder / f"rest-{n}.spacy") for n in range(1, len(folds) + 1)]
    for paths, parts in zip(files, folds, strict=True):
        for path, docs in zip(paths, parts, strict=True):
            write_docs(path, docs)
    return files


ONE_LEARNABLE = "only one sentence of it (or copies of it) has entities"


def learnable(folds: Sequence[FoldDocs]) -> bool:
    """True if the rest of each fold has a label, or there is none at all."""
    has_label = [any(map(_has_labels, fold.rest)) for fold in folds]
    return all(has_label) or not any(_has_labels(doc) for fold in folds for doc in fold.held_out)


def _deal(groups: Sequence[List[Doc]], folds: int) -> List[FoldDocs]:
    """Each group goes to the fold that is the smallest so far. Groups with labels go first, so that they spread."""
    parts: List[List[Doc]] = [[] for _ in range(min(folds, len(groups)))]
    for group in sorted(groups, key=lambda group: not any(map(_has_labels, group))):
        min(parts, key=len).extend(group)
    rests = [[doc for other in parts if other is not part for doc in other] for part in parts]
    return [FoldDocs(part, without_copies(rest, part)) for part, rest in zip(parts, rests, strict=True)]


def _has_labels(doc: Doc) -> bool:
    """True if a training has something to learn from a Doc, of whatever kind."""
    spans = (
        len(group)
        for key, group in doc.spans.items()
        if not key.startswith(_NO_LABELS) and key not in (GOLD_GROUP, MATCHED_GROUP, SUSPECT_GROUP)
    )
    return bool(doc.ents) or any(doc.cats.values()) or any(spans)
