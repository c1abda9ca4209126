"""The end of a project: scores on test, once, and a report that opens with the verdict."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..files import existing, parse_json, write_text
from ..quality.bootstrap import Difference, Interval
from ..quality.compare import SAMPLES, Comparison
from ..quality.plots import Plot, curve_plot, f1_plot
from ..quality.report import Section, report
from ..quality.tables import Table
from ..scores import Accuracy, Counts
from .layout import Corpora, has_docs, reading
from .verdict import Contender, Verdict


def conclude(
    verdict: Verdict,
    corpora: Path,
    output: Path,
    *,
    scores: Optional[Path] = None,
    title: str = "Report",
    seed: int = 0,
    gpu_id: int = -1,
    progress: bool = False,
) -> List[Comparison]:
    """Score all candidates on test, if there is one, and write the report.

    verdict (Verdict): The verdict. It was made without test, and test does not change it.
    corpora (Path): Folder of the corpora.
    output (Path): The HTML file.
    scores (Optional[Path]): JSON file for the scores on test; none is written, and one from before is removed, where
        there is no test.
    title (str): Title of the report.
    seed (int): Seed of the bootstrap.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show bars.
    RETURNS (List[Comparison]): The scores on test; empty without test.
    RAISES (WeaknerError): For what `report` raises.
    """
    folders = Corpora(existing(Path(corpora), "'spacy weakner prepare' makes it"))
    test = folders.test if has_docs(folders.test) else None
    labels = folders.gold_labelled if has_docs(folders.gold_labelled) else None
    rows = report(
        Path(output),
        test=test,
        candidates=None if test is None else {each.name: each.path for each in verdict.contenders},
        labels=labels,
        first=[verdict_section(verdict)],
        title=title,
        bootstrap=SAMPLES,
        seed=seed,
        gpu_id=gpu_id,
        progress=progress,
    )
    if scores is not None:
        scores = Path(scores)
        if rows:
            write_text(scores, json.dumps([row.to_json() for row in rows], indent=2, ensure_ascii=False) + "\n")
        else:
            scores.unlink(missing_ok=True)
    return rows


def read_scores(path: Optional[Path]) -> Dict[str, Dict[str, Any]]:
    """Scores on test by candidate, as `conclude` has written them; empty if there are none.

    RAISES (WeaknerError): If the file is damaged.
    """
    if path is None or not Path(path).exists():
        return {}
    with reading(path, "verdict"):
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
