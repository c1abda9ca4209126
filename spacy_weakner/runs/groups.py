"""Groups of Docs that must not be separated when gold is split: sentences of one document, and copies of a sentence."""

from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from spacy.tokens import Doc

from ..corpus.docbin import write_docs
from ..corpus.documents import group_keys
from ..corpus.sentences import SHORT, sentence_key
from ..corpus.weak import WRONG_GROUP, is_known_group
from ..runtime.hashes import hash_text


class FoldDocs(NamedTuple):
    """One fold, and all other Docs without copies of it."""

    held_out: List[Doc]
    rest: List[Doc]


class FoldFiles(NamedTuple):
    """The corpora of a fold."""

    held_out: Path
    rest: Path


def group_docs(docs: Sequence[Doc], seed: str, *, least: int = 1) -> List[List[Doc]]:
    """Group sentences: by document if identifiers name at least `least` documents, else by text. The order of the
    groups depends on the seed, identifiers and texts, but not on the order of `docs`."""
    docs = sorted(docs, key=lambda doc: doc.text)
    groups: Dict[str, List[Doc]] = {}
    for doc, key in zip(docs, group_keys(docs, least), strict=True):
        groups.setdefault(hash_text(f"{seed} {key}"), []).append(doc)
    return [groups[key] for key in sorted(groups)]


def without_copies(docs: Sequence[Doc], others: Sequence[Doc]) -> List[Doc]:
    """Return the sentences that do not occur among others, and all short ones."""
    there = {sentence_key(doc.text) for doc in others}
    return [doc for doc in docs if len(doc) <= SHORT or sentence_key(doc.text) not in there]


def split_folds(docs: Sequence[Doc], folds: int, seed: int = 0) -> List[FoldDocs]:
    """Split gold for cross-validation: by document, or by sentence if there are fewer documents than folds or if the
    rest of a fold would have no label. There are fewer than `folds` folds if there are fewer distinct sentences."""
    found = _deal(group_docs(docs, str(seed), least=folds), folds)
    return found if learnable(found) else _deal(group_docs(docs, str(seed), least=len(docs) + 1), folds)


def write_folds(folds: Sequence[FoldDocs], folder: Path) -> List[FoldFiles]:
    """Write folds as `fold-<n>.spacy` and `rest-<n>.spacy`, with n starting at 1."""
    files = [FoldFiles(folder / f"fold-{n}.spacy", folder / f"rest-{n}.spacy") for n in range(1, len(folds) + 1)]
    for paths, parts in zip(files, folds, strict=True):
        for path, docs in zip(paths, parts, strict=True):
            write_docs(path, docs)
    return files


ONE_LEARNABLE = "only one of its sentences has entities (apart from copies of it)"


def learnable(folds: Sequence[FoldDocs]) -> bool:
    """Return True if the rest of each fold has a label, or if there are no labels at all."""
    has_label = [any(map(_has_labels, fold.rest)) for fold in folds]
    return all(has_label) or not any(_has_labels(doc) for fold in folds for doc in fold.held_out)


def _deal(groups: Sequence[List[Doc]], folds: int) -> List[FoldDocs]:
    """Assign each group to the smallest fold so far. Groups with labels come first, so that they are spread evenly."""
    parts: List[List[Doc]] = [[] for _ in range(min(folds, len(groups)))]
    for group in sorted(groups, key=lambda group: not any(map(_has_labels, group))):
        min(parts, key=len).extend(group)
    rests = [[doc for other in parts if other is not part for doc in other] for part in parts]
    return [FoldDocs(part, without_copies(rest, part)) for part, rest in zip(parts, rests, strict=True)]


def _has_labels(doc: Doc) -> bool:
    """Return True if a Doc has any kind of label to train on."""
    spans = (len(group) for key, group in doc.spans.items() if not is_known_group(key) or key == WRONG_GROUP)
    return bool(doc.ents) or any(doc.cats.values()) or any(spans)
