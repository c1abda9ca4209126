"""A table of the scores of several runs: mean and standard deviation over seeds."""

import csv
import io
import json
import re
import statistics
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
from numpy.typing import NDArray
from pydantic import ConfigDict

from ..errors import Errors, WeaknerError, check_choice, check_range
from ..files import existing, parse_json, reading_made
from ..runs.config import SEEDS
from ..scores import Strict
from .bootstrap import Bootstrap
from .compare import SAMPLES, CandidateScores
from .tables import UNKNOWN, Table

FORMATS = ("md", "latex", "csv")
_DEFAULT = "default"
_SPREAD = " ± "
_SCORES = {"p": "P", "r": "R", "f1": "F1"}
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
_SPECIAL.update({char: rf"\{char}" for char in "&%$#_{}"})
# A group of runs: its name, the values of the variables that differ, the test set, and the config.
_Key = Tuple[str, ...]


class _Read(Strict):
    model_config = ConfigDict(extra="ignore")  # files of scores say more than a table shows


class _Test(_Read):
    path: str
    sha256: Optional[str]


class _Made(_Read):
    test: Optional[_Test]
    variables: Optional[Dict[str, Any]]  # None: unknown
    changed: Optional[List[str]] = None  # names of variables without their default value; None: all


class _Training(_Read):
    seed: Optional[int]
    config: Optional[str]  # None: no pipeline, but labels


class _Scores(CandidateScores):
    training: _Training


class _GridRow(_Read):
    settings: Dict[str, Any]
    score: Optional[float]  # on dev, in [0, 1]
    training: _Training


class Scored(NamedTuple):
    """One row of a file of scores, and what it was made with."""

    path: Path
    name: str
    scores: Optional[CandidateScores]  # on test
    dev: Optional[float]  # in [0, 1], of `train --grid`
    test: Optional[_Test]
    config: Optional[str]
    seed: Optional[str]
    variables: Dict[str, str]
    changed: FrozenSet[str]


def read_scores(path: Path) -> List[Scored]:
    """Read a file of scores that `evaluate` or `train --grid` has written; there are none without a test set."""
    path = Path(path)
    with reading_made(path, "evaluate"):
        data = parse_json(existing(path).read_bytes())
        made = _Made.model_validate(data["made"])
        rows = [(_GridRow if "settings" in row else _Scores).model_validate(row) for row in data["scores"]]
    return [_scored(path, made, row) for row in rows]


def _scored(path: Path, made: _Made, row: Union[_Scores, _GridRow]) -> Scored:
    settings = row.settings if isinstance(row, _GridRow) else {}
    every = {**({"variables": "unknown"} if made.variables is None else made.variables), **settings}
    variables = {name: value if isinstance(value, str) else json.dumps(value) for name, value in every.items()}
    # The run's seed comes first: pipelines that are not trained have the default seed in their config.
    seeds = [variables.pop(name) for name in ("seed", *SEEDS) if name in variables]
    seed = " ".join(seeds) or row.training.seed
    return Scored(
        path,
        path.parent.name if isinstance(row, _GridRow) else row.name,
        None if isinstance(row, _GridRow) else row,
        row.score if isinstance(row, _GridRow) else None,
        made.test,
        row.training.config,
        None if seed is None or row.training.config is None else str(seed),
        variables,
        frozenset(variables if made.changed is None else (*made.changed, *settings)),
    )


def score_table(
    scores: Sequence[Path],
    *,
    per_label: bool = False,
    baseline: Optional[str] = None,
) -> Table:
    """Make a table of the scores of several runs: mean and standard deviation over seeds, for each system and each
    combination of the variables that differ.

    scores (Sequence[Path]): Files that 'evaluate' (also in workflows) and 'train --grid' have written.
    per_label (bool): Also show the scores of each label.
    baseline (Optional[str]): Name of the system that the others are compared with. If variables differ between its
        rows, the row with their defaults is used. Write another row as "NAME [VARIABLE=VALUE]", as the error lists it.
    RETURNS (Table): The table.
    RAISES (WeaknerError): For a missing or damaged file, a run that is given twice, or an unknown baseline.
    """
    check_range("number of files", len(scores), 1, None)
    rows: List[Scored] = []
    for path in scores:
        its = read_scores(path)
        with reading_made(path, "evaluate"):
            if not its:
                raise ValueError("no scores")
        rows += its
    differing = _differing(rows)
    several_tests = len({_test(row) for row in rows}) > 1
    groups: Dict[_Key, List[Scored]] = {}
    for row in rows:
        values = [row.variables.get(name, _DEFAULT) or UNKNOWN for name in differing]
        groups.setdefault((row.name, *values, _test(row), str(row.config)), []).append(row)
    for group in groups.values():
        _check_once(group)
    # The config is shown only where it alone differs, as after an edit by hand.
    edited = len({key[:-1] for key in groups}) < len(groups)
    shown_names = {
        key: [*key[:-2], *[group[0].test.path if group[0].test else UNKNOWN] * several_tests, *[key[-1][:8]] * edited]
        for key, group in groups.items()
    }
    columns = ["System", *differing, *["test"] * several_tests, *["config"] * edited]
    first = None if baseline is None else _find_baseline(groups, baseline, columns, shown_names)
    differences = {} if first is None else _differences(groups, first)
    header = [*columns, *["label"] * per_label, "runs"]
    shown = [_SCORES[name] for name in _SCORES if any(row.scores for row in rows)]
    has_dev = any(row.dev is not None for row in rows)
    header += [*shown, *["dev"] * has_dev, *([f"vs {baseline}", "p"] if baseline else [])]
    lines = []
    for key, group in groups.items():
        labels = {x for row in group if row.scores for x in row.scores.per_label} if per_label else ()
        for label in [None, *sorted(labels)]:
            found = [_values(row, label) for row in group]
            cells = [_mean([one[name] for one in found if one]) for name in _SCORES] if shown else []
            if has_dev:
                cells.append(_mean([100 * row.dev for row in group if row.dev is not None]))
            if baseline:
                cells += differences.get(key, [UNKNOWN, UNKNOWN]) if label is None else [UNKNOWN, UNKNOWN]
            runs = str(len(group) if label is None else sum(map(bool, found)))
            lines.append([*shown_names[key], *([label or "all"] * per_label), runs, *cells])
    note = "±: standard deviation over runs with different seeds."
    if first is not None:
        note += (
            f" vs {baseline}: difference from the mean F1 of {_title(columns, shown_names[first])}, with its 95 % "
            "interval and p over resampled test sets."
        )
        if len(differences) < len(groups) - 1:
            note += f" {UNKNOWN}: not compared, on another test set or without counts of sentences."
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


def _differing(rows: Sequence[Scored]) -> List[str]:
    """Return the variables that differ. A run without a variable has its default, which a workflow's record tells."""
    changed = {name for row in rows for name in row.changed}
    found = []
    for name in sorted({name for row in rows for name in row.variables}):
        values = {row.variables.get(name) for row in rows}
        if len(values if name in changed else values - {None}) > 1:
            found.append(name)
    return found


def _test(row: Scored) -> str:
    return str(row.test and row.test.sha256)


def _title(columns: Sequence[str], cells: Sequence[str]) -> str:
    values = ", ".join(f"{name}={cell}" for name, cell in zip(columns[1:], cells[1:], strict=True))
    return f"{cells[0]} [{values}]" if values else cells[0]


def _find_baseline(
    groups: Dict[_Key, List[Scored]], baseline: str, columns: Sequence[str], names: Dict[_Key, List[str]]
) -> _Key:
    """Return the group of this title; or that of this name, if it is the only one, or the only unchanged one."""
    titles = {_title(columns, cells): key for key, cells in names.items()}
    named = [key for key in groups if key[0] == baseline]
    unchanged = [key for key in named if not any(row.changed.intersection(columns[1:]) for row in groups[key])]
    for found in (named, unchanged):
        if len(found) == 1 and baseline not in titles:
            return found[0]
    check_choice("baseline", baseline, [title for title, key in titles.items() if not named or key in named])
    return titles[baseline]


def _check_once(group: Sequence[Scored]) -> None:
    seen: Dict[str, Path] = {}
    for row in group:
        run = str(row.path.resolve()) if row.seed is None else row.seed
        if run in seen:
            seed = "none" if row.seed is None else row.seed
            raise WeaknerError(Errors.WK412.format(path=row.path, other=seen[run], name=row.name, seed=seed))
        seen[run] = row.path


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


def _differences(groups: Dict[_Key, List[Scored]], first: _Key) -> Dict[_Key, List[str]]:
    """Return the differences from the first group, on the same test set."""
    counts: List[NDArray[numpy.int64]] = []
    places: Dict[_Key, List[int]] = {}
    start = groups[first][0]
    for key, group in groups.items():
        for row in group:
            if _test(row) == _test(start) and row.scores is not None and row.scores.sentences:
                places.setdefault(key, []).append(len(counts))
                counts.append(row.scores.counts_of_sentences)
                if len(counts[-1]) != len(counts[0]):
                    with reading_made(row.path, "evaluate"):
                        raise ValueError(
                            f"{len(counts[-1])} sentences, but other files {len(counts[0])} of this test set"
                        )
    if first not in places:
        return {}
    resampled = Bootstrap(numpy.stack(counts), SAMPLES, seed=0)
    found = {}
    for key, place in places.items():
        if key != first:
            d = resampled.difference(place, places[first], first[0])
            found[key] = [f"{d.f1:+.1f} ({d.low:+.1f} to {d.high:+.1f})", f"{d.p:.3f}"]
    return found
