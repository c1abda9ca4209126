"""brat: a text file, and a file of annotations beside it: `T1<tab>PER 0 4<tab>Anna`."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from ...encodings import NULS, SAMPLE, wrong_encoding
from ...files import LONGEST_LINE, existing, open_packed, read_lines, too_long
from ..counts import RowCounts, RowError, at_line
from ..records import Item, Mark, Record, make_mark

SUFFIX, TEXT_SUFFIX = ".ann", ".txt"
DISCONTINUOUS = "discontinuous entities; the tokens from their start to their end count as missing"
OTHERS = "annotations other than entities (relations, events, attributes, notes), ignored"
# `N1<tab>Reference T1 MESH:D003000<tab>corticosteroids`
_REFERENCE = re.compile(r"Reference (\S+) (\S+)")
# Python refuses to parse integers with thousands of digits.
_ENTITY = re.compile(r"(\S[^\t]*?) (\d{1,18} \d{1,18}(?:;\d{1,18} \d{1,18})*)")


def items(path: Path) -> Iterator[Item]:
    """Yield the one document of an annotation file."""
    text_path = existing(path.with_suffix(TEXT_SUFFIX), "brat's texts and annotations must be in the same folder")
    yield "document 1", (path.with_suffix(SUFFIX), _read_text(text_path))


def read(document: Tuple[Path, str], counts: RowCounts) -> Record:
    path, text = document
    record = Record(text=text, id=path.stem)
    entities: List[Tuple[str, Mark]] = []  # files that were joined have a name twice
    ids: Dict[str, List[str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        name = line.partition("\t")[0]
        with at_line(path, number, counts):
            if name.startswith("T"):
                mark = _entity(record, line, counts)
                entities += [] if mark is None else [(name, mark)]
            elif name.startswith("N"):
                name, identifier = _reference(line)
                ids.setdefault(name, []).append(identifier)
            elif line.strip():
                counts.notes[OTHERS] += 1
    record.ents = [mark._replace(id="|".join(ids.get(name, ()))) for name, mark in entities]
    unknown = ids.keys() - {name for name, _ in entities}
    counts.note(OTHERS, sum(len(ids[name]) for name in unknown))
    return record


def _reference(line: str) -> Tuple[str, str]:
    """Return the name of an annotation, and its concept id with the terminology, from a line of references."""
    columns = line.split("\t")
    match = _REFERENCE.fullmatch(columns[1]) if len(columns) > 1 else None
    if match is None:
        raise RowError(f"expected 'N1<tab>Reference T1 TERMINOLOGY:ID<tab>TEXT', got '{line[:80]}'")
    return match[1], match[2]


def _entity(record: Record, line: str, counts: RowCounts) -> Optional[Mark]:
    """Return the entity of a line, or None if it is discontinuous."""
    columns = line.split("\t", 2)
    match = _ENTITY.fullmatch(columns[1]) if len(columns) > 1 else None
    if match is None:
        raise RowError(f"expected 'T1<tab>LABEL START END<tab>TEXT', got '{line[:80]}'")
    label, offsets = match.groups()
    text = columns[2] if len(columns) > 2 else None
    pairs = [tuple(map(int, part.split())) for part in offsets.split(";")]
    parts = [make_mark(start, end, label, line, text=text) for start, end in pairs]
    start, end = min(part.start for part in parts), max(part.end for part in parts)
    if _is_whole(parts, record.text or ""):
        return parts[0]._replace(start=start, end=end)
    counts.notes[DISCONTINUOUS] += 1
    record.missing.append((start, end))
    return None


def _is_whole(parts: List[Mark], text: str) -> bool:
    """Return True if only white space lies between the parts: an entity across two lines is written as two parts."""
    return all(not text[a.end : b.start].strip() and a.end <= b.start for a, b in pairwise(parts))


def _read_text(path: Path) -> str:
    # Line ends are not converted, since offsets count them.
    with open_packed(path) as file_:
        data = file_.read(LONGEST_LINE)
    if len(data) == LONGEST_LINE:
        raise too_long(path, "the text")
    try:
        text: str = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise wrong_encoding(path, data[:SAMPLE], line, error.start, error.reason) from error
    if "\0" in text:
        raise wrong_encoding(path, data[:SAMPLE], 1, data.index(0), NULS)
    # A byte order mark counts in offsets, but is no part of a word.
    return " " + text[1:] if text.startswith("\ufeff") else text
