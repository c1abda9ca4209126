"""`spacy weakner aggregate`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, Tuple

import typer
from wasabi import msg

from ._util import Policy, Ray, Seed, Sources, Workers, check_json, listing, reporting, show_shards, write_json

if TYPE_CHECKING:
    from ..aggregation.observations import SourceAccuracy

# With two, their agreement leaves open which of them is right where they differ.
_ENOUGH_SOURCES = 3


def aggregate_cli(
    input_path: Annotated[Path, typer.Argument(help="Labeled corpus: a .spacy file or a folder of them")],
    output_path: Annotated[Path, typer.Argument(help="A .spacy file, or a folder for shards")],
    method: Annotated[
        str,
        typer.Option(
            help="union: all that is proposed; majority: votes; weighted: votes that weigh as much as the source is "
            "accurate; label_model: learns from agreement alone how good each source is"
        ),
    ] = "union",
    policy: Policy = None,
    source: Sources = None,
    unmatched: Annotated[
        Optional[str],
        typer.Option(
            help="What other tokens become: missing (default of union), outside, or confident (default of the other "
            "methods): outside if that is probable enough, else missing"
        ),
    ] = None,
    min_probability: Annotated[float, typer.Option(help="Least probability of O for confident")] = 0.9,
    soft: Annotated[
        Optional[bool],
        typer.Option("--soft/--no-soft", help="Write the distributions as soft labels (default: those of label_model)"),
    ] = None,
    gold: Annotated[
        Optional[Path],
        typer.Option(
            help="For weighted: gold corpus with labels of the same sources (default: gold documents of the corpus)"
        ),
    ] = None,
    fit_on: Annotated[
        Optional[Path],
        typer.Option(help="Labelled text that label_model is fitted on, as for dev and test (default: the input)"),
    ] = None,
    max_docs: Annotated[int, typer.Option(help="Most documents to fit the label model on")] = 50_000,
    seed: Seed = 0,
    model_output: Annotated[
        Optional[Path], typer.Option(help="Write the fitted weights or label model to this JSON file")
    ] = None,
    workers: Workers = 1,
    ray: Ray = None,
    report_output: Annotated[
        Optional[Path],
        typer.Option("--report", help="Write a report of the sources and their answers to this JSON file"),
    ] = None,
    if_answered: Annotated[
        bool, typer.Option("--if-answered", help="Write nothing, and remove earlier output, if a source has no answers")
    ] = False,
) -> None:
    """Combine the weak labels of a corpus into doc.ents; gold moves to the span group 'gold'."""
    options = dict(locals())
    with reporting():
        from ..labeling.aggregate import aggregate
        from ..scores import as_json

        inputs = [path for path in (input_path, gold, fit_on) if path is not None]
        check_json(report_output, inputs)
        del options["report_output"], options["if_answered"]
        options["sources"] = options.pop("source") or None
        report = aggregate(**options, progress=True)
        if if_answered and report.unanswered:
            _remove(output_path)
            msg.warn(
                f"Sources without any answer here: {', '.join(report.unanswered)}. These labels would not be "
                "those of all sources, so they are not kept"
            )
            return
        msg.good(f"{report.docs} documents", output_path)
        msg.info(f"Entities: {listing(report.entities)} from {report.candidates} candidates")
        msg.info(f"Tokens about which nothing is known: {report.missing} of {report.tokens}")
        if report.source_accuracies:
            how = f"by {report.iterations} iterations on" if report.iterations else "by gold of"
            learned = f"{how} {report.fitted_docs} documents" if report.fitted_docs else "as declared"
            msg.info(f"How good the sources seem, {learned}:")
            rows = [_row(accuracy) for accuracy in report.source_accuracies]
            msg.table(
                rows, header=("source", "label", "precision", "recall"), divider=True, aligns=("l", "l", "r", "r")
            )
            if not all(accuracy.identified for accuracy in report.source_accuracies):
                msg.info(
                    "*: no other source gives this label, so nothing tells how good it is: what was assumed before"
                )
        n_sources = len({accuracy.source for accuracy in report.source_accuracies})
        if method == "label_model" and 0 < n_sources < _ENOUGH_SOURCES:
            msg.warn(
                "The label model needs at least three sources that err apart to learn whom to trust, and has only "
                f"{n_sources}"
            )
        if not report.converged:
            msg.warn("The label model has not quite converged; its result can be used")
        if report.gold:
            msg.info(f"Gold moved to the span group 'gold': {report.gold} documents")
        if report.unlabeled:
            msg.warn(f"Documents that no source has looked at: {report.unlabeled}")
        if report.unanswered:
            names = ", ".join(report.unanswered)
            msg.warn(
                f"Sources without any answer here: {names} (0 of {report.docs} documents). Do not compare these labels "
                "with others that have their answers"
            )
        show_shards(report.skipped, report.replaced)
        if report_output is not None:
            write_json(report_output, as_json(report))
            msg.good("Report", report_output)


def _row(accuracy: "SourceAccuracy") -> Tuple[str, ...]:
    mark = "" if accuracy.identified else " *"
    return (accuracy.source, accuracy.label, _percent(accuracy.precision) + mark, _percent(accuracy.recall) + mark)


def _percent(share: Optional[float]) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def _remove(output: Path) -> None:
    """Remove the corpus that was just written, with its receipts."""
    from ..corpus.docbin import corpus_files, receipt_path

    for path in corpus_files(output):
        path.unlink()
        receipt_path(path).unlink(missing_ok=True)
