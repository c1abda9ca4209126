"""`spacy weakner encoder adapt`"""

import os
from pathlib import Path
from typing import Annotated, List, Optional

import typer
from wasabi import msg

from ._util import Lang, Seed, Sentences, Tokenizer, reporting


def adapt_cli(
    inputs: Annotated[
        List[Path], typer.Argument(help="Corpora: files or folders; .spacy .jsonl .conll .iob .bio .tsv .txt (or .gz)")
    ],
    output_path: Annotated[Path, typer.Argument(help="Folder for the adapted encoder")],
    model: Annotated[str, typer.Option(help="Encoder to begin with: a Hugging Face folder or name")],
    max_length: Annotated[
        Optional[int], typer.Option(help="Pieces per sequence; longer texts are split (default: 256, or the model's)")
    ] = None,
    eval_share: Annotated[
        float, typer.Option(help="Share of the texts that is held out, to measure the loss before and after")
    ] = 0.01,
    epochs: Annotated[int, typer.Option(help="Number of passes over the texts")] = 1,
    max_steps: Annotated[Optional[int], typer.Option(help="Number of steps, instead of epochs")] = None,
    batch_size: Annotated[int, typer.Option(help="Texts per step, shared by all GPUs")] = 32,
    learn_rate: Annotated[float, typer.Option(help="Highest learning rate")] = 5e-5,
    warmup: Annotated[float, typer.Option(help="Share of the steps in which the learning rate rises")] = 0.06,
    weight_decay: Annotated[float, typer.Option(help="Weight decay")] = 0.01,
    mask_rate: Annotated[float, typer.Option(help="Share of the pieces to predict")] = 0.15,
    train_head: Annotated[
        bool, typer.Option("--train-head", help="If the checkpoint has no masked-LM head, train a new one")
    ] = False,
    mixed_precision: Annotated[str, typer.Option(help="On a GPU: no, bf16 or fp16")] = "no",
    gpu_id: Annotated[int, typer.Option(help="GPU, or -1 for the CPU; torchrun gives each process its own")] = -1,
    seed: Seed = 0,
    save_steps: Annotated[
        int, typer.Option(help="Steps between checkpoints, from which a stopped run continues")
    ] = 500,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Do not remove them at the end (they contain pickles)")
    ] = False,
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    format: Annotated[Optional[str], typer.Option(help="Format of the inputs: jsonl, conll, text, spacy")] = None,
    sentences: Sentences = True,
) -> None:
    """Continue the masked-language-model training of an encoder on text of the domain.

    On several GPUs: torchrun --nproc-per-node 4 -m spacy_weakner encoder adapt ... --gpu-id 0"""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..encoder_tools.adapt import adapt

        report = adapt(**options, progress=True)
        if os.environ.get("RANK", "0") != "0":
            return  # torchrun: one process speaks for all
        if report.skipped:
            msg.info("This encoder was finished already; nothing was done")
        msg.good(f"{report.texts} texts", output_path)
        msg.info(f"Held out: {report.held_out} texts; in all {report.words} tokens, {report.pieces} pieces")
        if report.split:
            msg.info(f"Texts that were too long, and were split: {report.split}")
        resumed = f", from step {report.resumed} on" if report.resumed else ""
        msg.info(f"Steps: {report.steps}{resumed}, in {report.seconds:.0f} s")
        if report.new_head:
            msg.info("The head was trained from scratch")
        if report.perplexity_before is not None and report.perplexity_after is not None:
            msg.info(
                f"Held-out loss: {report.loss_before:.3f} before, {report.loss_after:.3f} after "
                f"(perplexity {report.perplexity_before:.1f}, {report.perplexity_after:.1f})"
            )
        else:
            msg.warn("No text was held out, so the loss is unknown")
