"""`spacy weakner evaluate`"""

from pathlib import Path
from typing import Annotated, Any, Dict, List, Optional, Sequence

from ..evaluation.candidates import ignored_source, parse_candidates, split_source
from ..evaluation.compare import CandidateScores, compare, label_remarks
from ..evaluation.report import report
from ..evaluation.tables import comparison_table
from ..project.selection import Selection
from ..project.selection_report import evaluate_selection
from ..runs.provenance import completion_rules, read_variables, with_provenance
from ._command import command
from ._util import new_app, only_with, parse_names, say, shared, show_remarks, show_table, write_json

app = new_app()
_TEST = "test"


def evaluate(
    test: Path,
    candidates: Sequence[str] = (),
    *,
    optional: Sequence[str] = (),
    selection: Optional[Path] = None,
    html: Optional[Path] = None,
    labels: Optional[Path] = None,
    map: Sequence[str] = (),
    title: str = "Report",
    variables: Optional[Path] = None,
    **settings: Any,
) -> List[CandidateScores]:
    """Score pipelines and labels on one test set, in one table. With --html, write a report with plots and errors.

    test (Path): Gold corpus: a .spacy file or a folder of them.
    candidates (Sequence[str]): NAME=PATH, or PATH: a pipeline, or a .spacy corpus of the test sentences with labels.
        NAME=PATH#SOURCE: the span group 'weak:SOURCE' of either, instead of its entities.
    optional (Sequence[str]): NAME=PATH: an additional candidate, left out if it does not exist. 'test': with
        --selection, the test set may be missing.
    selection (Optional[Path]): selection.json of 'fit': score its candidates, and open the report with this selection.
    html (Optional[Path]): Write a report to this HTML file.
    labels (Optional[Path]): Corpus of weak labels to analyze in the report.
    map (Sequence[str]): LABEL=NAME: a label of the candidates, and its name in the test set.
    title (str): Title of the report.
    variables (Optional[Path]): JSON file of the workflow's variables, to store with --output.
    """
    settings["names"] = parse_names(map)
    may_miss = _TEST in optional and not Path(test).exists()
    optional = [candidate for candidate in optional if candidate != _TEST]
    given = parse_candidates([*optional, *candidates])
    for name in parse_candidates(optional):
        if not split_source(given[name])[0].exists():
            say("info", f"Left out: '{name}', because {given.pop(name)} does not exist")
    settings["progress"] = True
    if html is None:
        return compare(test, given, **settings)
    settings.pop("spans_key", None)  # refused beside --html
    if selection is None:
        return report(html, test=test, candidates=given, labels=labels, title=title, **settings)
    settings.update(labels=labels, more=given, title=title)
    return evaluate_selection(Selection.load(selection), None if may_miss else test, html, **settings)


def _named(given: Any) -> Dict[str, str]:
    """Return the candidates on the command line, by name."""
    return parse_candidates([*(x for x in given.optional or () if x != _TEST), *(given.candidates or ())])


def _paths(given: Any) -> Dict[str, Path]:
    selected = Selection.load(given.selection).candidates if given.selection else ()
    return {
        **{one.name: Path(one.path) for one in selected},
        **{n: split_source(p)[0] for n, p in _named(given).items()},
    }


def _warn_of_ignored(given: Any) -> None:
    if given.spans_key:
        return
    for name, path in _named(given).items():
        source = ignored_source(path) if split_source(path)[0].exists() else None
        if source is not None:
            text = f"'{name}': the labels in doc.ents were scored, which may be gold. Those of a source: PATH#{source}"
            say("warning", text)


def _check(given: Any) -> None:
    read_variables(given.variables)
    only_with(given.ctx, {"html": ["selection", "labels", "title"], "spans_key": [], "": []})
    parse_names(given.map or ())
    given.read = [split_source(path)[0] for path in _named(given).values()]


@command(
    app,
    evaluate,
    settings={compare: ("bootstrap", "baseline", "spans_key", "gpu_id")},
    before=_check,
    writes=["output", "html"],
    output=Annotated[Optional[Path], shared("output")],
)
def show(rows: List[CandidateScores], given: Any) -> None:
    output: Optional[Path] = given.output
    if rows:
        selected = Selection.load(given.selection).best if given.selection else given.baseline
        table = comparison_table(rows, selected)
        show_table(table.header, table.rows)
        show_remarks(label_remarks(rows))
        _warn_of_ignored(given)
    else:
        only = (
            ", and further candidates are scored on test only" if given.optional != [_TEST] or given.candidates else ""
        )
        say("info", f"{given.test} does not exist: the report shows the sentences that the selection is based on{only}")
    if output is not None:
        stored = [{**row.model_dump(), "sentences": row.sentences} for row in rows]
        written = with_provenance(stored, _paths(given), test=given.test if rows else None, variables=given.variables)
        write_json(output, written)
        for remark in completion_rules(written):
            say("info", remark)
        say("good", "Scores", output)
    if given.html is not None:
        say("good", "Report", given.html)
