"""Units of offsets into a text. Python counts code points; browsers and Java count UTF-16 units, in which an emoji
counts as two; C and Rust count bytes of UTF-8. The records of tools are converted to code points, and their overlaps
are removed."""

import shlex
from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from ...errors import Errors, WeaknerError
from ..counts import Place, RowCounts, show_value
from ..overlaps import drop_overlaps
from ..records import BLANK, Mark, Range, Record, ids_of
from .names import BYTES, CODE_POINTS, UTF16

UNITS = (CODE_POINTS, UTF16, BYTES)
AUTO = "auto"
UNCHECKED = "texts with emoji or the like, where the unit of the offsets is unknown (set it with convert --offsets)"
BEYOND = "spans beyond their text, or within a character; their tokens count as missing"
OTHER_TEXT = "spans that cover another text than the one in their row; their tokens count as missing"
_FIRST_OF_TWO = 0x10000  # code points from here on are two UTF-16 units


class Offsets:
    """Conversion of offsets into a text between one of `UNITS` and code points."""

    def __init__(self, text: str, unit: str) -> None:
        # Offsets of each code point, and of the end of the text.
        self._starts: Sequence[int] = range(len(text) + 1)
        if unit == UTF16 and not text.isascii():
            self._starts = [0, *accumulate(1 + (ord(character) >= _FIRST_OF_TWO) for character in text)]
        elif unit == BYTES and not text.isascii():
            self._starts = [0, *accumulate(len(character.encode("utf-8", "surrogatepass")) for character in text)]

    def code_point(self, offset: int) -> Optional[int]:
        """Return an offset in code points; None if it is not in the text, or within a character."""
        start, end = self.around(offset, offset)
        return start if start == end and self._starts[start] == offset else None

    def around(self, start: int, end: int) -> Range:
        """Return a span in code points, clipped to the text, with the characters that it cuts."""
        last = len(self._starts) - 1
        return max(bisect_right(self._starts, start) - 1, 0), min(bisect_left(self._starts, end), last)

    def offset(self, code_point: int) -> int:
        return self._starts[code_point]

    def fits(self, mark: Mark, text: str) -> bool:
        """Return True if a span lies within the text and covers the expected text."""
        start, end = self.code_point(mark.start), self.code_point(mark.end)
        return None not in (start, end) and _covers(text[start:end], mark)


def _covers(covered: str, mark: Mark) -> bool:
    return mark.text is None or _plain(covered) == _plain(mark.text)


def _plain(text: str) -> str:
    # Label Studio writes a line end within a span as these two characters.
    return " ".join(text.replace("\\n", " ").split())


def find_unit(path: Path, records: Iterable[Tuple[Place, Record]], usual: str, sure: bool, counts: RowCounts) -> str:
    """Find the unit in which all spans of a file cover their expected text: the usual one, if it fits. `sure` is False
    for tools that do not always use the usual unit. Bytes are found only by expected texts: they fit in any text."""
    units = sorted(UNITS, key=lambda unit: unit != usual)
    bad: Dict[str, int] = dict.fromkeys(units, 0)
    first: Dict[str, Tuple[Place, Mark, str]] = {}
    n = unchecked = 0
    differ = untold = False
    for place, record in records:
        n += 1
        text = record.text or ""
        places = {unit: Offsets(text, unit) for unit in units}
        for unit in units:
            misfit = next((mark for mark in record.marks() if not places[unit].fits(mark, text)), None)
            if record.text is not None and misfit is not None:
                bad[unit] += 1
                start, end = places[unit].around(*misfit[:2])
                first.setdefault(unit, (place, misfit, text[start:end]))
        borders = {offset for mark in record.marks() for offset in mark[:2]}
        untold = untold or any(mark.text is None for mark in record.marks())
        usable = places[CODE_POINTS], places[UTF16]
        if not text.isascii() and any(len({p.code_point(offset) for p in usable}) > 1 for offset in borders):
            differ = True
            unchecked += not sure and any(mark.text is None for mark in record.marks())
    unit = min(units, key=bad.__getitem__)  # the first one, if equal
    if bad[unit] or (unit == BYTES and untold):
        place, mark, found = first.get(unit, first[usual])
        raise WeaknerError(
            Errors.WK742.format(
                path=path,
                place=place if isinstance(place, str) else f"line {place}",
                span=show_value([mark.start, mark.end, mark.label]),
                expected="a part of the text" if mark.text is None else show_value(mark.text),
                found=show_value(found),
                n=n,
                misfits=", ".join(f"{unit} {bad[unit]}" for unit in sorted(units, key=bad.__getitem__)),
                file=shlex.quote(str(path)),
                unit=unit,
            )
        )
    counts.offsets.update([unit] if unit != usual or (differ and unit != CODE_POINTS) else [])
    counts.note(UNCHECKED, unchecked if unit == usual else 0)
    return unit


def in_code_points(record: Record, unit: str, counts: RowCounts) -> Record:
    """Return a record with offsets in code points and entities without overlaps. Where the offsets are invalid or the
    entities overlap, the tokens are missing."""
    ents, wrong, groups, missing = record.ents, record.wrong, record.weak, list(record.missing)
    suggested = record.suggested
    text = record.text
    if text is not None:
        offsets = Offsets(text, unit)
        missing = [place for place in (offsets.around(*borders) for borders in missing) if place[0] < place[1]]
        if ents is not None:
            ents, doubtful = _fitting(ents, text, offsets, counts)
            missing += doubtful
        wrong, _ = _fitting(wrong, text, offsets, counts)
        suggested, _ = _fitting(suggested, text, offsets, counts)
        groups = {name: _fitting(marks, text, offsets, counts)[0] for name, marks in groups.items()}
    if ents is not None:
        ids = ids_of(ents)
        kept, overlapping = drop_overlaps([mark[:3] for mark in ents], counts)
        ents = [Mark(*entity, id="|".join(ids.get(entity, ()))) for entity in kept]
        missing += overlapping
    counts.annotated += ents is not None or bool(groups or wrong or suggested)
    return _with_tokens(replace(record, ents=ents, missing=missing, wrong=wrong, weak=groups, suggested=suggested))


def _fitting(marks: Iterable[Mark], text: str, offsets: Offsets, counts: RowCounts) -> Tuple[List[Mark], List[Range]]:
    """Return the spans that cover the expected text, trimmed of white space, and the ranges of the others."""
    fitting: List[Mark] = []
    doubtful: List[Range] = []
    for mark in marks:
        start, end = offsets.around(mark.start, mark.end)
        covered = text[start:end]
        if None in (offsets.code_point(mark.start), offsets.code_point(mark.end)):
            counts.note(BEYOND)
            doubtful += [(start, end)] if start < end else []
        elif not covered.strip():
            counts.note(BLANK)
        elif not _covers(covered, mark):
            counts.note(OTHER_TEXT)
            doubtful.append((start, end))
        else:
            start += len(covered) - len(covered.lstrip())
            fitting.append(mark._replace(start=start, end=start + len(covered.strip())))
    return fitting, doubtful


def _with_tokens(record: Record) -> Record:
    """Return the record with the tool's tokens if they are visible and spell the text with at most one blank between
    them, and all spans end at their borders; else the record unchanged."""
    text, borders = record.text or "", record.borders
    if not borders or borders[0][0] != 0:
        return record
    gaps = [text[end:start] if end <= start else None for (_, end), (start, _) in pairwise([*borders, (len(text), 0)])]
    words = [text[start:end] for start, end in borders]
    if not all(map(str.strip, words)) or any(gap not in ("", " ") for gap in gaps):
        return record
    starts = {start: i for i, (start, _) in enumerate(borders)}
    ends = {end: i for i, (_, end) in enumerate(borders, start=1)}

    def moved(marks: Iterable[Mark]) -> List[Mark]:
        return [mark._replace(start=starts[mark.start], end=ends[mark.end]) for mark in marks]

    try:
        return replace(
            record,
            text=None,
            tokens=words,
            spaces=[gap == " " for gap in gaps],
            ents=None if record.ents is None else moved(record.ents),
            missing=[(starts[start], ends[end]) for start, end in record.missing],
            wrong=moved(record.wrong),
            suggested=moved(record.suggested),
            weak={name: moved(marks) for name, marks in record.weak.items()},
        )
    except KeyError:
        return record
