"""What a check has found, collected without stopping at the first problem."""

from contextlib import contextmanager
from typing import Iterator, List, NamedTuple, Sequence

from ..errors import WeaknerError

LEVELS = ("error", "warning", "info")
FIRST = 10  # examples that a message shows


class Finding(NamedTuple):
    """One thing that was found.

    level (str): "error": nothing should be trained before it is corrected; "warning": the result will suffer; "info".
    where (str): The file or setting, as it was given: "--gold gold.jsonl".
    message (str): What is wrong.
    cure (str): What to do about it; empty where the message says it.
    """

    level: str
    where: str
    message: str
    cure: str = ""


class Findings:
    """Collects findings."""

    def __init__(self) -> None:
        self._found: List[Finding] = []

    def error(self, where: str, message: str, cure: str = "") -> None:
        """Add an error."""
        self._add(Finding("error", where, message, cure))

    def warning(self, where: str, message: str, cure: str = "") -> None:
        """Add a warning."""
        self._add(Finding("warning", where, message, cure))

    def info(self, where: str, message: str, cure: str = "") -> None:
        """Add something to know."""
        self._add(Finding("info", where, message, cure))

    @contextmanager
    def guard(self, where: str) -> Iterator[None]:
        """Turn an error of reading into a finding, so that the other checks still run.

        where (str): The file or setting that is looked at.
        """
        try:
            yield
        except (WeaknerError, OSError) as error:
            self.error(where, str(error))

    @property
    def errors(self) -> int:
        """The number of errors so far."""
        return sum(finding.level == "error" for finding in self._found)

    def sorted(self) -> List[Finding]:
        """RETURNS (List[Finding]): All of them, errors first."""
        return sorted(self._found, key=lambda finding: LEVELS.index(finding.level))

    def _add(self, finding: Finding) -> None:
        if finding not in self._found:
            self._found.append(finding)


def listed(items: Sequence[str], first: int = FIRST) -> str:
    """The first of some items on one line.

    items (Sequence[str]): The items.
    first (int): How many to show.
    RETURNS (str): For example "a, b and 3 more".
    """
    more = len(items) - first
    return ", ".join(items[:first]) + (f" and {more:,} more" if more > 0 else "")


def plural(n: int, one: str, many: str = "") -> str:
    """A number with its noun.

    n (int): The number.
    one (str): The noun for one.
    many (str): For several; empty: with an "s".
    RETURNS (str): For example "1,234 sentences".
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def percent(part: int, whole: int) -> str:
    """A share, never rounded to all or nothing.

    part (int): Some of them.
    whole (int): All of them.
    RETURNS (str): For example "12 %".
    """
    share = 100 * part / whole if whole else 0.0
    if 0 < share < 1:
        return "less than 1 %"
    return f"{min(share, 99) if part < whole else share:.0f} %"
