"""`spacy weakner analyze`"""

from pathlib import Path
from typing import Annotated, Any, List, Optional

import typer
from wasabi import msg

from ..evaluation.analyze import Analysis, analyze
from ..evaluation.tables import Table, analysis_tables, proposal_table, tuning_tables
from ..evaluation.terms import tuning
from ..evaluation.terms.tuning import Tuning
from ..scores import as_json
from ._util import (
    check_json,
    new_app,
    only_with,
    reporting,
    say,
    shared,
    show_table,
    write_json,
)

app = new_app()


@app.command("analyze")
def analyze_cli(
    ctx: typer.Context,
    corpus: Annotated[Path, typer.Argument(help="Labeled corpus: a .spacy file or a folder of them")],
    gold: Annotated[
        Optional[Path], typer.Option(help="Corpus with gold for the same sentences (default: the gold in CORPUS)")
    ] = None,
    source: Annotated[
        Optional[List[str]],
        typer.Option(
            help="Source to analyze: a name, 'ents' or 'pred:PIPE' (repeatable; default: all). For --tune-terms: "
            "names, the most trusted first"
        ),
    ] = None,
    tune_terms: Annotated[
        bool,
        typer.Option(
            "--tune-terms",
            help="Score the combined sources on the gold in CORPUS, list the worst terms, and propose better settings "
            "for term lists",
        ),
    ] = False,
    method: Annotated[
        str, typer.Option(help="How sources are combined, as in 'aggregate': union, majority, weighted or label_model")
    ] = "union",
    policy: Annotated[
        Optional[str], typer.Option(help="For conflicts in a union: longest (default), priority, agreement or drop")
    ] = None,
    fit_on: Annotated[
        Optional[Path], typer.Option(help="For label_model: labeled text to fit it on (default: CORPUS)")
    ] = None,
    top: Annotated[int, typer.Option(help="Number of phrases in the lists of frequent errors")] = 10,
    bootstrap: Annotated[int, shared("bootstrap")] = 1000,
    seed: Annotated[int, shared("resampling_seed")] = 0,
    output: Annotated[Optional[Path], shared("output")] = None,
) -> None:
    """Analyze weak labels: coverage, conflicts between sources and, where gold is known, their errors. With
    --tune-terms, measure on gold what the sources are worth together, and tune term lists."""
    with reporting():
        only_with(ctx, {"tune_terms": ["method", "policy", "fit_on", "bootstrap", "seed"], "": ["gold"]})
        inputs = [path for path in (corpus, gold, fit_on) if path is not None]
        check_json(output, inputs)
        result: Any
        if tune_terms:
            how: Any = {"method": method, "policy": policy, "sources": source or None, "fit_on": fit_on}
            result = tuning.tune_terms(corpus, bootstrap=bootstrap, top=top, seed=seed, progress=True, **how)
            _show_tuning(result)
        else:
            result = analyze(corpus, gold=gold, sources=source or None, top=top, progress=True)
            _show_analysis(result)
        if output is not None:
            write_json(output, result.to_json() if tune_terms else as_json(result))
            say("good", "Figures", output)


def _show_analysis(analysis: Analysis) -> None:
    msg.info(f"{analysis.docs} documents, {analysis.tokens} tokens")
    if analysis.unlabeled:
        msg.warn(f"Documents without labels of any source: {analysis.unlabeled}")
    for table in analysis_tables(analysis):
        _print(table)
    if analysis.gold is None:
        msg.warn("No gold is known here, so errors are not counted.")


def _print(table: Table) -> None:
    typer.echo(f"\n{table.title}")
    show_table(table.header, table.rows, table.names)
    if table.note:
        typer.echo(f"{table.note}\n")


def _show_tuning(result: Tuning) -> None:
    scores, *others = tuning_tables(result)
    _print(scores)
    for table in others:
        _print(table)
    for proposal in result.proposals:
        _print(proposal_table(proposal))
        # Not by wasabi, which breaks lines: these are for pasting.
        msg.info("Settings to add to those of this source:")
        typer.echo(f"{proposal.config()}\n")
    for warning in result.warnings:
        msg.warn(warning.text)
    if not result.warnings:
        msg.good("No problems found")
