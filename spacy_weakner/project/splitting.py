"""Splits dev and test off the gold."""

from typing import Dict, List, NamedTuple, Sequence

from spacy.tokens import Doc

from ..runs.groups import count_documents, group_docs, without_copies

# Fewer sentences than this are worth more as training data: candidates are compared by cross-validation of them.
MIN_TO_SPLIT = 2000
# With fewer there is no test set besides.
MIN_FOR_TEST = 400
SHARE = 0.2
LARGEST = 500


class Split(NamedTuple):
    """Parts of the gold; dev and test may be empty."""

    gold: List[Doc]
    dev: List[Doc]
    test: List[Doc]
    documents: int  # 0 if identifiers do not tell
    dropped: Dict[str, int]  # sentences of dev and of test that were left out, as copies of others
    reasons: Dict[str, str]  # why dev or test is empty although it was wanted


def split_gold(docs: Sequence[Doc], *, dev: bool, test: bool, seed: int = 0) -> Split:
    """Split gold. Sentences of one document, or copies of a sentence where identifiers tell of no documents, go to the
    same part. A copy in another document is left out of dev and test, unless it is short. What goes where depends on
    identifiers, texts and the seed, not on the order."""
    documents = count_documents(docs)
    wanted = {"test": _size(len(docs)) if test else 0, "dev": _size(len(docs)) if dev else 0}
    parts = _fill(docs, wanted, seed)
    reasons: Dict[str, str] = {}
    dropped: Dict[str, int] = {}
    # Test first: copies of what stands in dev are left out of it, even if dev goes back to the gold.
    for name in [name for name, n in wanted.items() if n]:
        own = parts.pop(name)
        kept = without_copies(own, [doc for part in parts.values() for doc in part])
        if not own:
            reasons[name] = f"the gold is a single {'document' if documents else 'sentence'}, or nearly so"
        elif not _has_entities(kept):
            reasons[name] = f"{len(own)} sentences were, but had no entity, and went back"
        elif not _has_entities(parts["gold"]):
            reasons[name] = f"{len(own)} sentences were, but had all entities, and went back"
        else:
            parts[name] = kept
            dropped[name] = len(own) - len(kept)
            continue
        parts["gold"] += own
    place = {id(doc): i for i, doc in enumerate(docs)}
    gold, own_dev, own_test = (
        sorted(parts.get(name, []), key=lambda doc: place[id(doc)]) for name in ("gold", "dev", "test")
    )
    return Split(gold, own_dev, own_test, documents, dropped, reasons)


def _size(n: int) -> int:
    return min(LARGEST, round(SHARE * n))


def _has_entities(docs: Sequence[Doc]) -> bool:
    return any(doc.ents for doc in docs)


def _fill(docs: Sequence[Doc], wanted: Dict[str, int], seed: int) -> Dict[str, List[Doc]]:
    """Groups go to dev as long as it is too small, then to test, then to the gold."""
    parts: Dict[str, List[Doc]] = {"gold": [], "dev": [], "test": []}
    for group in group_docs(docs, str(seed)):
        left = {name: wanted[name] - len(parts[name]) for name in ("dev", "test")}
        # A document much larger than what is still wanted stays with the gold.
        part = next((name for name, n in left.items() if n > 0 and len(group) <= 2 * n), "gold")
        parts[part].extend(group)
    return parts
