"""Plots the scores on dev during trainings."""

import base64
import re
from itertools import takewhile
from pathlib import Path
from typing import Any, Dict, List, Sequence

from pydantic import ConfigDict

from ..about import __title__
from ..errors import check_choice, check_range
from ..files import atomic_path, check_output, existing, parse_json, read_lines, reading_made
from ..scores import Strict
from .plots import training_plot
from .tables import Table

_F1 = "ents_f"
# The last line of the header of the table of `spacy train`, and a row: epoch and step.
_RULE, _ROW = "---  ------", re.compile(r" *\d+ +\d+ ")


class _Evaluation(Strict):
    model_config = ConfigDict(extra="ignore")  # the losses
    step: int
    score: float  # weighted, in [0, 1]
    scores: Dict[str, float]  # in percent


def training_curves(logs: Sequence[Path], output: Path) -> Table:
    """Plot the F1 on dev during trainings, or the score if F1 was not evaluated.

    logs (Sequence[Path]): The `train.log` beside a pipeline of 'spacy weakner train', or the `.jsonl` file of
        `training.logger.output_file`; several logs are several lines.
    output (Path): The picture: a `.svg` file.
    RETURNS (Table): The best score of each training, and the step at which it was reached.
    RAISES (WeaknerError): For a log that does not exist or has no scores, or another suffix of the picture.
    """
    logs, output = [*dict.fromkeys(map(Path, logs))], Path(output)
    check_range("number of logs", len(logs), 1, None)
    check_choice("suffix of the picture", output.suffix, (".svg",))
    check_output(logs, [output])
    read = dict(zip(_names(logs), map(_read, logs), strict=True))
    has_f1 = all(_F1 in row.scores for rows in read.values() for row in rows)
    curves = {
        name: [(row.step, row.scores[_F1] if has_f1 else 100 * row.score) for row in rows]
        for name, rows in read.items()
    }
    plot = training_plot(curves, "F1" if has_f1 else "score")
    with atomic_path(output) as temporary:
        svg = base64.b64decode(plot.source.partition(",")[2])
        temporary.write_bytes(svg.replace(b"<svg", f"<!-- {__title__} -->\n<svg".encode(), 1))
    lines = []
    for name, points in curves.items():
        step, score = max(points, key=lambda point: point[1])
        lines.append([name, f"{score:.1f}", f"{step:,}", f"{points[-1][0]:,}"])
    return Table(plot.title, ["Training", "F1" if has_f1 else "score", "at step", "steps"], lines)


def _read(path: Path) -> List[_Evaluation]:
    lines = list(read_lines(existing(path)))
    with reading_made(path, "train"):
        rows = map(parse_json, filter(str.strip, lines)) if path.suffix == ".jsonl" else _table_rows(lines)
        found = [_Evaluation.model_validate(row) for row in rows]
        if not found:
            raise ValueError("no scores")
    return found


def _table_rows(lines: Sequence[str]) -> List[Dict[str, Any]]:
    """Return the rows of the table of `spacy train`, in the form of its JSONL."""
    *_, titles = ["", *takewhile(lambda line: not line.startswith(_RULE), lines)]
    header = re.split(" {2,}", titles.strip().lower())
    rows = [dict(zip(header, line.split(), strict=True)) for line in lines if _ROW.match(line)]
    return [
        {"step": int(row["#"]), "score": float(row["score"]), "scores": {_F1: float(row[_F1])} if _F1 in row else {}}
        for row in rows
    ]


def _names(logs: Sequence[Path]) -> List[str]:
    """Return the paths without suffixes, and without the folders and the file name that all of them share."""
    parts = [log.with_suffix("").parts for log in logs]
    if len({*parts}) < len(parts):
        parts = [log.parts for log in logs]
    for place, rest in ((0, slice(1, None)), (-1, slice(-1))):
        while len({part[place] for part in parts}) == 1 < min(map(len, parts)):
            parts = [part[rest] for part in parts]
    return ["/".join(part) for part in parts] if len(logs) > 1 else [str(logs[0])]
