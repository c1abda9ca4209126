"""Scores of several runs in one table."""

import json

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.score_table import format_table, score_table
from spacy_weakner.scores import Counts, as_json

from ..cli.util import invoke

# tp, fp and fn of two sentences.
GOOD, BAD = [(9, 1, 0), (0, 0, 2)], [(4, 6, 5), (0, 0, 2)]


def write(path, seed, systems, variables=None, test="t1", config="c1", **made):
    rows = []
    for name, counts in systems.items():
        total = Counts(*map(sum, zip(*counts, strict=True)))
        sentences = ";".join(" ".join(map(str, row)) for row in counts)
        training = {"seed": seed, "config": config, "corpora": {}}
        row = {"name": name, **as_json(total), "per_label": {"PER": as_json(total)}}
        rows.append({**row, "sentences": sentences, "training": training})
    made = {"variables": {"seed": seed, **(variables or {})}, **made}
    made = {"test": {"path": f"{test}.spacy", "sha256": test}, **made}
    path.write_text(json.dumps({"made": made, "scores": rows}))
    return path


@pytest.fixture
def runs(tmp_path):
    first = write(tmp_path / "0.json", 0, {"A": GOOD, "B": BAD})
    second = write(tmp_path / "1.json", 1, {"A": [(7, 3, 2), (0, 0, 2)], "B": BAD})
    return [first, second]


def test_mean_and_standard_deviation_over_seeds(runs):
    table = score_table(runs)
    assert table.header == ["System", "runs", "P", "R", "F1"]
    # F1 of 18 / 21 and 14 / 21.
    assert table.rows[0] == ["A", "2", "80.0 ± 14.1", "72.7 ± 12.9", "76.2 ± 13.5"]
    assert table.rows[1][-1] == "38.1 ± 0.0"
    assert score_table(runs[:1]).rows[0] == ["A", "1", "90.0", "81.8", "85.7"]


def test_variables_that_differ_are_columns(tmp_path, runs):
    changed = write(tmp_path / "2.json", 0, {"A": BAD}, {"set": "a:b=1", "folds": 2})
    same = write(tmp_path / "3.json", 1, {"A": GOOD}, {"set": "a:b=1", "folds": 2})
    table = score_table([*runs, changed, same])
    assert table.header[:4] == ["System", "folds", "set", "runs"]
    assert [row[:4] for row in table.rows] == [
        ["A", "default", "default", "2"],
        ["B", "default", "default", "2"],
        ["A", "2", "a:b=1", "2"],
    ]
    assert score_table([changed, same]).header[:2] == ["System", "runs"]


@pytest.mark.parametrize("what, column, value", [("config", "config", "c2"), ("test", "test", "t2.spacy")])
def test_other_configs_and_test_sets_are_not_averaged(tmp_path, runs, what, column, value):
    other = write(tmp_path / "2.json", 2, {"A": BAD}, **{what: value.removesuffix(".spacy")})
    table = score_table([*runs, other])
    assert table.header[1] == column and [row[1] for row in table.rows][-1] == value
    assert [row[2] for row in table.rows] == ["2", "2", "1"]


def test_differences_from_a_baseline(tmp_path, runs):
    table = score_table(runs, baseline="B")
    assert table.header[-2:] == ["vs B", "p"] and table.rows[1][-2:] == ["-", "-"]
    assert table.rows[0][-2].startswith("+38.1 (") and 0 < float(table.rows[0][-1]) <= 1
    # Not on another test set.
    other = write(tmp_path / "2.json", 2, {"A": BAD}, test="t2")
    assert score_table([*runs, other], baseline="B").rows[-1][-2:] == ["-", "-"]
    with pytest.raises(WeaknerError, match="WK005"):
        score_table(runs, baseline="C")


def test_the_baseline_has_its_default_variables(tmp_path):
    # Its file comes last, as `mine-spans.json` after `mine-ratio-spans.json`.
    def one(name, counts, ratio, changed=("set",)):
        return write(tmp_path / name, 0, {"A": counts}, {"set": ratio, "lang": "en"}, changed=list(changed))

    files = [one("a.json", GOOD, "s=1"), one("b.json", BAD, "", [])]
    table = score_table(files, baseline="A")
    assert [row[-2][:5] for row in table.rows] == ["+47.6", "-"] and "A [set=-]," in table.note
    table = score_table(files, baseline="A [set=s=1]")
    assert [row[-2][:5] for row in table.rows] == ["-", "-47.6"]
    # Without such a row, or with several, the error asks which.
    for several in ([files[0], one("c.json", BAD, "s=2")], [files[1], one("d.json", BAD, "s=2", [])]):
        with pytest.raises(WeaknerError, match=r"WK005.*A \[set=.*A \[set="):
            score_table(several, baseline="A")


def test_a_variable_of_some_workflows_is_no_difference(tmp_path, runs):
    other = write(tmp_path / "2.json", 0, {"C": BAD}, {"folds": 3}, changed=[])
    assert score_table([*runs, other]).header[:2] == ["System", "runs"]
    other = write(tmp_path / "2.json", 0, {"C": BAD}, {"folds": 5}, changed=["folds"])
    assert score_table([*runs, other]).header[:2] == ["System", "folds"]


def test_unknown_variables_are_not_averaged_with_known_ones(tmp_path, runs):
    other = write(tmp_path / "2.json", 2, {"A": BAD})
    data = json.loads(other.read_text())
    data["made"]["variables"] = None
    other.write_text(json.dumps(data))
    rows = score_table([*runs, other]).rows
    assert [row[:3] for row in rows] == [["A", "default", "2"], ["B", "default", "2"], ["A", "unknown", "1"]]


def test_the_seed_is_that_of_the_run(tmp_path):
    files = [write(tmp_path / f"{seed}.json", 0, {"A": GOOD}, {"seed": seed}) for seed in (0, 1)]
    assert score_table(files).rows[0][:2] == ["A", "2"]


def test_what_cannot_be_compared_is_said(tmp_path, runs):
    assert "not compared" not in score_table(runs, baseline="B").note
    other = write(tmp_path / "2.json", 2, {"A": BAD}, test="t2")
    assert "not compared" in score_table([*runs, other], baseline="B").note


def test_runs_of_a_label(tmp_path, runs):
    data = json.loads(runs[1].read_text())
    data["scores"][0]["per_label"] = {}
    runs[1].write_text(json.dumps(data))
    assert [row[:3] for row in score_table(runs, per_label=True).rows[:2]] == [["A", "all", "2"], ["A", "PER", "1"]]


def test_labels(runs):
    rows = score_table(runs, per_label=True, baseline="B").rows
    assert [row[:2] for row in rows] == [["A", "all"], ["A", "PER"], ["B", "all"], ["B", "PER"]]
    assert rows[1][2:6] == rows[0][2:6]


def test_a_run_counts_once(tmp_path, runs):
    with pytest.raises(WeaknerError, match="WK412"):
        score_table([*runs, runs[0]])
    # Labels have no seed.
    data = json.loads(runs[0].read_text())
    data["made"]["variables"].pop("seed")
    for row in data["scores"]:
        row["training"]["seed"] = None
    (tmp_path / "labels.json").write_text(json.dumps(data))
    with pytest.raises(WeaknerError, match=r"WK412.*seed none"):
        score_table([tmp_path / "labels.json"] * 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["made"].pop("test"),
        lambda data: data["made"].pop("variables"),
        lambda data: data["scores"].clear(),
        lambda data: data["scores"].append(3),
        lambda data: data["scores"][0].pop("training"),
        lambda data: data["scores"][0]["training"].pop("config"),
        lambda data: data["scores"][0].update(sentences="x y"),
        lambda data: data["scores"][0].update(sentences="1 0 0"),
    ],
)
def test_files_by_hand_are_checked(runs, change):
    data = json.loads(runs[1].read_text())
    change(data)
    runs[1].write_text(json.dumps(data))
    with pytest.raises(WeaknerError, match=r"WK206.*1\.json"):
        score_table(runs, baseline="B")


def test_missing_files(tmp_path):
    with pytest.raises(WeaknerError, match="WK100"):
        score_table([tmp_path / "missing.json"])
    with pytest.raises(WeaknerError, match="WK005"):
        score_table([])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"scores": [{"name": "A"}]}'])
def test_damaged_files_are_named(tmp_path, text):
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(WeaknerError, match=r"WK206.*scores\.json"):
        score_table([path])


def test_grids(tmp_path):
    row = {"name": "dropout=0.1", "settings": {"training.dropout": 0.1}, "score": 0.5, "best": True}
    rows = [{**row, "training": {"seed": 0, "config": "c"}}]
    rows += [{**rows[0], "settings": {"training.dropout": 0.2}, "score": None}]
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"made": {"test": None, "variables": {}}, "scores": rows}))
    table = score_table([path])
    assert table.header == ["System", "training.dropout", "runs", "dev"]
    assert [row[1:] for row in table.rows] == [["0.1", "1", "50.0"], ["0.2", "1", "-"]]


def test_seeds_of_grids_are_no_variables(tmp_path):
    row = {"name": "x", "score": 0.5, "training": {"seed": 0, "config": "c"}}
    rows = [{**row, "settings": {"system.seed": seed, "training.dropout": 0.1}} for seed in (0, 1)]
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"made": {"test": None, "variables": {}}, "scores": rows}))
    assert score_table([path]).rows == [[tmp_path.name, "2", "50.0 ± 0.0"]]


def test_formats(tmp_path, runs):
    write(runs[0], 0, {"A_1 & b|c": GOOD})
    write(runs[1], 1, {"A_1 & b|c": BAD})
    table = score_table(runs)
    markdown, latex, csv = (format_table(table, name).splitlines() for name in ("md", "latex", "csv"))
    assert markdown[1] == "| --- | ---: | ---: | ---: | ---: |" and markdown[2].startswith(r"| A_1 & b\|c | 2 | 65.0 ±")
    assert latex[0] == r"\begin{tabular}{lrrrr}" and latex[4].startswith(r"A\_1 \& b|c & 2 & 65.0 $\pm$ ")
    assert csv[0] == "System,runs,P,P sd,R,R sd,F1,F1 sd" and csv[1].startswith("A_1 & b|c,2,65.0,35.4,")
    result = invoke("table", *map(str, runs), "--format", "latex", "--output", str(tmp_path / "t.tex"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "t.tex").read_text(encoding="utf-8").splitlines() == latex
    assert "A_1 & b|c" in invoke("table", *map(str, runs)).output
    assert "[WK005]" in invoke("table", str(runs[0]), "--format", "html").output
    assert "[WK304]" in invoke("table", str(runs[0]), "--format", "md", "--output", str(runs[0])).output
    assert "[WK331]" in invoke("table", str(runs[0]), "--output", str(tmp_path / "t.md")).output
