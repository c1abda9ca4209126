"""`spacy weakner fit`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from wasabi import msg

from ._util import reporting
from .prepare import given

if TYPE_CHECKING:
    from ..project.verdict import Verdict


def fit_cli(
    corpora: Annotated[Path, typer.Argument(help="Folder that 'prepare' and 'label' have filled")],
    output: Annotated[Path, typer.Argument(help="Folder for the pipelines and verdict.json")],
    configs: Annotated[Path, typer.Option(help="Folder of the configs, RECIPE.cfg each (see 'init config')")],
    terms: Annotated[Optional[str], typer.Option(help="Term list that has labelled the text")] = None,
    sources: Annotated[Optional[str], typer.Option(help="Or the file that declares the sources")] = None,
    size: Annotated[str, typer.Option(help="Size of the encoder in the configs")] = "cnn",
    lang: Annotated[str, typer.Option(help="Language of the text")] = "en",
    tokenizer: Annotated[Optional[str], typer.Option(help="Name of a registered tokenizer")] = None,
    minutes: Annotated[float, typer.Option(help="No training takes longer than about this")] = 10.0,
    max_steps: Annotated[
        Optional[int], typer.Option(help="Updates of every training (default: from the size of the corpora)")
    ] = None,
    strong_share: Annotated[
        Optional[float], typer.Option(help="Share of gold in the mix with weak labels (default: from their quality)")
    ] = None,
    negative_rate: Annotated[
        Optional[float], typer.Option(help="Share of unknown tokens taken as 'O' (default: from the labels' recall)")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all trainings and splits")] = 0,
    processes: Annotated[int, typer.Option(help="How many pipelines are trained at a time")] = 1,
    gpu_id: Annotated[int, typer.Option(help="-1 is the CPU")] = -1,
) -> None:
    """Train what makes sense for what there is, compare it with the term list, and choose."""
    with reporting():
        from ..project.fit import VERDICT, fit

        verdict = fit(
            corpora,
            output,
            configs=configs,
            terms=given(terms),
            sources=given(sources),
            size=size,
            lang=lang,
            tokenizer=tokenizer,
            minutes=minutes,
            max_steps=max_steps,
            strong_share=strong_share,
            negative_rate=negative_rate,
            seed=seed,
            processes=processes,
            gpu_id=gpu_id,
            progress=True,
            say=lambda text: msg.info(text[0].upper() + text[1:]),
        )
        _show(verdict)
        msg.good("Verdict", output / VERDICT)


def _show(verdict: "Verdict") -> None:
    rows = [
        (each.name, *(f"{each.scores[key]:.1f}" for key in ("p", "r", "f1")), _interval(each.scores))
        for each in verdict.contenders
        if each.scores is not None
    ]
    if rows:
        on = "dev" if verdict.chosen_by == "dev" else "gold"
        msg.table(rows, header=(f"on {on}", "P", "R", "F1", "F1 95 %"), divider=True, aligns=("l", *"r" * 4))
    for line in verdict.lines():
        msg.info(line)


def _interval(scores: dict) -> str:
    interval = scores.get("interval")
    return f"{interval['low']:.1f} to {interval['high']:.1f}" if interval else "-"
