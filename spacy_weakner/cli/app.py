"""The application: its commands are listed here."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, List, Optional

import typer
from typer.core import TyperGroup

from .._compat import import_factories_by_name
from ..own_code import OWN_CODE, import_own_code
from ._util import reporting
from .adapt import adapt_cli
from .aggregate import aggregate_cli
from .analyze import analyze_cli
from .anchors import anchors_cli
from .ask import ask_cli
from .augment import augment_cli
from .calibrate import calibrate_cli
from .check import check_cli
from .clean import clean_cli
from .complete import complete_cli
from .convert import convert_cli
from .distill import distill_cli
from .evaluate import evaluate_cli
from .fit import fit_cli
from .init import init_app
from .label import label_cli
from .package import package_cli
from .pick import pick_cli
from .prepare import prepare_cli
from .soft import soft_cli
from .stamp import stamp_cli
from .suggest import suggest_cli
from .train import train_cli

NAME = "weakner"
HELP = "Weakly supervised NER: convert corpora, label them with weak sources, aggregate, train, evaluate."

_CODE = "--code"


class _Commands(TyperGroup):
    """`--code` may stand after the command, too, where it does in `spacy train`."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        return super().parse_args(ctx, _code_first(args))


def _code_first(args: List[str]) -> List[str]:
    for i, arg in enumerate(args):
        if arg == "--":
            break
        if arg == _CODE or arg.startswith(f"{_CODE}="):
            end = i + (2 if arg == _CODE else 1)
            return [*args[i:end], *args[:i], *args[end:]]
    return args


app = typer.Typer(name=NAME, help=HELP, no_args_is_help=True, rich_markup_mode=None, cls=_Commands)


@app.callback()
def weakner_cli(
    context: typer.Context,
    code: Annotated[
        Optional[Path],
        typer.Option(
            _CODE, envvar=OWN_CODE, help="Python file with registered functions of your own; also after COMMAND"
        ),
    ] = None,
) -> None:
    # Whoever calls this application from Python finds spaCy as it was.
    context.call_on_close(import_factories_by_name())
    if code is not None:
        context.call_on_close(partial(_put_back, os.environ.get(OWN_CODE, "")))
        os.environ[OWN_CODE] = str(code.resolve())
        with reporting():
            import_own_code()


def _put_back(path: str) -> None:
    # Whoever calls this application from Python may call it again.
    os.environ[OWN_CODE] = path


app.add_typer(init_app)
app.command("stamp", hidden=True)(stamp_cli)
app.command("prepare", hidden=True)(prepare_cli)
app.command("check")(check_cli)
app.command("convert")(convert_cli)
app.command("anchors")(anchors_cli)
encoder_app = typer.Typer(name="encoder", help="Prepare encoders without labels.", no_args_is_help=True)
encoder_app.command("adapt")(adapt_cli)
encoder_app.command("distill")(distill_cli)
app.add_typer(encoder_app)
app.command("ask")(ask_cli)
app.command("label")(label_cli)
app.command("aggregate")(aggregate_cli)
# What these do not know goes to the config, as with `spacy train`.
_OVERRIDES = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command("train", context_settings=_OVERRIDES)(train_cli)
relabel_app = typer.Typer(name="relabel", help="Change the labels of a corpus with models.", no_args_is_help=True)
relabel_app.command("complete")(complete_cli)
relabel_app.command("clean")(clean_cli)
relabel_app.command("pick")(pick_cli)
relabel_app.command("soft")(soft_cli)
relabel_app.command("augment")(augment_cli)
app.add_typer(relabel_app)
app.command("calibrate")(calibrate_cli)
app.command("fit")(fit_cli)
app.command("package")(package_cli)
app.command("analyze")(analyze_cli)
app.command("suggest")(suggest_cli)
app.command("evaluate")(evaluate_cli)
