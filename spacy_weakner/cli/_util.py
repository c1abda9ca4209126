"""Helpers of all commands. Nothing heavy is imported here, since spaCy imports this package for each of its
commands."""

import errno
import os
import re
import shutil
import signal
import sys
import textwrap
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Set, TextIO

import typer
from wasabi import color, table
from wasabi.util import locale_escape, supports_ansi

from ..about import __title__, __version__
from ..corpus.formats.names import INPUTS
from ..errors import Errors, WeaknerError, one_line
from ..files import check_output, write_text
from ..runtime.lock import locked
from ..scratch import resolved

INTERRUPTED = 130
REPORT = {"stage": "report"}
_START = 2000  # bytes of a report in which it names this package
# How JSON, lists of hashes, SVG and HTML do so.
_IS_REPORT = re.compile(
    rb'\A\{\s*"made_by":\s*"spacy_weakner|\A# spacy_weakner\n|<!-- spacy_weakner -->\n<svg'
    rb'|<meta name="generator" content="spacy_weakner">'
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SEED_RANGE = (0, 2**31 - 1)  # that all libraries accept
# Help texts of parameters that several commands share, by name. They are used where the docstring of a command's
# function refers to another function, and by `shared`.
HELP = {
    "corpus": "Corpus: a .spacy file or a folder of them",
    "same_shards": "Output: a .spacy file, or a folder in which every shard keeps its name",
    "gpu_id": "GPU number; -1 is the CPU",
    "workers": "Number of processes",
    "ray": "Address of the Ray cluster to run on; auto: the address in RAY_ADDRESS, or else this machine",
    "processes": "Number of trainings that run at the same time",
    "format": f"Format of the input: {', '.join(INPUTS)}",
    "lang": "Language code; xx for several languages (default: the language of the corpus, or en)",
    "tokenizer": "Name of a registered tokenizer (default: the tokenizer of the corpus or language)",
    "sentences": "How text without annotations is split: rule, sentencizer, lines, none, or a pipeline with a senter "
    "(default: as in the corpus, or rule)",
    "abbreviations": "Abbreviations that end no sentence, besides those of the language, separated by commas",
    "misaligned": "What to do with spans that do not end at token boundaries: error, drop, expand or contract",
    "columns": "CoNLL files: columns of the token and the tag, counted from 1; -1 is the last column",
    "spans_key": "Span group of files of spaCy (.spacy, Doc.to_json) to read as gold instead of the entities",
    "overwrite": "Replace an output that this command has not made, or that was edited",
    "output": "Write the result to this JSON file",
}
# Errors without a file name that are not bugs: a full disk, a closed pipe, no memory or network.
_OF_THE_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EPIPE, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ECONNREFUSED)
# A command, or an option that may have a value.
_COMMAND = re.compile(r"\b(spacy weakner|weasel run|pip install|python -m) |(?<!\S)'?--[a-z]")
_LOOKS = {"good": ("✔", "green"), "info": ("ℹ", "blue"), "warning": ("⚠", "yellow"), "error": ("✘", "red")}


def new_app(name: Optional[str] = None, help: Optional[str] = None) -> typer.Typer:
    """Return an application for one command or, with a name, for a group of commands."""
    return typer.Typer(name=name, help=help, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def shared(name: str, *flags: str) -> Any:
    """Return an option that several commands share."""
    return typer.Option(*flags, help=HELP[name])


def parse_names(values: Sequence[str]) -> Dict[str, str]:
    """Parse the LABEL=NAME arguments of a command line."""
    pairs = [value.partition("=") for value in values]
    for value, (label, _, name) in zip(values, pairs, strict=True):
        if not (label and name):
            raise WeaknerError(Errors.WK005.format(setting="map", value=value, expected="LABEL=NAME"))
    return {label: name for label, _, name in pairs}


def _show_warning(shown: Set[str], show_others: Callable[..., None], message: Any, *details: Any) -> None:
    """Show a warning of this package once, without the line of code that it comes from."""
    if str(message) in shown:
        return
    if str(message).startswith("[WK"):
        shown.add(str(message))
        say("warning", str(message), err=True)
    else:
        show_others(message, *details)


@contextmanager
def reporting() -> Iterator[None]:
    """Turn user errors, Ctrl-C and SIGTERM into one line on stderr and an exit code, and warnings into one line."""
    # Handle SIGTERM like Ctrl-C, so that half-written files are removed. Only the main thread may set a handler.
    is_main = current_thread() is main_thread()
    before = {number: signal.getsignal(number) for number in _SIGNALS if is_main}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as for a job in the background
            signal.signal(number, _interrupt)
    show_others = warnings.showwarning
    warnings.showwarning = partial(_show_warning, set(), show_others)
    try:
        yield
    except (WeaknerError, OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.filename is None and error.errno not in _OF_THE_SYSTEM:
            raise  # a bug: show the traceback
        _fail(str(error) or "Memory ran out. Give smaller files, or shorter documents.")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        _fail("Interrupted. Finished files are kept; run the same command again to continue.")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        warnings.showwarning = show_others
        for number, handler in before.items():
            if signal.getsignal(number) == _interrupt:
                # None: the previous handler was not set from Python.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _interrupt(number: int, frame: Any) -> None:
    # A second Ctrl-C ends the process at once, even while it cleans up: the next run removes what is left.
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


def config_overrides(context: typer.Context) -> Dict[str, Any]:
    """Parse the options that the command does not define as settings of the config, by dotted name."""
    from spacy.cli import _util

    names = Counter(word.partition("=")[0] for word in context.args if word.startswith("--"))
    repeated = [name for name, n in names.items() if n > 1]
    if repeated:
        raise WeaknerError(Errors.WK369.format(reason=f"{repeated[0]} is given {names[repeated[0]]} times."))
    try:
        return _util.parse_config_overrides(context.args)
    except _util.NoSuchOption as error:  # from click, which may not be the copy that typer uses
        raise WeaknerError(Errors.WK369.format(reason=error.format_message())) from None


def only_with(context: typer.Context, modes: Mapping[str, Sequence[str]]) -> str:
    """Return which of several mutually exclusive options was given, or "". `modes` maps each of them to the options
    that may accompany it, and "" to those that need none of them."""

    def is_given(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    mode, *others = [*filter(is_given, filter(None, modes)), ""]
    for option in filter(None, others):
        raise _misplaced(option, f"without --{mode}")
    for option in {option for names in modes.values() for option in names} - {*modes[mode]}:
        if is_given(option):
            able = " or ".join(f"--{name}" for name, names in modes.items() if name and option in names)
            how = f"without --{mode}" if mode else f"with {able}"
            raise _misplaced(option, how)
    return mode


def _misplaced(option: str, where: str) -> WeaknerError:
    setting, where = (text.replace("_", "-") for text in (f"--{option}", where))
    return WeaknerError(Errors.WK331.format(setting=setting, where=where, instead=""))


def say(kind: str, text: str, path: object = None, *, err: bool = False) -> None:
    """Print a message; `path` follows on its own line, so that it can be copied."""
    sign, tint = _LOOKS[kind]
    echo(f"{sign} {text}", tint, err=err, wrap=True)
    if path is not None:
        echo(f"  {path}")


def echo(text: str, tint: Optional[str] = None, err: bool = False, wrap: bool = False) -> None:
    """Print a line, in color in a terminal that shows colors. Characters that control terminals are escaped. `wrap`
    breaks it between words in a terminal; lines with commands are left as they are, so that they can be copied."""
    line, stream = locale_escape(one_line(text, sys.maxsize)), sys.stderr if err else sys.stdout
    if wrap and stream.isatty() and not _COMMAND.search(line):
        width = max(40, shutil.get_terminal_size().columns)
        line = textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    typer.echo(color(line, fg=tint) if tint is not None and _shows_colors(stream) else line, err=err)


def _shows_colors(stream: TextIO) -> bool:
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty() and supports_ansi()


def show_remarks(remarks: Iterable[str]) -> None:
    """Print remarks on the input as warnings."""
    for remark in remarks:
        say("warning", remark[0].upper() + remark[1:])


def given_text(value: Optional[str]) -> Optional[str]:
    """Return a value that a workflow passes on, or None if it is "", "null" or "none"."""
    return None if value is None or value.strip().lower() in ("", "null", "none") else value


def given_path(value: Optional[str]) -> Optional[Path]:
    """Return such a value as a path."""
    return None if given_text(value) is None else Path(str(value))


def listing(counts: Dict[str, int]) -> str:
    """Format counts on one line: "12 (CITY 7, PER 5)"."""
    total = sum(counts.values())
    return f"{total} ({', '.join(f'{name} {n}' for name, n in counts.items())})" if counts else "0"


def show_shards(skipped: int, replaced: int) -> None:
    """Print how many shards of earlier runs were kept, and how many were replaced since their inputs have changed."""
    if skipped:
        say("info", f"Shards that were already finished: {skipped}")
    if replaced:
        say("info", f"Shards of an earlier run replaced: {replaced}")


@contextmanager
def reports(given: Any, *names: str) -> Iterator[None]:
    """Lock the files of reports: the parsed values with these names. Raise an error before any work if one is a folder,
    an input, or a file that exists and is no report of this package: those name it at their start, or have a receipt of
    the stage `REPORT`."""
    values = [value for name, value in vars(given).items() if name not in names]
    paths = [path for value in values for path in (value if isinstance(value, list) else [value])]
    from ..runtime.output import finished

    outputs: Dict[Path, Path] = {}
    with ExitStack() as stack:
        for output in filter(None, (getattr(given, name) for name in names)):
            if output.is_dir():
                raise WeaknerError(Errors.WK109.format(path=output))
            check_output([path for path in paths if isinstance(path, Path)], [output])
            if outputs.setdefault(resolved(output), output) is not output:
                where, instead = "with a file other than that of another report", ", or choose another file"
                raise WeaknerError(Errors.WK331.format(setting=str(output), where=where, instead=instead))
            with output.open("rb") if output.exists() else BytesIO() as file_:
                start = file_.read(_START)
            stack.enter_context(locked(output))
            if start and not _IS_REPORT.search(start):
                finished(output, REPORT, None)
        yield


def write_json(path: Path, value: Dict[str, Any]) -> None:
    import srsly

    write_text(path, srsly.json_dumps({"made_by": f"{__title__} {__version__}", **value}, indent=2) + "\n")


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> None:
    """Print a table of numbers; the first `names` columns are text."""
    aligns: Any = ["l" if i < names else "r" for i in range(len(header))]
    rows = [[one_line(cell) for cell in row] for row in rows]
    typer.echo(locale_escape(table(rows, header=header, divider=True, aligns=aligns, max_col=60)))


def _fail(text: str) -> None:
    say("error", one_line(text), err=True)
