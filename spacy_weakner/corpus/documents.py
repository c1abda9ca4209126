"""Which sentences belong to one document, where only their identifiers tell."""

import re
from typing import Iterable, Iterator, List, Optional, Tuple

from spacy.tokens import Doc

from .weak import get_id

# Sentences of the longest document. More of them under one name are a data set: "train.0", "train.1" and so on.
LONGEST = 500
_SENTENCE = re.compile(r"(.+)\.(\d{1,9})")


def document_of(identifier: Optional[str]) -> Optional[str]:
    """Identifier of the document that a sentence belongs to: the sentences of a text "a7" are called a7.1, a7.2 and so
    on. None if the sentence's identifier does not tell."""
    place = _place(identifier)
    return None if place is None else place[0]


def group_documents(docs: Iterable[Doc]) -> Iterator[List[Doc]]:
    """Bring the sentences of documents together: those that follow each other, with one name and numbers that count up.
    Those of which nothing is known stand alone, and those of a name with numbers over `LONGEST`."""
    group: List[Doc] = []
    last: Optional[Tuple[str, int]] = None
    for doc in docs:
        place = _place(get_id(doc))
        if place is None or last is None or place[0] != last[0] or place[1] <= last[1]:
            yield from [group] if group else []
            group = []
        group.append(doc)
        if place is not None and place[1] > LONGEST:
            yield from ([single] for single in group)
            group = []
        last = place
    yield from [group] if group else []


def _place(identifier: Optional[str]) -> Optional[Tuple[str, int]]:
    found = _SENTENCE.fullmatch(identifier or "")
    return None if found is None else (found[1], int(found[2]))
