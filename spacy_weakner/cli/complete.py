"""`spacy weakner relabel complete`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, List, Optional, Tuple

import typer
from wasabi import msg

from ..errors import Errors, WeaknerError
from ._util import Component, Corpus, Gpu, Ray, SameShards, Workers, check_json, listing, reporting, show_shards

if TYPE_CHECKING:
    from ..calibration.confidence import ConfidenceReport

# Options that say how to calibrate, and not how to complete.
_CALIBRATION = ("score", "unit", "method", "n_bins", "min_per_bin")


def complete_cli(
    input_path: Corpus,
    output_path: SameShards,
    model: Annotated[str, typer.Argument(help="Pipeline that was trained on gold: folder or name")],
    component: Component = None,
    folds: Annotated[
        Optional[List[str]],
        typer.Option(
            help="Calibrate confidences on held-out gold: the folder of 'train --folds'; or MODEL=CORPUS, a pipeline "
            "and gold that it was not trained on (repeatable)"
        ),
    ] = None,
    score: Annotated[str, typer.Option(help="Folds: score per word, viterbi or log_probability")] = "viterbi",
    unit: Annotated[str, typer.Option(help="Folds: unit that is right or wrong, sentence or token")] = "sentence",
    method: Annotated[str, typer.Option(help="Folds: histogram or isotonic")] = "histogram",
    n_bins: Annotated[int, typer.Option(help="Folds: bins of the histogram, at most")] = 50,
    min_per_bin: Annotated[int, typer.Option(help="Folds: sentences per bin, at least")] = 10,
    figure: Annotated[Optional[Path], typer.Option(help="Folds: draw the calibration as SVG")] = None,
    rule: Annotated[
        str,
        typer.Option(
            help="The model decides where no weak entity is (unmatched), everywhere (all), or nowhere (none); auto: "
            "unmatched or none, whichever gave the better labels on the gold of --folds"
        ),
    ] = "unmatched",
    broken: Annotated[
        str, typer.Option(help="Sentences whose completed tags break the tag scheme: keep, repair or drop")
    ] = "keep",
    weak_accuracy: Annotated[
        float, typer.Option(help="Probability that the weak label of a matched token is right")
    ] = 1.0,
    estimate_accuracy: Annotated[
        bool, typer.Option("--estimate-accuracy", help="Estimate that for each source, on the gold of --folds")
    ] = False,
    cap: Annotated[float, typer.Option(help="Upper bound of the confidence")] = 0.95,
    soft: Annotated[
        bool, typer.Option("--soft", help="Write soft labels too: the model's probabilities, for SoftLabelCRF")
    ] = False,
    bfloat16: Annotated[
        bool, typer.Option("--bfloat16", help="Compute a Transformer in bfloat16: faster on CPUs with units for it")
    ] = False,
    gpu_id: Gpu = -1,
    workers: Workers = 1,
    ray: Ray = None,
) -> None:
    """Complete weak labels with the predictions of a model, and estimate the confidence of the result."""
    options = dict(locals())
    with reporting():
        from ..relabel.complete import complete

        how = {name: options.pop(name) for name in _CALIBRATION}
        del options["folds"], options["figure"]
        if folds:
            from ..calibration.confidence import calibrate_confidence
            from ..runtime.executor import Executor

            if figure is not None:
                check_json(figure, [input_path])
            # On a cluster this process needs no GPU.
            here = Executor(workers, ray, gpu_id).gpu_here
            pairs = [pair for text in folds for pair in _parse(text)]
            calibrated = calibrate_confidence(pairs, component=component, **how, gpu_id=here, progress=True)
            _show(calibrated, figure)
            options["calibration"] = calibrated.calibration
        report = complete(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Rule: {report.rule}")
        msg.info(f"Entities: {listing(report.entities)}")
        msg.info(f"Tokens: {report.tokens}; with their weak label: {report.matched}; completed: {report.completed}")
        share = 100 * report.broken / max(1, report.docs + report.dropped)
        msg.info(f"Documents that break the tag scheme: {report.broken} ({share:.2f} %); left out: {report.dropped}")
        if not folds:
            msg.info("No confidences were set, since there are no --folds")
        elif report.confidence is not None:
            msg.info(f"Mean confidence: {report.confidence:.3f}")
        if report.unestimated:
            msg.warn(
                f"Entities of no source with a known accuracy (the mean of the sources counts): {report.unestimated}"
            )
        show_shards(report.skipped, report.replaced)


def _show(report: "ConfidenceReport", figure: Optional[Path]) -> None:
    steps, unit = report.calibration.steps, report.calibration.unit
    right = 100 * report.accuracy
    msg.info(f"Calibrated on {report.sentences} sentences: {right:.1f} % right ({unit}s); steps: {len(steps.values)}")
    if len(steps.values) == 1:
        msg.warn("One step: every sentence gets the same probability. Give more gold, or a lower --min-per-bin.")
    if report.left_out:
        msg.info(f"Sentences left out, empty or without complete gold: {report.left_out}")
    for source, accuracy in report.calibration.sources.items():
        msg.info(f"Tokens labeled by '{source}' that are right: {100 * accuracy:.1f} %")
    if report.calibration.rules:
        msg.info(
            f"F1 of the labels by rule: {', '.join(f'{r} {f1:.1f}' for r, f1 in report.calibration.rules.items())}"
        )
    if figure is not None:
        from ..evaluation.plots import steps_plot
        from ..files import write_text

        write_text(figure, steps_plot(report.calibration, "calibration").svg + "\n")
        msg.good("Figure", figure)


def _parse(text: str) -> List[Tuple[str, Path]]:
    """One pipeline with its gold, or all folds of a folder."""
    from ..runs.train import read_folds

    if Path(text).is_dir() or "=" not in text:
        return read_folds(Path(text))
    model, _, corpus = text.rpartition("=")
    if not (model and corpus):
        expected = "the folder of 'train --folds', or MODEL=CORPUS"
        raise WeaknerError(Errors.WK005.format(setting="folds", value=repr(text), expected=expected))
    return [(model, Path(corpus))]
