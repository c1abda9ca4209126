"""`spacy weakner relabel complete`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Component, Corpus, Gpu, Ray, SameShards, Workers, listing, reporting, show_shards


def complete_cli(
    input_path: Corpus,
    output_path: SameShards,
    model: Annotated[str, typer.Argument(help="Pipeline that was trained on gold: folder or name")],
    component: Component = None,
    rule: Annotated[
        str,
        typer.Option(
            help="The model decides where no weak entity is (unmatched), everywhere (all), or nowhere (none); auto: "
            "unmatched or none, as gave the better labels on the gold of 'calibrate'"
        ),
    ] = "unmatched",
    broken: Annotated[
        str, typer.Option(help="Sentences whose completed tags break the tag scheme: keep, repair or drop")
    ] = "keep",
    calibration: Annotated[Optional[Path], typer.Option(help="Result of 'calibrate': sets confidences")] = None,
    weak_accuracy: Annotated[
        float, typer.Option(help="Probability that the weak label of a matched token is right")
    ] = 1.0,
    estimate_accuracy: Annotated[
        bool, typer.Option("--estimate-accuracy", help="Use the accuracy of each source that 'calibrate' estimated")
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
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..relabel.complete import complete

        report = complete(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Rule: {report.rule}")
        msg.info(f"Entities: {listing(report.entities)}")
        msg.info(f"Tokens: {report.tokens}; with their weak label: {report.matched}; completed: {report.completed}")
        share = 100 * report.broken / max(1, report.docs + report.dropped)
        msg.info(f"Documents that break the tag scheme: {report.broken} ({share:.2f} %); left out: {report.dropped}")
        if calibration is None:
            msg.info("No confidences were set, since no calibration was given")
        elif report.confidence is not None:
            msg.info(f"Mean confidence: {report.confidence:.3f}")
        if report.unestimated:
            msg.warn(
                f"Entities of no source with a known accuracy (the mean of the sources counts): {report.unestimated}"
            )
        show_shards(report.skipped, report.replaced)
