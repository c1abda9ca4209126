"""Splits dev and test off the gold."""

from typing import Dict, List, NamedTuple, Sequence

from spacy.tokens import Doc

from ..corpus.documents import count_documents
from ..runs.groups import group_docs, without_copies

# Fewer sentences are more useful as training data, so candidates are compared by cross-validation of the gold.
MIN_TO_SPLIT = 2000
# With fewer sentences, no test set is split off.
MIN_FOR_TEST = 400
SHARE = 0.2
LARGEST = 500
_INSTEAD = {
    "dev": "candidates are compared by cross-validation of the gold",
    "test": "the only scores are those of the selection",
}


class Split(NamedTuple):
    """The parts of the gold, with notes. Dev and test are empty if they are not wanted or cannot be split off."""

    gold: List[Doc]
    dev: List[Doc]
    test: List[Doc]
    notes: List[str]


def split_gold(docs: Sequence[Doc], *, dev: bool, test: bool, seed: int = 0) -> Split:
    """Split gold. Sentences of one document go to the same part or, if ids name no documents, copies of one sentence.
    Copies in other documents are left out of dev and test, unless they are short. The split depends on ids, texts and
    the seed, not on the order."""
    documents = count_documents(docs)
    least = {name: n for name, n, wanted in (("test", MIN_FOR_TEST, test), ("dev", MIN_TO_SPLIT, dev)) if wanted}
    size = min(LARGEST, round(SHARE * len(docs)))
    parts = _fill(docs, {name: size if len(docs) >= n else 0 for name, n in least.items()}, seed)
    notes = []
    # Test first: copies of dev sentences are left out of it, even if dev is returned to the gold.
    for name, n in least.items():
        part = parts.pop(name, [])
        kept = without_copies(part, [doc for other in parts.values() for doc in other])
        reason = ""
        if len(docs) < n:
            reason = f"{len(docs)} gold sentences are too few to split it off (at least {n} are needed)"
        elif not part:
            reason = f"all or nearly all of the gold is a single {'document' if documents else 'sentence'}"
        elif not any(doc.ents for doc in kept):
            reason = f"{len(part)} sentences were split off, but had no entities and were returned to the gold"
        elif not any(doc.ents for doc in parts["gold"]):
            reason = f"{len(part)} sentences were split off, but had all entities and were returned to the gold"
        if reason:
            parts["gold"] += part
            notes.append(f"{name} was not given, and {reason}: {_INSTEAD[name]}")
            continue
        parts[name] = kept
        by = f"by document ({documents} documents)" if documents else "sentence by sentence"
        notes.append(f"{name} was not given: {len(kept)} sentences were split off the gold, {by}, seed {seed}")
        if len(kept) < len(part):
            notes[-1] += f"; {len(part) - len(kept)} more were left out as copies of sentences in other parts"
    place = {id(doc): i for i, doc in enumerate(docs)}
    gold, dev_docs, test_docs = (
        sorted(parts.get(name, []), key=lambda doc: place[id(doc)]) for name in ("gold", "dev", "test")
    )
    return Split(gold, dev_docs, test_docs, notes[::-1])


def _fill(docs: Sequence[Doc], wanted: Dict[str, int], seed: int) -> Dict[str, List[Doc]]:
    """Assign groups to dev until it is large enough, then to test, then to the gold."""
    parts: Dict[str, List[Doc]] = {"gold": [], "dev": [], "test": []}
    for group in group_docs(docs, str(seed)):
        left = {name: wanted.get(name, 0) - len(parts[name]) for name in ("dev", "test")}
        # A document of more than twice the number of sentences still wanted stays with the gold.
        part = next((name for name, n in left.items() if n > 0 and len(group) <= 2 * n), "gold")
        parts[part].extend(group)
    return parts
