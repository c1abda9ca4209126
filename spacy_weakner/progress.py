"""Progress of long operations: a bar in terminals and notebooks, lines in logs. Both are tqdm's."""

import sys
from threading import RLock
from types import TracebackType
from typing import Any, Callable, Generic, Iterable, Iterator, Optional, Sized, Type, TypeVar

from tqdm.std import tqdm

from .errors import one_line

T = TypeVar("T")
# Operations that take less time show no bar, or no line.
_BAR_SECONDS, _LINE_SECONDS = 1.0, 5.0


class Progress(Generic[T]):
    """A display of progress. Iterate over it in place of the items, or call `update`.

    In a terminal or a notebook, it is a bar. In a log, it is a line on stderr after each further 10 %, once 5 seconds
    have passed; if the total is unknown, one line every half minute.

    items (Optional[Iterable[T]]): Items to iterate over.
    total (Optional[float]): Total amount; None: the number of items, if they have one.
    desc (str): Name of the operation.
    unit (str): Unit of the counts, in the singular.
    enabled (bool): Show anything at all.
    initial (float): Amount that was done before.
    """

    def __init__(
        self,
        items: Optional[Iterable[T]] = None,
        *,
        total: Optional[float] = None,
        desc: str = "",
        unit: str = "it",
        enabled: bool = True,
        initial: float = 0,
    ) -> None:
        if total is None and isinstance(items, Sized):
            total = len(items)
        self.items = items
        self.done = initial
        self._bar: Any = None
        if enabled and sys.stderr is not None:
            self._bar = _bar(total, file=sys.stderr, desc=one_line(desc), unit=unit, initial=initial)

    def __iter__(self) -> Iterator[T]:
        try:
            for item in self.items or ():
                yield item
                self.update()
        finally:
            self.close()

    def update(self, n: float = 1) -> None:
        """Count `n` more as done."""
        self.done += n
        if self._bar is not None:
            self._bar.update(round(self.done, 1) - self._bar.n)

    def note(self, **values: Any) -> None:
        """Show values beside a bar."""
        if self._bar is not None:
            self._bar.set_postfix(values, refresh=False)

    def close(self) -> None:
        """Remove a bar; in a log, print the final state."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> "Progress[T]":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def note(text: str, enabled: bool = True) -> None:
    """Print a line on stderr."""
    if enabled and sys.stderr is not None:
        tqdm.write(one_line(text, sys.maxsize), file=sys.stderr)


def _bar(total: Optional[float], **how: Any) -> Any:
    if _is_interactive():
        from tqdm.auto import tqdm as bar

        return bar(total=total, leave=False, delay=_BAR_SECONDS, **how)
    # With a known total, one line per tenth; else one line every half minute.
    when = {"mininterval": 0.0, "miniters": total / 10 - 1e-6} if total else {"mininterval": 30.0}
    return _Lines(total=total, delay=_LINE_SECONDS, **when, **how)


class _Lines(tqdm):
    """A tqdm that prints lines instead of a bar."""

    monitor_interval = 0  # no thread has to wake up to print
    disable: bool

    def __str__(self) -> str:
        seconds = self.format_dict["elapsed"]
        done, elapsed = f"{int(self.n + 1e-9):,}", self.format_interval(seconds)
        if not self.total:
            return f"{self.desc}: {done} {self.unit}s, {elapsed}"
        share = f"{100 * self.n / self.total:.0f} % ({done} of {self.total:,.0f} {self.unit}s)"
        left = self.format_interval(seconds * (self.total - self.n) / max(self.n - self.initial, 1e-9))
        return f"{self.desc}: {share}, {elapsed}" + (f", {left} to go" if self.n < self.total else "")

    @staticmethod
    def status_printer(file: Any) -> Callable[[str], None]:
        return lambda text: print(text, file=file, flush=True)

    def moveto(self, n: int) -> None:
        """Do nothing: lines are printed below each other."""

    def close(self) -> None:
        if not self.disable:
            if self.start_t < self.last_print_t and self.last_print_n != self.n:
                self.refresh()
            self.disable = True
            self._decr_instances(self)


_Lines.set_lock(RLock())  # tqdm's own lock would set how this program starts processes


def _is_interactive() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return sys.stderr.isatty() or (shell is not None and "IPKernelApp" in shell.config)
