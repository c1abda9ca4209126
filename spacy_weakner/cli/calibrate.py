"""`spacy weakner calibrate`"""

from pathlib import Path
from typing import Annotated, List, Optional, Tuple

import typer
from wasabi import msg

from ..errors import Errors, WeaknerError
from ._util import Gpu, check_json, reporting


def calibrate_cli(
    output_path: Annotated[Path, typer.Argument(help="The JSON file to write")],
    folds: Annotated[
        List[str],
        typer.Argument(
            help="The folder of 'crossfit'; or MODEL=CORPUS: a pipeline, and gold that it was not trained on"
        ),
    ],
    component: Annotated[
        Optional[str], typer.Option(help="Component to calibrate (default: the last that scores tag sequences)")
    ] = None,
    score: Annotated[str, typer.Option(help="Score per word: viterbi or log_probability")] = "viterbi",
    unit: Annotated[
        str, typer.Option(help="What is right or wrong: the tags of a sentence, or each token")
    ] = "sentence",
    method: Annotated[str, typer.Option(help="histogram or isotonic")] = "histogram",
    n_bins: Annotated[int, typer.Option(help="Bins of the histogram, at most")] = 50,
    min_per_bin: Annotated[int, typer.Option(help="Sentences per bin, at least")] = 10,
    figure: Annotated[Optional[Path], typer.Option(help="Draw the calibration as SVG")] = None,
    gpu_id: Gpu = -1,
) -> None:
    """Learn from held-out gold how far a model's scores, and the weak sources, are to be trusted."""
    options = dict(locals())
    with reporting():
        from ..calibration.calibrate import calibrate
        from ..files import write_text

        if figure is not None:
            check_json(figure, [])
            from ..evaluation.plots import steps_plot

        del options["figure"]
        options["folds"] = [pair for text in folds for pair in _parse(text)]
        report = calibrate(**options, progress=True)
        steps = report.calibration.steps
        msg.good(f"Calibration on {report.sentences} sentences", output_path)
        msg.info(f"Right: {100 * report.accuracy:.1f} % ({unit}s); steps: {len(steps.values)}")
        if len(steps.values) == 1:
            msg.warn("One step: every sentence gets the same chance. Give more gold, or a lower --min-per-bin.")
        if report.left_out:
            msg.info(f"Sentences left out, empty or without complete gold: {report.left_out}")
        for source, accuracy in report.calibration.sources.items():
            msg.info(f"Tokens labelled by '{source}' that are right: {100 * accuracy:.1f} %")
        if report.calibration.rules:
            rules = ", ".join(f"{rule} {f1:.1f}" for rule, f1 in report.calibration.rules.items())
            msg.info(f"F1 of the labels by rule of 'complete': {rules}")
        if figure is not None:
            write_text(figure, steps_plot(report.calibration, "calibration").svg + "\n")
            msg.good("Figure", figure)


def _parse(text: str) -> List[Tuple[str, Path]]:
    """One pipeline with its gold, or all folds of a folder."""
    from ..runs.train import read_folds

    if Path(text).is_dir() or "=" not in text:
        return read_folds(Path(text))
    model, _, corpus = text.rpartition("=")
    if not (model and corpus):
        expected = "the folder of 'crossfit', or MODEL=CORPUS"
        raise WeaknerError(Errors.WK005.format(setting="folds", value=repr(text), expected=expected))
    return [(model, Path(corpus))]
