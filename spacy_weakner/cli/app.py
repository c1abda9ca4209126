"""The application: its commands are listed here."""

import typer

from .aggregate import aggregate_cli
from .analyze import analyze_cli
from .compare import compare_cli
from .convert import convert_cli
from .label import label_cli
from .report import report_cli

NAME = "weakner"
HELP = "Weakly supervised NER: convert corpora, label them with weak sources, aggregate, analyze, compare, report."

app = typer.Typer(name=NAME, help=HELP, no_args_is_help=True, rich_markup_mode=None)
app.command("convert")(convert_cli)
app.command("label")(label_cli)
app.command("aggregate")(aggregate_cli)
app.command("analyze")(analyze_cli)
app.command("compare")(compare_cli)
app.command("report")(report_cli)
