"""`spacy weakner check`"""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..checks.check import CheckReport, check
from ..checks.findings import Finding
from ..checks.labels import label_table
from ..labeling.sources import TABLE_SETTINGS, TermSource
from ..project.inputs import stamp_inputs
from ._command import command
from ._util import echo, given_path, given_text, new_app, say, shared, show_table, write_json

app = new_app()
_FILES = ("text", "terms", "sources", "gold", "dev", "test")
_TEXTS: Any = dict.fromkeys((*_FILES, "configs"), Annotated[Optional[str], typer.Option()])


def _read(given: Any) -> None:
    for name in (*_FILES, "configs"):
        setattr(given, name, given_path(getattr(given, name)))
    for name in ("lang", "tokenizer", "size", "transformer", "spans_key"):
        setattr(given, name, given_text(getattr(given, name)))


@command(
    app,
    check,
    before=_read,
    writes=["output", "stamp"],
    settings={TermSource: TABLE_SETTINGS},
    **_TEXTS,
    output=Annotated[Optional[Path], shared("output")],
    stamp=Annotated[
        Optional[Path],
        typer.Option(help="Write hashes of the sources' files and of named pipelines to this file"),
    ],
)
def show(report: CheckReport, given: Any) -> None:
    if given.output is not None:
        write_json(given.output, report.to_json())
        say("good", "Findings", given.output)
    show_report(report)
    if given.stamp is not None:
        corpora = filter(None, (given.text, given.gold, given.dev, given.test))
        stamp_inputs(given.stamp, given.sources, given.transformer, given.sentences, corpora)


def show_report(report: CheckReport) -> None:
    """Print the findings, the labels of all files side by side, and the number of errors; exit if there are any."""
    for finding in report.findings:
        _show(finding)
    header, rows = label_table(report.labels)
    if rows:
        show_table(header, rows)
    warnings = sum(finding.level == "warning" for finding in report.findings)
    if report.errors:
        say("error", f"Errors: {report.errors}, warnings: {warnings}. Correct the errors before training.")
        raise typer.Exit(1)
    say("good", f"No errors; warnings: {warnings}")


def _show(finding: Finding) -> None:
    say(finding.level, finding.where)
    echo(f"  {finding.message}", wrap=True)
    if finding.cure:
        echo(f"  → {finding.cure}")
