"""The application: its commands are listed here."""

import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, List, Optional

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ..about import __title__, __version__
from ..errors import Errors, WeaknerError
from ..own_code import OWN_CODE, import_own_code
from ..scratch import resolved
from ._command import first_sentence
from ._util import echo, reporting

NAME = "weakner"
HELP = "Weakly supervised NER: convert corpora, label them with weak sources, aggregate, train, evaluate."

_CODE = "--code"


# Each is a module of this folder with an `app`, in the order of `--help`, which shows these texts (none: not shown).
COMMANDS = {
    "init": "Write configs, or the folder of a project.",
    "check": "Check files and settings before training, and compare their labels.",
    "convert": "Convert a corpus to another format.",
    "anchors": "Write the sentences of wikis, with links to articles as entities.",
    "encoder": "Prepare encoders without labels, and compress those of trained pipelines.",
    "ask": "Query a language model for each text of a corpus.",
    "label": "Label a corpus with weak sources.",
    "aggregate": "Combine the labels of weak sources.",
    "train": "Train one pipeline as 'spacy train' does, or several with one config.",
    "relabel": "Change the labels of a corpus with models.",
    "calibrate": "Fit settings of a component on held-out gold.",
    "fit": "Train candidates, compare them with the term list, and select the best.",
    "package": "Package the selected pipeline, or another one, as a wheel, and show how to use it.",
    "analyze": "Measure coverage, conflicts and errors of weak labels.",
    "suggest": "Write the sentences that are most useful to annotate next.",
    "evaluate": "Score pipelines and labels on one test set, in one table.",
    "table": "Make a table of the scores of several runs, with mean and standard deviation over seeds.",
    "curves": "Plot the F1 on dev during trainings.",
    "prepare": "",
}


class _Commands(TyperGroup):
    """A group that imports a command, and spaCy, only when it is called, since that takes seconds. `--code` may also
    follow the command, as in `spacy train`."""

    def list_commands(self, ctx: Any) -> List[str]:
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        found = get_command(import_module(f".{cmd_name}", __package__).app)
        # Otherwise, a long one is cut.
        for each in (found, *getattr(found, "commands", {}).values()):
            each.short_help = each.short_help or first_sentence(each.help or "")
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([row for row in COMMANDS.items() if row[1]])

    @property
    def commands(self) -> Any:
        """RETURNS (Dict[str, Command]): All commands by name."""
        return {name: self.get_command(None, name) for name in COMMANDS}

    @commands.setter
    def commands(self, value: Any) -> None:
        """Ignore the value: the base class assigns an empty one."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        for arg in args:
            if arg.startswith("--vars."):
                with reporting():
                    raise WeaknerError(Errors.WK370.format(option=arg, name=arg[7:].partition("=")[0]))
        return super().parse_args(ctx, _code_first(args))


def _code_first(args: List[str]) -> List[str]:
    for i, arg in enumerate(args):
        if arg == "--":
            break
        if arg == _CODE or arg.startswith(f"{_CODE}="):
            end = i + (2 if arg == _CODE else 1)
            return [*args[i:end], *args[:i], *args[end:]]
    return args


_NAMES = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name=NAME, help=HELP, no_args_is_help=True, rich_markup_mode=None, cls=_Commands, context_settings=_NAMES
)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"{__title__} {__version__}")
        raise typer.Exit


@app.callback()
def weakner_cli(
    context: typer.Context,
    code: Annotated[
        Optional[Path],
        typer.Option(
            _CODE, envvar=OWN_CODE, help="Python file with your own registered functions; may also follow COMMAND"
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit")
    ] = False,
) -> None:
    from .._compat import import_factories_by_name

    # Undo the change to spaCy at the end, for callers of this application from Python.
    context.call_on_close(import_factories_by_name())
    if code is not None:
        context.call_on_close(partial(_put_back, os.environ.get(OWN_CODE, "")))
        os.environ[OWN_CODE] = str(resolved(code))
        with reporting():
            import_own_code()


def _put_back(path: str) -> None:
    # For callers from Python, which may run this application again.
    os.environ[OWN_CODE] = path
