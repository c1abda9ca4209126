"""How far a long piece of work has come: a bar in terminals and notebooks, lines in logs. Both are tqdm's."""

import sys
from threading import RLock
from types import TracebackType
from typing import Any, Callable, Generic, Iterable, Iterator, Optional, Sized, Type, TypeVar

from tqdm.std import tqdm

T = TypeVar("T")
# What is done sooner shows no bar, or no line.
_BAR_SECONDS, _LINE_SECONDS = 1.0, 5.0


class Progress(Generic[T]):
    """Shows how much of something is done. Go through it as through the items, or say by `update` what is done.

    In a terminal or a notebook it is a bar. In a log it is a line on stderr each time that 10 % more are done, from 5
    seconds on; if nobody knows how much there is to do, a line every half minute.

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
        self.done = initial
        self._bar: Any = None
        if enabled and sys.stderr is not None:
            self._bar = _bar(total, file=sys.stderr, desc=desc, unit=unit, initial=initial)

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
        """Remove a bar; the end of what was shown in lines is shown, too."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> "Progress[T]":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _bar(total: Optional[float], **how: Any) -> Any:
    if _is_interactive():
        from tqdm.auto import tqdm as bar

        return bar(total=total, leave=False, delay=_BAR_SECONDS, **how)
    # Of what is known how much it is, a line at each tenth; else one every half minute.
    when = {"mininterval": 0.0, "miniters": total / 10 - 1e-6} if total else {"mininterval": 30.0}
    return _Lines(total=total, delay=_LINE_SECONDS, **when, **how)


class _Lines(tqdm):
    """Prints lines in the place of a bar."""

    monitor_interval = 0  # nobody has to wake up to print
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
        """Lines stand below each other."""

    def close(self) -> None:
        if not self.disable:
            if self.start_t < self.last_print_t and self.last_print_n != self.n:
                self.refresh()
            self.disable = True
            self._decr_instances(self)


_Lines.set_lock(RLock())  # tqdm's own lock would decide how this program starts processes


def _is_interactive() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return sys.stderr.isatty() or (shell is not None and "IPKernelApp" in shell.config)
