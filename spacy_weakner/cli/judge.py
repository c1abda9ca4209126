"""`spacy weakner judge`"""

from pathlib import Path
from typing import Annotated, Optional

import typer
from wasabi import msg

from ._util import Policy, Sources, check_json, reporting, show_table, write_json


def judge_cli(
    labelled: Annotated[
        Path, typer.Argument(help="Gold corpus that 'label' has labelled: a .spacy file or a folder of them")
    ],
    output: Annotated[Optional[Path], typer.Option(help="Write the figures to this JSON file")] = None,
    method: Annotated[
        str, typer.Option(help="How sources are combined, as in 'aggregate': union, majority, weighted or label_model")
    ] = "union",
    policy: Policy = None,
    source: Sources = None,
    fit_on: Annotated[
        Optional[Path], typer.Option(help="For label_model: labelled text to fit it on (default: this corpus)")
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of the texts")] = "en",
    bootstrap: Annotated[int, typer.Option(help="Number of resampled test sets for confidence intervals")] = 1000,
    top: Annotated[int, typer.Option(help="Number of worst terms to list")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the resampling and the folds")] = 0,
) -> None:
    """Measure weak labels on gold, name their worst terms, and propose better settings for term lists."""
    options = dict(locals())
    with reporting():
        from ..quality.judge import judge
        from ..quality.judging.tables import as_config, as_options, proposal_table, score_table, term_table

        check_json(output, [labelled, *([] if fit_on is None else [fit_on])])
        del options["output"]
        options["sources"] = options.pop("source") or None
        result = judge(**options, progress=True)
        msg.divider(f"Weak labels on {result.scores.docs} of {result.docs} gold documents")
        header, cells = score_table(result)
        show_table(header, cells)
        if result.scores.counts.fp:
            kinds = {"borders": "wrong borders", "label": "wrong label", "nothing": "nothing there"}
            shares = (
                f"{name} {100 * result.errors[key] / result.scores.counts.fp:.0f} %" for key, name in kinds.items()
            )
            msg.info(f"False matches: {', '.join(shares)}")
        if result.worst_terms:
            msg.divider("Worst terms")
            header, cells = term_table(result)
            msg.table(cells, header=header, divider=True, aligns=("l", "l", "l", "r", "r", "l"))
        for proposal in result.proposals:
            msg.divider(f"Proposal for '{proposal.source}'")
            header, cells = proposal_table(proposal)
            show_table(header, cells)
            gain = proposal.difference
            bounds = f"{gain.low:+.1f} to {gain.high:+.1f}"
            msg.info(f"F1 {gain.f1:+.1f} ({bounds}), on sentences that did not choose the settings")
            # Not by wasabi, which breaks lines: these are for pasting.
            msg.info("Settings to add to those that this source has:")
            settings = as_options(proposal)
            if settings is not None:
                typer.echo(f"spacy weakner label ... {settings}\n")
            typer.echo(f"{as_config(proposal)}\n")
        for warning in result.warnings:
            msg.warn(warning.text)
        if not result.warnings:
            msg.good("Nothing speaks against training on these labels")
        if output is not None:
            write_json(output, result.to_json())
            msg.good("Figures", output)
