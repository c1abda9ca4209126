"""`spacy weakner analyze`"""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any, List, Optional, Union

import typer

from ..evaluation import analyze as audit
from ..evaluation.analyze import Analysis
from ..evaluation.compare import other_names
from ..evaluation.tables import Table, analysis_tables, term_tables
from ..evaluation.terms import analysis as terms
from ..evaluation.terms.results import TermAnalysis
from ..labeling.aggregate import aggregate
from ..scores import as_json
from ._command import command
from ._util import echo, new_app, only_with, say, shared, show_table, write_json

app = new_app()
_OF_TERMS = ("method", "policy", "fit_on")


def analyze(corpus: Path, *, worst_terms: bool = False, **settings: Any) -> Union[Analysis, TermAnalysis]:
    """Analyze weak labels: coverage, conflicts between sources and, where there is gold, errors. With --worst-terms,
    score the combined sources on gold, and list the worst terms.

    corpus (Path): Labeled corpus: a .spacy file or a folder of them.
    worst_terms (bool): Score the combined sources on the gold in CORPUS, and list the worst terms.
    """
    unused = ("gold",) if worst_terms else _OF_TERMS
    settings = {name: value for name, value in settings.items() if name not in unused}
    return terms.analyze_terms(corpus, **settings) if worst_terms else audit.analyze(corpus, progress=True, **settings)


def _check(given: Any) -> None:
    only_with(given.ctx, {"worst_terms": _OF_TERMS, "": ["gold"]})


@command(
    app,
    analyze,
    settings={audit.analyze: ("gold", "sources"), aggregate: _OF_TERMS},
    before=_check,
    writes=["output"],
    sources=Annotated[
        Optional[List[str]],
        typer.Option(
            "--source",
            help="Source to analyze: a name, 'ents' or 'pred:PIPE' (repeatable; default: all). With --worst-terms: "
            "names of sources, the most trusted first",
        ),
    ],
    gold=Annotated[Optional[Path], typer.Option(help="Gold for the same sentences (default: the gold in CORPUS)")],
    fit_on=Annotated[
        Optional[Path], typer.Option(help="For the method label_model: labeled text to fit it on (default: CORPUS)")
    ],
    output=Annotated[Optional[Path], shared("output")],
)
def show(result: Union[Analysis, TermAnalysis], given: Any) -> None:
    if isinstance(result, TermAnalysis):
        _show_terms(result)
    else:
        _show_analysis(result)
    if given.output is not None:
        write_json(given.output, result.to_json() if isinstance(result, TermAnalysis) else as_json(result))
        say("good", "Results", given.output)


def _show_analysis(analysis: Analysis) -> None:
    say("info", f"{analysis.docs} documents, {analysis.tokens} tokens")
    if analysis.unlabeled:
        say("warning", f"Documents without labels from these sources: {analysis.unlabeled}")
    for table in analysis_tables(analysis):
        _print(table)
    for source in analysis.sources:
        if source.gold is not None:
            counts = {label: scores.exact for label, scores in source.gold.per_label.items()}
            remark, names = other_names(source.name, counts, "the gold")
            if remark:
                in_gold = shlex.quote("=".join(reversed(names)))
                cure = f"rename those of the source (in the sources file: labels = {json.dumps(dict([names]))})"
                say("warning", f"{remark}{cure}, or of the gold (convert --map {in_gold})")
    if analysis.gold is None:
        say("warning", "The corpus has no gold, so errors are not counted.")


def _print(table: Table) -> None:
    typer.echo()
    echo(table.title)
    show_table(table.header, table.rows, table.names)
    if table.note:
        echo(table.note)
        typer.echo()


def _show_terms(result: TermAnalysis) -> None:
    scores, *others = term_tables(result)
    _print(scores)
    for table in others:
        _print(table)
    for warning in result.warnings:
        say("warning", warning.text)
    if not result.warnings:
        say("good", "No problems found")
