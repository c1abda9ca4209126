"""The last step of a project: scores on test, and a report that begins with the package."""

from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Union

import spacy

from ..about import __title__, __version__
from ..evaluation.compare import CandidateScores
from ..evaluation.plots import curve_plot, f1_plot
from ..evaluation.report import F1, ReportPage, ReportParts, Section, report
from ..evaluation.tables import Table, comparison_table
from ..evaluation.tradeoff import tradeoff_table
from .mistakes import mistakes_table
from .overruled import overruled_table
from .previous import has_seen
from .selection import PREVIOUS, Selection


def evaluate_selection(
    selection: Selection,
    test: Optional[Path],
    output: Path,
    *,
    labels: Optional[Path] = None,
    more: Mapping[str, Union[Path, str]] = MappingProxyType({}),
    baseline: Optional[str] = None,
    **settings: Any,
) -> List[CandidateScores]:
    """Score all candidates and `more` on test (None: there is none), which does not change the selection, and write a
    report. Without test, the package is shown on the sentences that it was selected by. `labels` is a corpus of weak
    labels with gold. For the settings see `report`."""
    scored: Any = {}
    if test is not None:
        paths: Dict[str, Union[Path, str]] = {other.name: other.path for other in selection.candidates}
        if PREVIOUS in paths and has_seen(Path(paths[PREVIOUS]), test, Path(selection.selected.path)):
            del paths[PREVIOUS]
        scored = {"test": test, "candidates": {**paths, **more}}
    elif selection.corpus is not None:
        predicted = {
            other.name: other.predicted or other.path
            for other in selection.candidates
            if other.name != PREVIOUS or other.predicted  # else it was trained on some of the sentences
        }
        scored = {"test": Path(selection.corpus), "candidates": predicted}
    rows = report(
        Path(output),
        labels=labels,
        compose=lambda parts: compose_report(selection, parts, has_test=test is not None),
        selected=selection.best,
        baseline=baseline or (selection.best if scored else None),
        **scored,
        **settings,
    )
    return [] if test is None else rows


def compose_report(selection: Selection, parts: ReportParts, *, has_test: bool) -> ReportPage:
    """Compose the report of a project: the answer, and the sections in their order."""
    answer = selection.answer({row.name: row for row in parts.rows} if has_test else {})
    selected = [("Packaged", text) if heading == "Selected" else (heading, text) for heading, text in answer]
    sections = [
        *parts.selected,
        *(parts.candidates if has_test else ()),
        selection_section(selection),
        training_section(selection, has_test=has_test),
        *parts.labels,
        *parts.errors,
    ]
    return ReportPage(selected, [F1, made_from(selection)], sections)


def selection_section(selection: Selection) -> Section:
    """Return the section with the scores that the package was selected by."""
    corpus = "on dev" if selection.chosen_by == "dev" else "in cross-validation of the gold"
    scores, costs = [*selection.ranked().values()], selection.costs
    tables = [comparison_table(scores, selection.best, f"Scores {corpus}")] if scores else []
    if costs:
        rows = [[name, *costs[name]] for name in [*selection.ranked()] if name in costs]
        tables.append(Table("Speed and size", ["Candidate", "words per second", "MB"], rows))
    plots = [f1_plot(scores)] if scores else []
    if len(selection.curve) > 1:
        plots.append(curve_plot([(point["sentences"], point["f1"]) for point in selection.curve]))
    return Section("How it was selected", "selection", selection.remarks(), plots, tables)


def training_section(selection: Selection, *, has_test: bool = False) -> Section:
    """Return the section with what would help next, and how the candidates were trained."""
    tables = []
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
    return Section("Training", "training", tables=tables)


def made_from(selection: Selection) -> str:
    """Return a sentence with the date, the sizes of the data, and the versions."""
    facts = selection.facts
    sizes: Dict[str, int] = {"gold sentences": facts.gold, "dev sentences": facts.dev, "texts": facts.text}
    data = ", ".join(f"{n:,} {what}" for what, n in sizes.items() if n)
    return f"{date.today()}; {data}; spaCy {spacy.__version__}, {__title__} {__version__}."
