"""Span groups of `.spacy` files that are not ours: `spancat` learns from such, and so do heads with a `spans_key`."""

from typing import Iterable, Iterator, Optional

from spacy.tokens import Doc

from ..entities import set_entities, trim_whitespace
from ..overlaps import drop_overlaps
from ..rows import RowCounts
from ..weak import group_entities, is_known_group, remove_group, set_weak

ABSENT = "documents without the span group that is read as gold, so that nothing is known about them"


def read_groups(docs: Iterable[Doc], key: Optional[str], counts: RowCounts) -> Iterator[Doc]:
    """Read a span group as the gold, in the place of the entities, and count the others.

    docs (Iterable[Doc]): The Docs; they are changed.
    key (Optional[str]): Name of the group; None: the entities stay.
    counts (RowCounts): Where to count.
    YIELDS (Doc): The Docs.
    """
    for doc in docs:
        if key is not None:
            _read_gold(doc, key, counts)
        for name, group in doc.spans.items():
            if group and not is_known_group(name):
                counts.groups[name] += len(group)
        yield doc


def _read_gold(doc: Doc, key: str, counts: RowCounts) -> None:
    counts.note(ABSENT, key not in doc.spans)
    known = [key in doc.spans] * len(doc)
    entities, doubtful = drop_overlaps(trim_whitespace(doc, group_entities(doc, key)), counts)
    for start, end in doubtful:
        known[start:end] = [False] * (end - start)
    set_entities(doc, entities, known)
    set_weak(doc, False)
    remove_group(doc, key)
