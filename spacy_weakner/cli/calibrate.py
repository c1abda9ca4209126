"""`spacy weakner calibrate`"""

from typing import Annotated, Any

import typer

from ..calibration.calibrate import CalibrateReport, calibrate, format_thresholds
from ..evaluation.tables import shorten_line
from ._command import command
from ._util import new_app, say, show_table

app = new_app()
_FIT = "temperature: calibrated probabilities; bias: the best F1; threshold: the given precision; several with commas"


def _read(given: Any) -> None:
    given.fit = [name.strip() for name in given.fit.split(",")]


@command(app, calibrate, before=_read, without=["min_entities"], fit=Annotated[str, typer.Option(help=_FIT)])
def show(report: CalibrateReport, given: Any) -> None:
    say("good", f"Calibrated '{report.component}'", given.output_path)
    if report.seen:
        say(
            "warning",
            f"Documents left out, on which the pipeline was trained or chosen, or which are short: {report.seen}",
        )
    for path in report.unknown:
        say("warning", f"Sentences that the pipeline was trained or chosen on may be left: no .spacy corpus at {path}")
    for name, fitted in (("Bias", report.bias), ("Temperature", report.temperature)):
        if fitted is not None:
            what = "F1" if name == "Bias" else "loss"
            value = f"{fitted.value:+.1f}" if name == "Bias" else f"{fitted.value:.3f}"
            before, after = (f"{x:.1f}" if name == "Bias" else f"{x:.4f}" for x in (fitted.before, fitted.after))
            say("info", f"{name}: {value} ({what} on {report.docs} documents: {before} before, {after} after)")
            if fitted.at_bound:
                say("warning", f"{name}: this value is at the end of the searched range")
    if report.thresholds is None:
        return
    found = report.thresholds
    say("info", f"Thresholds for a precision of {100 * given.precision:g} %, from {found.docs} documents")
    header, cells = format_thresholds(found)
    show_table(header, [(shorten_line(line[0]), *line[1:]) for line in cells])
    pooled = [shorten_line(label) for label, threshold in found.labels.items() if threshold.pooled]
    if pooled:
        say("info", f"Labels with too few entities, which share a threshold ('all others'): {', '.join(pooled)}")
    if found.unsure:
        unsure = ", ".join(map(shorten_line, found.unsure))
        say("warning", f"Labels for which no threshold is certain to be this precise: {unsure}")
        kept = "they keep the best threshold there is (or --strict)"
        say("info", f"Of these, {'only certain entities are kept' if given.strict else kept}.")
    if found.unscored:
        say("warning", f"Entities without a score: {found.unscored}")
