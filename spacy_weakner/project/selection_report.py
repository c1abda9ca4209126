"""The last step of a project: scores on test, and a report that begins with the selection."""

from pathlib import Path
from types import MappingProxyType
from typing import Any, List, Mapping, Optional, Union

from ..evaluation.compare import CandidateScores
from ..evaluation.plots import Plot, curve_plot, f1_plot
from ..evaluation.report import Section, report
from ..evaluation.tables import Table
from ..evaluation.tradeoff import tradeoff_table
from .mistakes import mistakes_table
from .overruled import overruled_table
from .selection import Selection


def evaluate_selection(
    selection: Selection,
    test: Optional[Path],
    output: Path,
    *,
    labels: Optional[Path] = None,
    more: Mapping[str, Union[Path, str]] = MappingProxyType({}),
    **settings: Any,
) -> List[CandidateScores]:
    """Score all candidates and `more` on test (None: there is none), which does not change the selection, and write a
    report. `labels` is a corpus of weak labels with gold. For the settings see `report`."""
    candidates = {**{candidate.name: candidate.path for candidate in selection.candidates}, **more}
    tested: Any = {} if test is None else {"test": test, "candidates": candidates}
    return report(
        Path(output),
        labels=labels,
        first=[selection_section(selection, has_test=test is not None)],
        selected=selection.best,
        **tested,
        **settings,
    )


def selection_section(selection: Selection, *, has_test: bool = False) -> Section:
    """Return the first section of a project's report: scores of the candidates, and what would help most next. On test,
    if there is one, the report shows precision and recall by threshold."""
    tables: List[Table] = []
    plots: List[Plot] = []
    if scores := selection.ranked():
        corpus = "dev" if selection.chosen_by == "dev" else "gold, by cross-validation"
        costs = selection.costs
        header = ["Candidate", "P", "R", "F1", "95 % interval", "difference from best", "95 % interval"]
        header += ["words per second", "MB"] if costs else []
        rows = []
        for row in scores.values():
            cells = [f"{row.name} (best)" if row.name == selection.best else row.name]
            cells += [*(f"{value:.1f}" for value in (row.p, row.r, row.f1)), row.bounds, "-", "-"]
            if (difference := row.difference) is not None:
                cells[-2:] = [f"{difference.f1:+.1f}", f"{difference.low:+.1f} to {difference.high:+.1f}"]
            rows.append([*cells, *costs.get(row.name, ())])
        tables.append(Table(f"Scores on {corpus}", header, rows))
        plots.append(f1_plot([*scores.values()]))
    if len(selection.curve) > 1:
        plots.append(curve_plot([(point["sentences"], point["f1"]) for point in selection.curve]))
    if selection.recommendations:
        rows = [[str(i), text] for i, text in enumerate(selection.recommendations, start=1)]
        tables.append(Table("What would help next", ["", "Recommendation"], rows, names=2))
    if selection.precision:
        tables.append(selection.precision.table())
    if selection.tradeoff and not has_test:
        tables.append(tradeoff_table(selection.best, selection.tradeoff))
    if selection.mistakes:
        tables.append(mistakes_table(selection.mistakes))
    if selection.overruled:
        tables.append(overruled_table(selection.overruled))
    if selection.notes:
        tables.append(Table("How the candidates were trained", ["Note"], [[note] for note in selection.notes]))
    return Section("Selection", "selection", selection.remarks(), plots, tables, selection.answer())
