"""`spacy weakner aggregate`"""

from typing import Annotated, Any, List, Optional

import typer

from ..corpus.weak import SPANS_KEY
from ..labeling.aggregate import UNION, AggregateReport, aggregate
from ._command import command
from ._util import listing, new_app, say, show_shards, show_table

app = new_app()
# The agreement of two sources does not show which one is right where they differ.
_ENOUGH_SOURCES = 3


@command(
    app,
    aggregate,
    without=["min_probability"],
    sources=Annotated[Optional[List[str]], typer.Option("--source")],
)
def show(report: AggregateReport, given: Any) -> None:
    if not report.docs:
        names = f"Sources without answers for this corpus: {', '.join(report.unanswered)}"
        what = names if report.unanswered else "No source has answers for this corpus"
        say("warning", f"{what}. So the combined labels are not kept")
        return
    say("good", f"{report.docs} documents", given.output_path)
    sources = ", ".join(f"{name} {n}" for name, n in report.answers.items())
    say("info", f"Documents that each source has labeled: {sources}")
    say("info", f"Entities: {listing(report.entities)} from {report.candidates} candidates")
    if given.nested:
        say("info", f"Spans in doc.spans['{SPANS_KEY}'], with overlapping ones: {report.nested}")
    say("info", f"Tokens without a known label (missing): {report.missing} of {report.tokens}")
    if report.source_accuracies:
        how = f"{report.iterations} iterations on" if report.iterations else "the gold of"
        learned = f"{how} {report.fitted_docs} documents" if report.fitted_docs else "as declared"
        say("info", f"Estimated quality of the sources ({learned}):")
        rows = []
        for one in report.source_accuracies:
            precision, recall = ("-" if x is None else f"{100 * x:.1f}" for x in (one.precision, one.recall))
            mark = "" if one.identified else " *"
            rows.append((one.source, one.label, precision + mark, recall + mark))
        show_table(("source", "label", "precision", "recall"), rows, 2)
        if not all(accuracy.identified for accuracy in report.source_accuracies):
            say("info", "*: no other source gives this label, so this is the value assumed beforehand, not an estimate")
    if given.method == UNION and len(report.answers) > 1 and (given.gold or len(report.answers) >= _ENOUGH_SOURCES):
        other = "With gold that they label, too, '--method weighted'" if given.gold else "'--method label_model'"
        say("info", f"All sources count alike. {other} (in a project: 'method') estimates how good each is")
    n_sources = len({accuracy.source for accuracy in report.source_accuracies})
    if given.method == "label_model" and 0 < n_sources < _ENOUGH_SOURCES:
        needed = "at least three sources with independent errors to estimate which of them are reliable"
        say("warning", f"The label model needs {needed}, but it has only {n_sources}")
    if not report.converged:
        say("warning", "The label model has not fully converged, but its result can be used")
    if report.gold:
        say("info", f"Gold moved to the span group 'gold': {report.gold} documents")
    if report.unlabeled:
        say("warning", f"Documents that no source has labeled: {report.unlabeled}")
    if report.unanswered:
        names = f"{', '.join(report.unanswered)} (0 of {report.docs} documents)"
        cure = "Do not compare these labels with labels that include these sources"
        say("warning", f"Sources without answers for this corpus: {names}. {cure}")
    show_shards(report.skipped, report.replaced)
