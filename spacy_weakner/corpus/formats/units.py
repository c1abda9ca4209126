"""Finding out what the offsets of a file count, where its spans say which text they cover."""

import shlex
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Tuple

from ...errors import Errors, WeaknerError
from ..rows import RowCounts, show
from .offsets import CODE_POINTS, UNITS, Places
from .records import Record, fits
from .tool import Tool

UNCHECKED = "texts with emoji or the like, where nothing tells what the offsets count (convert --offsets says)"


def find_unit(path: Path, records: Callable[[], Iterable[Tuple[Any, Record]]], tool: Tool, counts: RowCounts) -> str:
    """Find the unit in which all spans of a file cover what they say they do.

    path (Path): The file.
    records (Callable): Streams the records with their places, each time from the beginning.
    tool (Tool): What it counts is tried first, and stays where nothing tells.
    counts (RowCounts): Takes the unit, where it makes a difference.
    RETURNS (str): One of `UNITS`.
    RAISES (WeaknerError): If there is none.
    """
    usual, matters, unchecked, misfit = tool.unit, False, 0, False
    for _, record in records():
        if not fits(record, usual):
            misfit = True
            break
        if _depends(record):
            matters = usual != CODE_POINTS
            unchecked += not tool.sure and any(mark.text is None for mark in record.marks())
    unit = usual
    if misfit:
        matters, unchecked, unit = True, 0, _choose(path, records, usual)
    if matters:
        counts.offsets[unit] += 1
    if unchecked:
        counts.notes[UNCHECKED] += unchecked
    return unit


def _choose(path: Path, records: Callable[[], Iterable[Tuple[Any, Record]]], usual: str) -> str:
    units = [usual, *(unit for unit in UNITS if unit != usual)]
    bad: Dict[str, int] = dict.fromkeys(units, 0)
    first, n = None, 0
    for place, record in records():
        n += 1
        misfits = [unit for unit in units if not fits(record, unit)]
        for unit in misfits:
            bad[unit] += 1
        if usual in misfits and first is None:
            first = (place, record)
    for unit in units:
        if not bad[unit]:
            return unit
    assert first is not None
    place, record = first
    shares = ", ".join(f"{unit} {bad[unit]}" for unit in units)
    text = record.text or ""
    mark = next(mark for mark in record.marks() if not fits(Record(text, ents=[mark]), usual))
    raise WeaknerError(
        Errors.WK742.format(
            path=path,
            place=f"{place.unit} {place.number}",
            span=show([mark.start, mark.end, mark.label]),
            said="a part of the text" if mark.text is None else show(mark.text),
            found=show(text[mark.start : mark.end]),
            n=n,
            misfits=shares,
            file=shlex.quote(str(path)),
            unit=min(units, key=bad.__getitem__),
        )
    )


def _depends(record: Record) -> bool:
    """Whether the units differ at some span."""
    text = record.text
    if text is None or text.isascii():
        return False
    places = [Places(text, unit) for unit in UNITS]
    borders = {offset for mark in record.marks() for offset in mark[:2]}
    return any(len({place.code_point(offset) for place in places}) > 1 for offset in borders)
