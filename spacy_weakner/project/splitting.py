"""Takes dev and test off the gold where a user has none."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence

from spacy.tokens import Doc

from ..annotations.weak import get_id
from ..stages.hashes import hash_text

# Fewer sentences than this are worth more as training data: candidates are then compared by cross-validation.
MIN_TO_SPLIT = 200
# With fewer there is no test set besides.
MIN_FOR_TEST = 400
SHARE = 0.2
LARGEST = 500
_SENTENCE = re.compile(r"(.+)\.\d+")


class Split(NamedTuple):
    """Parts of the gold.

    gold (List[Doc]): To train on.
    dev (List[Doc]): To choose by; may be empty.
    test (List[Doc]): To score at the end; may be empty.
    documents (int): How many documents there were, where identifiers tell; else 0.
    """

    gold: List[Doc]
    dev: List[Doc]
    test: List[Doc]
    documents: int


def split_gold(docs: Sequence[Doc], *, dev: bool, test: bool, seed: int = 0) -> Split:
    """Split gold. Sentences of one document, and copies of a sentence, go to the same part; what goes where depends on
    identifiers, texts and the seed, not on the order.

    docs (Sequence[Doc]): The gold.
    dev (bool): Whether dev is wanted.
    test (bool): Whether test is wanted.
    seed (int): The seed.
    RETURNS (Split): The parts, each in the order of `docs`.
    """
    documents = [document_of(get_id(doc)) for doc in docs]
    known = {name for name in documents if name is not None}
    # Only if a document has several sentences do its identifiers say more than the texts.
    by_document = 0 < len(known) < sum(name is not None for name in documents)
    groups = _groups(docs, documents if by_document else [None] * len(docs))
    wanted = {"dev": _size(len(docs)) if dev else 0, "test": _size(len(docs)) if test else 0}
    part_of: Dict[int, str] = {}
    members: Dict[int, List[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    smallest = {group: min(hash_text(f"{seed} {docs[i].text}") for i in rows) for group, rows in members.items()}
    for group in sorted(members, key=lambda group: (smallest[group], group)):
        size = len(members[group])
        # A document much larger than what is still wanted stays with the gold.
        part = next((name for name, n in wanted.items() if n > 0 and size <= 2 * n), "gold")
        part_of[group] = part
        if part != "gold":
            wanted[part] -= size
    parts: Dict[str, List[Doc]] = {"gold": [], "dev": [], "test": []}
    for doc, group in zip(docs, groups, strict=True):
        parts[part_of[group]].append(doc)
    return Split(parts["gold"], parts["dev"], parts["test"], len(known) if by_document else 0)


def document_of(identifier: Optional[str]) -> Optional[str]:
    """The document that a sentence belongs to: `convert` calls the sentences of a text "a7" a7.1, a7.2 and so on.

    identifier (Optional[str]): Identifier of a sentence.
    RETURNS (Optional[str]): That of its document; None if it does not tell.
    """
    found = _SENTENCE.fullmatch(identifier or "")
    return None if found is None else found[1]


def _size(n: int) -> int:
    return min(LARGEST, round(SHARE * n))


def _groups(docs: Sequence[Doc], documents: Sequence[Optional[str]]) -> List[int]:
    """The number of a group for each Doc: Docs that share a document or a text are in one (union-find)."""
    parent = list(range(len(docs)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: Dict[str, int] = {}
    for i, (doc, document) in enumerate(zip(docs, documents, strict=True)):
        for key in (f"text {' '.join(doc.text.split())}", *([] if document is None else [f"document {document}"])):
            j = first.setdefault(key, i)
            parent[root(i)] = root(j)
    return [root(i) for i in range(len(docs))]
