"""The end of a project: scores on test, once, and a report that opens with the verdict."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Union

from ..evaluation.bootstrap import Difference, Interval
from ..evaluation.compare import SAMPLES, Comparison
from ..evaluation.plots import Plot, curve_plot, f1_plot
from ..evaluation.report import Section, report
from ..evaluation.tables import Table
from ..files import parse_json
from ..scores import Accuracy, Counts
from .layout import has_docs, reading
from .verdict import Contender, Verdict


def conclude(
    verdict: Verdict,
    test: Path,
    output: Path,
    *,
    labels: Optional[Path] = None,
    more: Optional[Mapping[str, Union[Path, str]]] = None,
    title: str = "Report",
    bootstrap: int = SAMPLES,
    baseline: Optional[str] = None,
    seed: int = 0,
    gpu_id: int = -1,
    progress: bool = False,
) -> List[Comparison]:
    """Score all candidates on test, if there is one, and write the report.

    verdict (Verdict): The verdict. It was made without test, and test does not change it.
    test (Path): Gold corpus; may be missing.
    output (Path): The HTML file.
    labels (Optional[Path]): Corpus of weak labels, with gold; may be missing.
    more (Optional[Mapping[str, Union[Path, str]]]): Further candidates, see `compare`.
    title (str): Title of the report.
    bootstrap, baseline, seed, gpu_id: See `compare`.
    progress (bool): Show bars.
    RETURNS (List[Comparison]): The scores on test; empty without test.
    RAISES (WeaknerError): For what `report` raises.
    """
    is_tested = has_docs(Path(test))
    candidates = {each.name: each.path for each in verdict.contenders}
    return report(
        Path(output),
        test=test if is_tested else None,
        candidates={**candidates, **(more or {})} if is_tested else None,
        labels=labels if labels is not None and has_docs(Path(labels)) else None,
        first=[verdict_section(verdict)],
        title=title,
        bootstrap=bootstrap,
        baseline=baseline,
        seed=seed,
        gpu_id=gpu_id,
        progress=progress,
    )


def read_scores(path: Optional[Path]) -> Dict[str, Dict[str, Any]]:
    """Scores on test by candidate, as `evaluate` has written them; empty if there are none.

    RAISES (WeaknerError): If the file is damaged.
    """
    if path is None or not Path(path).exists():
        return {}
    with reading(path, "evaluate"):
        return {str(row["name"]): row for row in parse_json(Path(path).read_bytes())}


def verdict_section(verdict: Verdict) -> Section:
    """The part of a report that it opens with.

    verdict (Verdict): The verdict.
    RETURNS (Section): Which candidate won and why, and what would help most next.
    """
    lines = [
        *verdict.lines(),
        *(f"What would help next, {i}: {text}" for i, text in enumerate(verdict.advice, start=1)),
    ]
    rows = [_row(each) for each in verdict.ranked()]
    where = "dev" if verdict.chosen_by == "dev" else "gold, by cross-validation"
    tables = []
    plots: List[Plot] = []
    if rows:
        cells = [
            [
                f"{row.name} (the winner)" if row.name == verdict.winner else row.name,
                *(f"{x:.1f}" for x in (row.counts.precision, row.counts.recall, row.counts.f1)),
                "-" if row.interval is None else f"{row.interval.low:.1f} to {row.interval.high:.1f}",
            ]
            for row in rows
        ]
        tables.append(
            Table(f"Scores on {where}: what the choice was made by", ["Candidate", "P", "R", "F1", "95 %"], cells)
        )
        plots.append(f1_plot(rows, "verdict-f1"))
    if len(verdict.curve) > 1:
        plots.append(curve_plot([(p["sentences"], p["f1"]) for p in verdict.curve], "verdict-curve"))
    if verdict.notes:
        tables.append(Table("How it was made", ["What"], [[note] for note in verdict.notes]))
    return Section("Verdict", "verdict", lines, plots, tables, verdict.answer())


def _row(contender: Contender) -> Comparison:
    scores = contender.scores or {}
    interval, difference = scores.get("interval"), scores.get("difference")
    return Comparison(
        contender.name,
        Counts(*(scores[key] for key in Counts._fields)),
        {},
        scores.get("words_per_second"),
        Accuracy(),
        None if interval is None else Interval(interval["low"], interval["high"]),
        None if difference is None else Difference(**{key: difference[key] for key in Difference._fields}),
    )
