"""Findings of a check, collected without stopping at the first problem."""

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ..corpus.counts import RowCounts, show_value
from ..errors import Errors, WeaknerError

LEVELS = ("error", "warning", "info")
FIRST = 10  # examples shown in a message


class Finding(NamedTuple):
    """One finding: an "error" must be corrected before training, a "warning" makes the result worse, and the rest is
    "info". `where` is the file or setting as given: "--gold gold.jsonl"."""

    level: str
    where: str
    message: str
    cure: str = ""


class Findings:
    """A collection of distinct findings."""

    def __init__(self) -> None:
        self._found: Dict[Finding, None] = {}

    def error(self, where: str, message: str, cure: str = "") -> None:
        self._add(Finding("error", where, message, cure))

    def warning(self, where: str, message: str, cure: str = "") -> None:
        self._add(Finding("warning", where, message, cure))

    def info(self, where: str, message: str, cure: str = "") -> None:
        self._add(Finding("info", where, message, cure))

    @contextmanager
    def guard(self, where: str) -> Iterator[None]:
        """Turn a reading error into a finding, so that the other checks still run."""
        try:
            yield
        except (WeaknerError, OSError) as error:
            self.error(where, str(error))

    @property
    def errors(self) -> int:
        return sum(finding.level == "error" for finding in self._found)

    def sorted(self) -> List[Finding]:
        """Return all findings, errors first."""
        return sorted(self._found, key=lambda finding: LEVELS.index(finding.level))

    def _add(self, finding: Finding) -> None:
        self._found.setdefault(finding)


@dataclass
class RowProblems(RowCounts):
    """Counts of a reader that continues after unreadable rows: the places of these rows by problem, the first message
    of each problem, and the first spans that do not end at token boundaries."""

    places: Dict[Tuple[str, Path], List[str]] = field(default_factory=dict)
    reasons: Dict[str, str] = field(default_factory=dict)
    misaligned_spans: List[str] = field(default_factory=list)

    def refuse(self, path: Path, place: str, reason: str, error: Exception) -> None:
        problem = re.sub(r"'[^']*'|\[.*\]|\{.*\}|\d+", "", reason.partition(", got ")[0])[:80]
        self.reasons.setdefault(problem, reason)
        self.places.setdefault((problem, path), []).append(place)

    def note_misaligned(self, text: str, label: str, tokens: List[str]) -> None:
        if len(self.misaligned_spans) < FIRST:
            self.misaligned_spans.append(f"{self.place}: '{text}' ({label}) in the tokens {show_value(tokens)}")

    def report(self, where: str, findings: Findings) -> None:
        """Add an error for each problem."""
        for (problem, path), places in self.places.items():
            message = Errors.WK103.format(path=path, place=places[0], reason=self.reasons[problem].removesuffix("."))
            if len(places) > 1:
                numbers = [place.removeprefix("line ") for place in places]
                lines = f"lines {listed(numbers)}" if all(map(str.isdigit, numbers)) else listed(places)
                message += f". The same problem occurs in {plural(len(places), 'row')}: {lines}"
            findings.error(where, f"{message}.")


def listed(items: Sequence[str], first: int = FIRST) -> str:
    """Return the first of some items: "a, b and 3 more"."""
    more = len(items) - first
    return ", ".join(items[:first]) + (f" and {more:,} more" if more > 0 else "")


def plural(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1,234 sentences"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def percent(part: int, whole: int) -> str:
    """Return a percentage that is never rounded to 0 % or 100 %: "12 %"."""
    share = 100 * part / whole if whole else 0.0
    if 0 < share < 1:
        return "less than 1 %"
    return f"{min(share, 99) if part < whole else share:.0f} %"
