"""Grouping of sentences by document, as far as their identifiers show it."""

import re
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

from spacy.tokens import Doc

from .sentences import sentence_key
from .weak import get_id

# Sentences of the longest document. A name with more of them is a data set: "train.0", "train.1" and so on.
LONGEST = 500
_SENTENCE = re.compile(r"(.+)\.(\d{1,9})")


def document_of(identifier: Optional[str]) -> Optional[str]:
    """Return the identifier of a sentence's document: the sentences of a text "a7" are named a7.1, a7.2 and so on.
    Return None if the identifier of the sentence has another form."""
    place = _place(identifier)
    return None if place is None else place[0]


def count_documents(docs: Iterable[Doc]) -> int:
    """Return the number of documents; 0 if the identifiers do not show it."""
    named = [name for name in (document_of(get_id(doc)) for doc in docs) if name is not None]
    known = len(set(named))
    # Identifiers group better than texts only if some document has several sentences.
    return known if known < len(named) else 0


def group_keys(docs: Sequence[Doc], least: int = 1) -> List[str]:
    """Return a key for each sentence. Sentences with the same key must not be separated: those of one document if
    identifiers name at least `least` documents, else those with the same text."""
    by_document = count_documents(docs) >= max(1, least)
    names = [document_of(get_id(doc)) if by_document else None for doc in docs]
    return [
        f"text {sentence_key(doc.text)}" if name is None else f"document {name}"
        for doc, name in zip(docs, names, strict=True)
    ]


def group_documents(docs: Iterable[Doc]) -> Iterator[List[Doc]]:
    """Group consecutive sentences whose identifiers share a name and have increasing numbers. Sentences without such an
    identifier stay alone, as do those of a name with numbers over `LONGEST`."""
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
