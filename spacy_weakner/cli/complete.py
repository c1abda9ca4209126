"""`spacy weakner relabel complete`"""

from pathlib import Path
from typing import Annotated, Any, List, NamedTuple, Optional, Sequence, Tuple

import typer

from ..calibration import confidence
from ..calibration.confidence import ConfidenceReport
from ..errors import Errors, WeaknerError
from ..relabel import complete as completion
from ..relabel.complete import CompleteReport
from ..runs.train import read_folds
from ..runtime.executor import Executor
from ._command import command
from ._util import HELP, listing, new_app, say, show_shards

# The application of the whole group: `cli/relabel.py` adds the other commands.
app = new_app("relabel", "Change the labels of a corpus with models.")
_CALIBRATION = ("score", "unit", "method")
_COMPLETION = ("rule", "broken", "weak_accuracy", "cap", "soft", "bfloat16", "gpu_id", "workers", "ray")


class _Completed(NamedTuple):
    report: CompleteReport
    calibrated: Optional[ConfidenceReport]


def complete(
    input_path: Path, output_path: Path, model: str, *, folds: Sequence[str] = (), **settings: Any
) -> _Completed:
    """Complete weak labels with the predictions of a model, and estimate the confidence of the result.

    model (str): Pipeline that was trained on gold: folder or name.
    folds (Sequence[str]): Held-out gold to calibrate confidences on: the folder that "train --folds" has written, or
        MODEL=CORPUS, a pipeline and gold that it was not trained on.
    """
    how = {name: settings.pop(name) for name in _CALIBRATION}
    calibrated = None
    if folds:
        # With a cluster, this process uses no GPU.
        here = Executor(settings["workers"], settings["ray"], settings["gpu_id"]).gpu_here
        pairs = [pair for text in folds for pair in _parse(text)]
        how.update(gpu_id=here, progress=True)
        calibrated = confidence.calibrate_confidence(pairs, **how)
        settings["calibration"] = calibrated.calibration
    report = completion.complete(input_path, output_path, model, **settings, progress=True)
    return _Completed(report, calibrated)


@command(
    app,
    complete,
    settings={confidence.calibrate_confidence: _CALIBRATION, completion.complete: _COMPLETION},
    input_path=Annotated[Path, typer.Argument(help=HELP["corpus"])],
    output_path=Annotated[Path, typer.Argument(help=HELP["same_shards"])],
)
def show(completed: _Completed, given: Any) -> None:
    report = completed.report
    if completed.calibrated is not None:
        _show(completed.calibrated)
    say("good", f"{report.docs} documents", given.output_path)
    say("info", f"Rule: {report.rule}")
    say("info", f"Entities: {listing(report.entities)}")
    say("info", f"Tokens: {report.tokens}; with their weak label: {report.matched}; completed: {report.completed}")
    share = 100 * report.broken / max(1, report.docs)
    say("info", f"Documents that violate the tag scheme: {report.broken} ({share:.2f} %)")
    if completed.calibrated is None:
        say("info", "No confidences were set, because --folds was not given")
    elif report.confidence is not None:
        say("info", f"Mean confidence: {report.confidence:.3f}")
    show_shards(report.skipped, report.replaced)


def _show(report: ConfidenceReport) -> None:
    steps, unit = report.calibration.steps, report.calibration.unit
    right = f"{100 * report.accuracy:.1f} % of the {unit}s are right"
    say("info", f"Calibrated on {report.sentences} sentences: {right}; steps: {len(steps.values)}")
    if len(steps.values) == 1:
        say("warning", "There is only one step: every sentence gets the same probability. Give more gold.")
    if report.left_out:
        say("info", f"Sentences left out, because they are empty or without complete gold: {report.left_out}")
    if report.calibration.rules:
        by_rule = ", ".join(f"{rule} {f1:.1f}" for rule, f1 in report.calibration.rules.items())
        say("info", f"F1 of the labels by rule: {by_rule}")


def _parse(text: str) -> List[Tuple[str, Path]]:
    """Parse MODEL=CORPUS, or read all folds of a folder."""
    if Path(text).is_dir() or "=" not in text:
        return read_folds(Path(text))
    model, _, corpus = text.rpartition("=")
    if not (model and corpus):
        expected = "the folder of 'train --folds', or MODEL=CORPUS"
        raise WeaknerError(Errors.WK005.format(setting="folds", value=repr(text), expected=expected))
    return [(model, Path(corpus))]
