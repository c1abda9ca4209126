"""Curves of the scores on dev during trainings."""

import json
from xml.etree import ElementTree

import pytest
import srsly

from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.curves import training_curves

from ..cli.util import invoke

HEADER = """\
ℹ Initial learn rate: 0.001
E    #       LOSS CRF_NER  {title}  ENTS_P  SCORE
---  ------  ------------  ------  ------  ------
"""
ROWS = """\
  0       0         10.60    0.00    0.00    0.00
[WK931] a warning
  1     200     123456.78   61.23   50.00    0.31
 12    1400          0.01   58.00   50.00    0.29
✔ Saved pipeline to output directory
"""


@pytest.fixture
def log(tmp_path):
    """Write a log: `train.log`, or the JSONL of spaCy's logger. The scores of F1 are 0, 61.2 and 58."""

    def write(name, title="ENTS_F"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".log":
            path.write_text(HEADER.format(title=title) + ROWS, encoding="utf-8")
            return path
        scores = [(0, 0.0, 0.0), (200, 61.234, 0.31), (1400, 58.0, 0.29)]
        rows = [
            {"epoch": 0, "step": step, "losses": {}, "scores": {title.lower(): f1}, "score": score}
            for step, f1, score in scores
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    "names, shown",
    [
        (["training/mine/needle/train.log", "training/mine-1/needle/train.log"], ["mine", "mine-1"]),
        (["training/mine/a/train.log", "training/mine-1/b/train.log"], ["mine/a", "mine-1/b"]),
        (["a.jsonl", "b.jsonl"], ["a", "b"]),
        (["a.jsonl", "training/train.log"], ["a", "training/train"]),
    ],
)
def test_one_line_for_each_log(tmp_path, log, names, shown):
    table = training_curves([log(name) for name in [*names, names[0]]], tmp_path / "c.svg")
    assert table.rows == [[name, "61.2", "200", "1,400"] for name in shown] and "F1" in table.header
    text = "".join(ElementTree.parse(tmp_path / "c.svg").getroot().itertext())
    assert all(name in text for name in shown) and "F1 on dev" in text


def test_without_f1_it_is_the_score(tmp_path, log):
    table = training_curves([log("a/train.log", "CATS_F"), log("b.jsonl")], tmp_path / "c.svg")
    assert [row[1:] for row in table.rows] == [["31.0", "200", "1,400"]] * 2 and "F1" not in table.header


def test_command(tmp_path, log):
    result = invoke("curves", str(log("train.log")), str(tmp_path / "c.svg"))
    assert result.exit_code == 0 and "61.2" in result.output and (tmp_path / "c.svg").exists()


@pytest.mark.parametrize(
    "name, contents, code",
    [
        ("train.log", "✔ Created output directory\n", "WK206.*train.log.*no scores"),
        ("a.jsonl", "", "WK206.*a.jsonl"),
        ("a.jsonl", "[]\n", "WK206.*a.jsonl"),
        ("a.jsonl", '{"step": "x"}\n', "WK206.*a.jsonl"),
        ("train.log", HEADER.format(title="ENTS_F") + "  0  0  1.00  1.00\n", "WK206.*train.log"),
        (None, "", "WK100"),
    ],
)
def test_logs_that_are_none(tmp_path, name, contents, code):
    path = tmp_path / (name or "nothing.log")
    if name is not None:
        path.write_text(contents, encoding="utf-8")
    with pytest.raises(WeaknerError, match=code):
        training_curves([path], tmp_path / "c.svg")
    assert not (tmp_path / "c.svg").exists()


def test_unusable_output(tmp_path, log):
    with pytest.raises(WeaknerError, match=r"WK005.*\.svg"):
        training_curves([log("a.jsonl")], tmp_path / "c.png")


def test_logs_of_one_name(tmp_path):
    """They differ in their suffix only."""
    rows = [{"step": 1, "score": 0.5, "scores": {}}]
    srsly.write_jsonl(tmp_path / "train.jsonl", rows)
    header = "E    #       SCORE \n---  ------  ------\n"
    (tmp_path / "train.log").write_text(f"{header}  0       1    0.50\n", encoding="utf-8")
    table = training_curves([tmp_path / "train.jsonl", tmp_path / "train.log"], tmp_path / "out.svg")
    assert [row[0] for row in table.rows] == ["train.jsonl", "train.log"]
