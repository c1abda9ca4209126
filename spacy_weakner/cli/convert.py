"""`spacy weakner convert`"""

from pathlib import Path
from typing import Annotated, Any, List, Optional

import typer

from ..conversion.convert import ConvertReport, convert
from ..corpus.formats.names import OUTPUTS, SUFFIXES
from ._command import command
from ._util import listing, new_app, parse_names, say, show_remarks

app = new_app()


def _read(given: Any) -> None:
    given.label_names = parse_names(given.label_names or ())
    given.labels = None if given.labels is None else [name.strip() for name in given.labels.split(",")]


_INPUT = f"File or folder: {' '.join(SUFFIXES)} (text and JSON files also as .gz)"
_MAP = "LABEL=NAME: a label of the input, and its new name (repeatable)"
_TO = f"Format of the output: {', '.join(OUTPUTS)} (default: the format of its suffix)"


@command(
    app,
    convert,
    before=_read,
    input_path=Annotated[Path, typer.Argument(help=_INPUT)],
    to=Annotated[Optional[str], typer.Option(help=_TO)],
    labels=Annotated[Optional[str], typer.Option()],
    label_names=Annotated[Optional[List[str]], typer.Option("--map", help=_MAP)],
    without=["limit", "documents", "source", "names"],
)
def show(report: ConvertReport, given: Any) -> None:
    say("good", f"{report.docs} documents, {report.tokens} tokens", given.output_path)
    if report.unknown < report.docs:
        say("info", f"Entities: {listing(report.entities)}")
    if report.unknown:
        say("info", f"Without entity annotation: {report.unknown} documents")
    if report.weak:
        say("info", f"Weak spans: {listing(report.weak)}")
    if report.suggested:
        say("info", f"Suggested spans, which are neither gold nor weak labels of a source: {report.suggested}")
    if report.empty:
        say("info", f"Empty lines ignored: {report.empty}")
    if report.misaligned:
        effect = ". 'evaluate' refuses their documents as a test set (--misaligned expand keeps such spans)"
        effect = effect if given.misaligned == "drop" else ""
        say("warning", f"Spans dropped because they do not end at token boundaries: {report.misaligned}{effect}")
    if report.moved:
        say("warning", f"Spans {given.misaligned}ed to token boundaries: {report.moved}")
    show_remarks(report.remarks + report.suspicion)
    if report.lost:
        lost = ", ".join(f"{what} ({n})" for what, n in report.lost.items())
        say("warning", f"Lost, because {given.output_path.name} cannot store it: {lost}")
