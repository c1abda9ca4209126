"""How far a long piece of work has come: a bar in terminals and notebooks, lines in logs."""

import sys
import time
from types import TracebackType
from typing import Any, Generic, Iterable, Iterator, Optional, Sized, Type, TypeVar

T = TypeVar("T")
# What is done sooner shows nothing.
_QUIET_SECONDS = 5.0
_SHARE = 0.1
_DELAY_SECONDS = 1.0


class Progress(Generic[T]):
    """Shows how much of something is done. Go through it as through the items, or say by `update` what is done.

    In a terminal or a notebook it is a bar of tqdm. In a log it is a line on stderr at every 10 %, from 5 seconds on;
    if nobody knows how much there is to do, a line each time the time has doubled.

    items (Optional[Iterable[T]]): What to go through.
    total (Optional[float]): How much there is to do; None: the number of items, if they have one.
    desc (str): What is done.
    unit (str): One of what is counted.
    enabled (bool): Show anything at all.
    initial (float): What was done before.
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
        self.total = total
        self.name = desc
        self.unit = unit
        self.done = self._initial = initial
        self._started = time.monotonic()
        self._next = self._next_line()
        self._printed = False
        self._bar = _bar(total, desc, unit, initial) if enabled and _is_interactive() else None
        self._lines = enabled and self._bar is None

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
        elif self._lines and self._is_due():
            self._print()

    def note(self, **values: Any) -> None:
        """Show values beside a bar."""
        if self._bar is not None:
            self._bar.set_postfix(values)

    def close(self) -> None:
        """Remove a bar; the end of what was shown in lines is shown, too."""
        if self._bar is not None:
            self._bar.close()
        elif self._printed and self._shown != self.done:
            self._print()
        self._lines = False

    def __enter__(self) -> "Progress[T]":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _is_due(self) -> bool:
        if self.total:
            return self.done >= self._next and self._elapsed >= _QUIET_SECONDS
        return self._elapsed >= self._next

    def _next_line(self) -> float:
        # What has to be done, or how much time has to pass, before a line is due.
        if not self.total:
            return max(2 * self._elapsed, 2 * _QUIET_SECONDS)
        return ((self.done + 1e-6) // (_SHARE * self.total) + 1) * _SHARE * self.total - 1e-6

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def _print(self) -> None:
        elapsed, done = self._elapsed, f"{int(self.done + 1e-9):,}"
        text = f"{self.name}: " if self.name else ""
        if self.total:
            text += (
                f"{100 * self.done / self.total:.0f} % ({done} of {self.total:,.0f} {self.unit}s), {_clock(elapsed)}"
            )
            if self._initial < self.done < self.total:
                left = elapsed * (self.total - self.done) / (self.done - self._initial)
                text += f", {_clock(left)} to go"
        else:
            text += f"{done} {self.unit}s, {_clock(elapsed)}"
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        self._printed, self._shown, self._next = True, self.done, self._next_line()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _is_interactive() -> bool:
    return sys.stderr.isatty() or _is_notebook()


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _bar(total: Optional[float], desc: str, unit: str, initial: float) -> Any:
    from tqdm.auto import tqdm

    return tqdm(
        total=total, desc=desc or None, unit=unit, initial=initial, leave=False, delay=_DELAY_SECONDS, file=sys.stderr
    )
