"""How far a long piece of work has come: a bar in terminals and notebooks, lines in logs. Both are tqdm's."""

import sys
from types import TracebackType
from typing import Any, Callable, Generic, Iterable, Iterator, Optional, Sized, Type, TypeVar

from tqdm.auto import tqdm as Bar
from tqdm.std import tqdm

T = TypeVar("T")
# What is done sooner shows no bar, or no line.
_BAR_SECONDS, _LINE_SECONDS = 1.0, 5.0
_KNOWN = "{desc}: {percentage:.0f} % ({n:,.0f} of {total:,.0f} {unit}s), {elapsed}, {remaining} to go"
_UNKNOWN = "{desc}: {n:,.0f} {unit}s, {elapsed}"


class Progress(Generic[T]):
    """Shows how much of something is done. Go through it as through the items, or say by `update` what is done.

    In a terminal or a notebook it is a bar. In a log it is a line on stderr at every 10 %, from 5 seconds on; if nobody
    knows how much there is to do, a line every half minute.

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
        how = {"desc": desc, "unit": unit, "total": total, "initial": initial, "disable": not enabled}
        if _is_interactive():
            self._bar = Bar(leave=False, delay=_BAR_SECONDS, file=sys.stderr, **how)
        else:
            self._bar = _Lines(delay=_LINE_SECONDS, file=sys.stderr, **_line_settings(total), **how)

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
        self._bar.update(round(self.done, 1) - self._bar.n)

    def note(self, **values: Any) -> None:
        """Show values beside a bar."""
        self._bar.set_postfix(values, refresh=False)

    def close(self) -> None:
        """Remove a bar; the end of what was shown in lines is shown, too."""
        self._bar.close()

    def __enter__(self) -> "Progress[T]":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _line_settings(total: Optional[float]) -> Any:
    if not total:
        return {"bar_format": _UNKNOWN, "mininterval": 30.0}
    return {"bar_format": _KNOWN, "mininterval": 0.0, "miniters": total / 10 - 1e-6}


class _Lines(tqdm):
    """Prints lines in the place of a bar."""

    monitor_interval = 0  # nobody has to wake up to print
    disable: bool

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


def _is_interactive() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return sys.stderr.isatty() or (shell is not None and "IPKernelApp" in shell.config)
