"""`spacy weakner relabel augment`"""

from typing import Annotated

import typer
from wasabi import msg

from ._util import Corpus, Gpu, Ray, SameShards, Seed, Workers, reporting, show_shards


def augment_cli(
    input_path: Corpus,
    output_path: SameShards,
    model: Annotated[
        str, typer.Option(help="Encoder with a masked-LM head: a Hugging Face folder or name; none: copy the corpus")
    ],
    mask_rate: Annotated[float, typer.Option(help="Probability of a word to be masked")] = 0.15,
    top_k: Annotated[int, typer.Option(help="Number of the best predictions to draw from")] = 5,
    masked_only: Annotated[
        bool, typer.Option("--masked-only", help="Replace words only where they were masked")
    ] = False,
    batch_size: Annotated[int, typer.Option(help="Most sentences in a batch")] = 32,
    gpu_id: Gpu = -1,
    seed: Seed = 0,
    workers: Workers = 1,
    ray: Ray = None,
) -> None:
    """Write a second form of each sentence, in which a masked language model replaces words."""
    options = dict(locals())  # what the command takes is what the function takes
    with reporting():
        from ..relabel.augment import augment

        report = augment(**options, progress=True)
        msg.good(f"{report.docs} documents", output_path)
        if report.augmented:
            share = 100 * report.substituted / max(1, report.words)
            msg.info(
                f"Words: {report.words}; replaced: {report.substituted} ({share:.1f} %); in {report.seconds:.0f} s"
            )
            msg.info(f"Predictions that were refused, so that the word stays: {report.refused}")
            if report.cut:
                msg.info(f"Documents that were too long, and were read in parts: {report.cut}")
        else:
            msg.warn("No masked language model: nothing is augmented")
        show_shards(report.skipped, report.replaced)
