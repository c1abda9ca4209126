"""Counts of corpus readers, and how readers handle a row that they cannot read."""

import json
import shlex
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import AbstractSet, Any, Dict, Iterator, List, Optional, Union

from ..errors import Errors, WeaknerError, shorten
from .foreign import with_names

# A place in a file: a line number, or text such as "item 3".
Place = Union[int, str]


class RowError(WeaknerError):
    """An error in a row. `at_line` adds the place."""


@dataclass
class RowCounts:
    """Counts of a reader. Subclasses may collect the errors of rows by overriding `refuse` and `note_misaligned`.

    annotated (int): Rows with spans.
    empty (int): Lines without text.
    misaligned, moved (int): Spans that do not end at token boundaries and were dropped, or moved to such boundaries.
    ignored, lists (Counter[str]): Rows per unknown key; rows in which the key holds a list or object.
    notes (Counter[str]): Other events in rows and spans, by description.
    groups (Counter[str]): Spans per span group that is not read.
    offsets (Counter[str]): Files per unit of their offsets, if the unit makes a difference.
    """

    annotated: int = 0
    empty: int = 0
    misaligned: int = 0
    moved: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    lists: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    offsets: Counter[str] = field(default_factory=Counter)

    # No fields, since reports are stored and added up: the place of the last Doc, how much of the file was read (empty:
    # all of it), and the approximate number of Docs in it.
    place = ""
    sampled = ""
    total = 0

    def refuse(self, path: Path, place: str, reason: str, error: Exception) -> None:
        """Handle a row that cannot be read: raise an error, or record it and return, so that reading continues."""
        raise WeaknerError(Errors.WK103.format(path=path, place=place, reason=reason)) from error

    def note_misaligned(self, text: str, label: str, tokens: List[str]) -> None:
        """Handle a span of the current row that does not end at the borders of the tokens that it touches."""

    def note(self, what: str, n: int = 1) -> None:
        if n:
            self.notes[what] += n

    def note_unknown(self, row: Dict[str, Any], known: AbstractSet[Any]) -> List[str]:
        """Count the unknown keys that may hold annotations (lists and objects), and return them."""
        unknown = [key for key, value in row.items() if value and isinstance(value, (list, dict)) and key not in known]
        self.ignored.update(unknown)
        self.lists.update(unknown)
        return unknown

    @property
    def remarks(self) -> List[str]:
        """Return messages to users about what was read."""
        found = [f"offsets count {unit} (files: {n})" for unit, n in self.offsets.items()]
        found += [f"{what}: {n}" for what, n in self.notes.items()]
        found += [
            f"spans of the group '{name}', not read as gold (to read them: --spans-key {shlex.quote(name)}): {n}"
            for name, n in self.groups.items()
        ]
        if self.ignored:
            keys = ", ".join(f"{key} ({n} rows)" for key, n in self.ignored.items())
            found.append(f"unknown keys ignored: {keys}")
        return found

    @property
    def suspicion(self) -> List[str]:
        """Return a message on unknown keys, for files that should have annotations but seem to have none."""
        message = (
            f"no row has annotations, but these unknown keys contain lists or objects: {', '.join(self.suspects)}. If "
            "they are annotations, rename them to 'ents' ([start, end, label])"
        )
        return [message] if self.suspects else []

    @property
    def suspects(self) -> List[str]:
        """Return the unknown keys that may hold annotations, if no row has known annotations."""
        return [] if self.annotated else sorted(self.lists)


_RAISING = RowCounts()


@contextmanager
def at_line(path: Path, place: Place, counts: Optional[RowCounts] = None) -> Iterator[None]:
    """Add file and place to a `RowError`, and let `counts` raise or collect it."""
    counts = _RAISING if counts is None else counts
    counts.place = f"line {place}" if isinstance(place, int) else place
    try:
        yield
    except RowError as error:
        counts.refuse(path, counts.place, with_names(str(error), path), error)
    except UnicodeEncodeError as error:
        counts.refuse(path, counts.place, f"half of a surrogate pair in a string ({error.reason})", error)


def show_value(value: Any) -> str:
    """Return a value as JSON (or else as its repr), shortened for messages."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return shorten(text, 80)
