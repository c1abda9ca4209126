"""Commands that change the labels of a corpus with models."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..evaluation.tables import shorten_line
from ..relabel.augment import AugmentReport, augment
from ..relabel.clean import CleanReport, clean
from ..relabel.pick import PickReport, pick
from ..relabel.soft import SoftReport, predict_soft_labels
from ._command import command
from ._util import listing, say, show_shards, show_table
from .complete import app as app


@command(app, clean, without=["component"], list_path=Annotated[Optional[Path], typer.Option("--list")])
def show_clean(report: CleanReport, given: Any) -> None:
    say("good", f"{report.docs} documents", given.output_path)
    rows = []
    for kind, found in (("", report.labels), ("source ", report.sources)):
        for name, counts in sorted(found.items()):
            share = f"{100 * counts.suspect / max(1, counts.units):.1f} %"
            threshold = "-" if counts.threshold is None else f"{counts.threshold:.3f}"
            rows.append((shorten_line(kind + name), f"{counts.units:,}", f"{counts.suspect:,}", share, threshold))
    show_table(("", "entities", "suspect", "", "threshold"), rows)
    say("info", f"Tokens made missing: {report.missing} of {report.tokens}")
    if report.gold:
        say("info", f"Documents with gold, which is unchanged (--gold cleans it too): {report.gold}")
    if given.list_path is not None:
        say("good", "Suspect labels", given.list_path)
    show_shards(report.skipped, report.replaced)


@command(app, pick, without=["component"])
def show_pick(report: PickReport, given: Any) -> None:
    say("good", f"{report.docs} documents", given.output_path)
    new = sum(report.picked.values())
    say("info", f"Entities: {report.given} before, {report.kept} of them kept; new: {new} ({listing(report.picked)})")
    show_shards(report.skipped, report.replaced)


@command(app, predict_soft_labels, "soften", without=["component"])
def show_soft(report: SoftReport, given: Any) -> None:
    say("good", f"{report.docs} documents", given.output_path)
    say("info", f"Tokens: {report.tokens}; all pipelines agree on the most likely tag: {100 * report.agreement:.2f} %")
    say("info", f"Mean standard deviation of P(entity) between the pipelines: {report.deviation:.4f}")
    show_shards(report.skipped, report.replaced)


@command(app, augment, without=["mask_rate", "top_k"], model=Annotated[str, typer.Option()])
def show_augment(report: AugmentReport, given: Any) -> None:
    say("good", f"{report.docs} documents", given.output_path)
    if report.augmented:
        share = 100 * report.substituted / max(1, report.words)
        say("info", f"Words: {report.words}; replaced: {report.substituted} ({share:.1f} %); in {report.seconds:.0f} s")
        say("info", f"Rejected predictions, for which the word is kept: {report.refused}")
        if report.cut:
            say("info", f"Documents that were too long and were read in parts: {report.cut}")
    else:
        say("warning", "No masked language model: nothing is augmented")
    show_shards(report.skipped, report.replaced)
