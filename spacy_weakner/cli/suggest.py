"""`spacy weakner suggest`"""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from wasabi import msg

from ..active_learning.suggest import SuggestReport, suggest
from ..evaluation.tables import shorten
from ._command import command
from ._util import check_json, listing, new_app, write_json

app = new_app()
_SHOWN = 10


def _check(given: Any) -> None:
    sources = [] if given.sources is None else [Path(given.sources)]
    check_json(given.report_output, [given.input_path, *sources, *(given.exclude or ())])


@command(
    app,
    suggest,
    before=_check,
    report_output=Annotated[
        Optional[Path], typer.Option("--report", help="Write why each sentence was chosen to this JSON file")
    ],
)
def show(report: SuggestReport, given: Any) -> None:
    """Print what was suggested."""
    msg.good(f"{len(report.sentences)} sentences of {report.read}", given.output_path)
    left_out = {
        "annotated": report.annotated,
        "excluded": report.excluded,
        "copies": report.copies,
        "nearly the same as a chosen one": report.near,
        "empty": report.empty,
    }
    msg.info(f"Left out: {listing({what: number for what, number in left_out.items() if number})}")
    msg.info(f"Sentences by uncertain label: {', '.join(f'{k} {v}' for k, v in report.labels.items()) or 'none'}")
    rows = [(f"{each.score:.2f}", shorten(each.why), shorten(each.text)) for each in report.sentences[:_SHOWN]]
    msg.table(rows, header=("score", "uncertain", "sentence"), divider=True)
    if len(report.sentences) < given.n:
        msg.warn(f"{given.n} sentences were wanted; there are no more that differ")
    if report.certain:
        msg.warn(f"Sentences without uncertainty, since there were no others: {report.certain}")
    if report.lost:
        msg.warn(f"What the format cannot hold: {', '.join(f'{what} {k}' for what, k in report.lost.items())}")
    if given.report_output is not None:
        write_json(given.report_output, report.to_json())
        msg.good("Report", given.report_output)
