"""`spacy weakner fit`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ._util import AUTO, Gpu, Lang, Processes, Seed, Tokenizer, given, number, reporting, say, show_table

if TYPE_CHECKING:
    from ..project.selection import Selection


def fit_cli(
    corpora: Annotated[Path, typer.Argument(help="Folder that 'prepare' and 'label' have filled")],
    output: Annotated[Path, typer.Argument(help="Folder for the pipelines and selection.json")],
    configs: Annotated[Path, typer.Option(help="Folder of the configs, SIZE/RECIPE.cfg each (see 'init config')")],
    terms: Annotated[Optional[str], typer.Option(help="Term list that labeled the text")] = None,
    sources: Annotated[Optional[str], typer.Option(help="File that declares the sources")] = None,
    size: Annotated[str, typer.Option(help="Encoder: linear, linear-static, transformer or gpu")] = "linear",
    lang: Lang = "en",
    tokenizer: Tokenizer = None,
    minutes: Annotated[float, typer.Option(help="Most minutes of each training, roughly")] = 10.0,
    max_steps: Annotated[str, typer.Option(help="Updates of each training; auto: from the size of the corpora")] = AUTO,
    negative_rate: Annotated[
        str, typer.Option(help="Share of the unknown tokens taken as 'O'; auto: from the recall of the labels")
    ] = AUTO,
    prefer: Annotated[
        str, typer.Option(help="f1: the combination; speed: the best of lists and single heads, many times as fast")
    ] = "f1",
    seed: Seed = 0,
    processes: Processes = 1,
    gpu_id: Gpu = -1,
) -> None:
    """Train candidates, compare them with the term list, and select the best."""
    options = dict(locals())
    with reporting():
        from ..project.fit import SELECTION, fit

        options.update(
            terms=given(terms),
            sources=given(sources),
            max_steps=number("max-steps", max_steps, int),
            negative_rate=number("negative-rate", negative_rate, float),
        )
        selection = fit(**options, progress=True, say=lambda text: say("info", text[0].upper() + text[1:]))
        _show(selection)
        say("good", "Selection", output / SELECTION)


def _show(selection: "Selection") -> None:
    """One table, the best first; then why, and what to do next."""
    rows = [
        (each.name, *(f"{value:.1f}" for value in (scores.p, scores.r, scores.f1)), scores.bounds)
        for each in selection.ranked()
        if (scores := each.scores)
    ]
    if rows:
        corpus = "dev" if selection.chosen_by == "dev" else "gold"
        show_table((f"on {corpus}", "P", "R", "F1", "F1 95 %"), rows)
    for heading, text in selection.answer():
        say("info", f"{heading}: {text}")
    for rule in selection.left_out:
        say("info", f"'{rule.name}' was not trained: {rule.why}.")
