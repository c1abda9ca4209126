"""Commands that prepare encoders."""

import os
from typing import Annotated, Any

import typer

from ..encoder_tools.adapt import AdaptReport, adapt
from ..encoder_tools.distill import DistillReport, distill
from ..encoder_tools.quantize import QuantizeReport, quantize
from ..encoder_tools.vectors import VectorsReport, vectors
from ._command import command
from ._util import new_app, say, show_remarks

app = new_app("encoder", "Prepare encoders without labels, and compress the encoders of trained pipelines.")


@command(app, adapt, without=["mask_rate"], model=Annotated[str, typer.Option()])
def show_adapt(report: AdaptReport, given: Any) -> None:
    if os.environ.get("RANK", "0") != "0":
        return  # under torchrun, only one process prints
    if report.skipped:
        say("info", "This encoder was already finished; nothing was done")
    say("good", f"{report.texts} texts", given.output_path)
    show_remarks(report.remarks)
    say("info", f"Held out: {report.held_out} texts; in total {report.words} tokens, {report.pieces} pieces")
    if report.split:
        say("info", f"Texts that were too long and were split: {report.split}")
    resumed = f", from step {report.resumed} on" if report.resumed else ""
    say("info", f"Steps: {report.steps}{resumed}, in {report.seconds:.0f} s")
    if report.new_head:
        say("info", "The head was trained from scratch")
    if report.perplexity_before is not None and report.perplexity_after is not None:
        perplexity = f"perplexity {report.perplexity_before:.1f}, {report.perplexity_after:.1f}"
        say("info", f"Held-out loss: {report.loss_before:.3f} before, {report.loss_after:.3f} after ({perplexity})")
    else:
        say("warning", "No text was held out, so the loss is unknown")


@command(app, distill, without=["width"], model=Annotated[str, typer.Option()])
def show_distill(report: DistillReport, given: Any) -> None:
    say("good", f"{report.pieces} word pieces, vectors of width {report.width}", given.output_path)
    show_remarks(report.remarks)
    say("info", f"Words of the corpora: {report.words}; vectors were fitted to {report.cut} words of several pieces")
    if report.held_out:
        after = f"{report.after:.2f} ({report.before:.2f} before the vectors were fitted)"
        words = f"{report.held_out} held-out words"
        say("info", f"Mean cosine similarity to the Transformer's vectors of {words}: {after}")


@command(app, vectors, without=["format"])
def show_vectors(report: VectorsReport, given: Any) -> None:
    if report.words:
        say("good", f"{report.words} words, vectors of width {report.width}", given.output_path)
    else:
        say("warning", "No word is frequent enough for a vector", given.output_path)
    show_remarks(report.remarks)
    tokens = f"{report.tokens:,} tokens of {report.sentences:,} sentences"
    say("info", f"Counted: {tokens}, {report.different:,} different words")
    if report.excluded:
        say("info", f"Sentences of the text that are in the excluded corpora, and left out: {report.excluded:,}")
    if report.sentences < report.read:
        say("info", f"These are a sample of the {report.read:,} sentences of the text")


@command(app, quantize)
def show_quantize(report: QuantizeReport, given: Any) -> None:
    before, after = (f"{size / 1e6:.0f} MB" for size in (report.before, report.after))
    say("good", f"{report.encoders} Transformer{'s' * (report.encoders > 1)} in int8: {after} ({before} before)")
    if report.kept:
        say("warning", f"Not in int8, since they read a question beside each text: {', '.join(report.kept)}")
    command = f"spacy weakner evaluate GOLD float32={given.model} int8={given.output_path}"
    say("info", f"Predictions differ slightly. Compare both pipelines on gold: {command}")
