"""A table of the scores of several runs: mean and standard deviation over seeds."""

import csv
import io
import json
import re
import statistics
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..errors import Errors, WeaknerError, check_choice, check_range
from ..files import existing, parse_json, reading_made
from .bootstrap import Bootstrap
from .compare import MOST_SAMPLES, SAMPLES, CandidateScores
from .tables import UNKNOWN, Table

FORMATS = ("md", "latex", "csv")
_DEFAULT = "default"
_SPREAD = " ± "
_SCORES = {"p": "P", "r": "R", "f1": "F1"}
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_SPECIAL.update({char: rf"\{char}" for char in "&%$#_{}"})


class Scored(NamedTuple):
    """One row of a file of scores, and what it was made with."""

    path: Path
    name: str
    scores: Optional[CandidateScores]  # on test
    dev: Optional[float]  # in [0, 1], of `train --grid`
    made: Dict[str, Any]
    training: Dict[str, Any]
    variables: Dict[str, str]


def read_scores(path: Path) -> List[Scored]:
    """Read a file of scores that `evaluate` or `train --grid` has written."""
    with reading_made(path, "evaluate"):
        data = parse_json(existing(path).read_bytes())
        found = []
        for row in data["scores"]:
            training, settings = row.pop("training"), row.pop("settings", None)
            every = {**data["made"]["variables"], **(settings or {})}
            variables = {name: value if isinstance(value, str) else json.dumps(value) for name, value in every.items()}
            variables.pop("seed", None)
            dev = row["score"] if settings is not None else None
            scores = CandidateScores.model_validate(row) if settings is None else None
            name = Path(path).parent.name if settings is not None else row["name"]
            found.append(Scored(Path(path), name, scores, dev, data["made"], training, variables))
        return found


def score_table(
    scores: Sequence[Path],
    *,
    per_label: bool = False,
    baseline: Optional[str] = None,
    bootstrap: int = SAMPLES,
    seed: int = 0,
) -> Table:
    """Make a table of the scores of several runs: mean and standard deviation over seeds, for each system and each
    combination of the variables that differ.

    scores (Sequence[Path]): Files that 'evaluate' (also in workflows) and 'train --grid' have written.
    per_label (bool): Also show the scores of each label.
    baseline (Optional[str]): Name of the system that the others are compared with: its first row.
    bootstrap (int): Number of resampled test sets for the differences from the baseline.
    seed (int): Seed of the resampling.
    RETURNS (Table): The table.
    RAISES (WeaknerError): For a missing or damaged file, a run that is given twice, or an unknown baseline.
    """
    check_range("bootstrap", bootstrap, 1, MOST_SAMPLES)
    rows = [row for path in scores for row in read_scores(path)]
    differing = _differing([row.variables for row in rows])
    several_tests = len({_test(row) for row in rows}) > 1
    groups: Dict[Tuple[str, ...], List[Scored]] = {}
    for row in rows:
        values = [row.variables.get(name, _DEFAULT) for name in differing]
        groups.setdefault((row.name, *values, _test(row), str(row.training["config"])), []).append(row)
    for group in groups.values():
        _check_once(group)
    # The config is shown only where it alone differs, as after an edit by hand.
    edited = len({key[:-1] for key in groups}) < len(groups)
    differences = _differences(groups, baseline, bootstrap, seed)
    header = ["System", *differing, *["test"] * several_tests, *["config"] * edited, *["label"] * per_label, "runs"]
    shown = [_SCORES[name] for name in _SCORES if any(row.scores for row in rows)]
    has_dev = any(row.dev is not None for row in rows)
    header += [*shown, *["dev"] * has_dev, *([f"vs {baseline}", "p"] if baseline else [])]
    lines = []
    for key, group in groups.items():
        names = [*key[:-2], *([_name_of_test(group[0])] * several_tests), *([key[-1][:8]] * edited)]
        for label in [None, *(sorted({x for row in group if row.scores for x in row.scores.per_label}))]:
            if label is not None and not per_label:
                break
            found = [_values(row, label) for row in group]
            cells = [_mean([one[name] for one in found if one]) for name in _SCORES] if shown else []
            if has_dev:
                cells.append(_mean([100 * row.dev for row in group if row.dev is not None]))
            if baseline:
                cells += differences.get(key, [UNKNOWN, UNKNOWN]) if label is None else [UNKNOWN, UNKNOWN]
            lines.append([*names, *([label or "all"] * per_label), str(len(group)), *cells])
    note = "±: standard deviation over runs with different seeds."
    if baseline:
        note += f" vs {baseline}: difference of the mean F1, with its 95 % interval and p over resampled test sets."
    return Table("Scores", header, lines, note, names=header.index("runs"))


def format_table(table: Table, format: str) -> str:
    """Return a table as Markdown, LaTeX (for the package booktabs) or CSV, where standard deviations are columns."""
    check_choice("format", format, FORMATS)
    if format == "csv":
        out = io.StringIO()
        split = [any(_SPREAD in row[i] for row in table.rows) for i in range(len(table.header))]
        writer = csv.writer(out, lineterminator="\n")
        for row in ([(cell, f"{cell} sd") for cell in table.header], *map(_split_cells, table.rows)):
            writer.writerow(part for two, cell in zip(row, split, strict=True) for part in two[: 1 + cell])
        return out.getvalue()
    if format == "md":
        rule = ["---"] * table.names + ["---:"] * (len(table.header) - table.names)
        every = [[cell.replace("|", r"\|") for cell in row] for row in (table.header, rule, *table.rows)]
        return "".join(f"| {' | '.join(row)} |\n" for row in every)
    columns = "l" * table.names + "r" * (len(table.header) - table.names)
    head, *rows = (" & ".join(map(_latex, row)) + r" \\" for row in (table.header, *table.rows))
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


def _split_cells(row: Sequence[str]) -> List[Tuple[str, str]]:
    return [(cell.partition(_SPREAD)[0], cell.partition(_SPREAD)[2]) for cell in row]


def _latex(cell: str) -> str:
    return re.sub(r"[\\~^±&%$#_{}]", lambda found: _SPECIAL[found[0]], cell)


def _differing(variables: Sequence[Dict[str, str]]) -> List[str]:
    names = sorted({name for one in variables for name in one})
    return [name for name in names if len({one.get(name, _DEFAULT) for one in variables}) > 1]


def _test(row: Scored) -> str:
    return str((row.made["test"] or {}).get("sha256"))


def _name_of_test(row: Scored) -> str:
    return str((row.made["test"] or {}).get("path", UNKNOWN))


def _check_once(group: Sequence[Scored]) -> None:
    seen: Dict[int, Path] = {}
    for row in group:
        seed = row.training["seed"]
        if seed in seen:
            raise WeaknerError(Errors.WK412.format(path=row.path, other=seen[seed], name=row.name, seed=seed))
        if seed is not None:
            seen[seed] = row.path


def _values(row: Scored, label: Optional[str]) -> Dict[str, float]:
    if row.scores is None:
        return {}
    found: Dict[str, float] = row.scores.model_dump() if label is None else row.scores.per_label.get(label, {})
    return found


def _mean(values: Sequence[float]) -> str:
    if not values:
        return UNKNOWN
    spread = f"{_SPREAD}{statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}"


def _differences(
    groups: Dict[Tuple[str, ...], List[Scored]], baseline: Optional[str], samples: int, seed: int
) -> Dict[Tuple[str, ...], List[str]]:
    """Return the differences from the first group of the baseline, on the same test set."""
    if baseline is None:
        return {}
    check_choice("baseline", baseline, dict.fromkeys(key[0] for key in groups))
    first = next(key for key in groups if key[0] == baseline)
    counts: List[NDArray[numpy.int64]] = []
    places: Dict[Tuple[str, ...], List[int]] = {}
    for key, group in groups.items():
        for row in group:
            if _test(row) == _test(groups[first][0]) and row.scores is not None and row.scores.sentences:
                places.setdefault(key, []).append(len(counts))
                counts.append(row.scores.counts_of_sentences)
    if first not in places:
        return {}
    resampled = Bootstrap(numpy.stack(counts), samples, seed)
    found = {}
    for key, place in places.items():
        if key != first:
            d = resampled.difference(place, places[first], baseline)
            found[key] = [f"{d.f1:+.1f} ({d.low:+.1f} to {d.high:+.1f})", f"{d.p:.3f}"]
    return found
