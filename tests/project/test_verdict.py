"""The verdict: who wins, what is said, and what comes back from its file."""

import json

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.bootstrap import Difference
from spacy_weakner.evaluation.compare import Comparison
from spacy_weakner.project.rules import COMBINED, Rule
from spacy_weakner.project.verdict import Contender, Verdict, choose
from spacy_weakner.scores import Accuracy, Counts

from .util import SCORES, make_verdict


def row(name, tp, fp=0, fn=0, difference=None):
    return Comparison(name, Counts(tp, fp, fn), {}, None, Accuracy(), difference=difference)


@pytest.mark.parametrize(
    "rows, winner",
    [
        ([row("term list", 5, 0, 5), row("gold alone", 6, 0, 4)], "gold alone"),
        ([row("term list", 6, 0, 4), row("gold alone", 5, 0, 5)], "term list"),
        ([row("term list", 5, 1, 4), row("gold alone", 5, 1, 4), row("NEEDLE", 5, 1, 4)], "term list"),
        ([row("term list", 0, 0, 9), row("gold alone", 0, 9, 9)], "term list"),
        ([row("term list", 1000, 0, 1), row("gold alone", 1001, 0, 1)], "gold alone"),
    ],
)
def test_the_best_wins_and_of_equals_the_first(rows, winner):
    assert choose(rows) == winner


@pytest.mark.parametrize(
    "parts, winner",
    [
        ({}, "combined"),
        ({"head": (-3.5, -5.0)}, "combined"),
        # A few hundred sentences cannot tell.
        ({"head": (3.5, -0.5)}, "combined"),
        ({"head": (3.5, 0.0)}, "combined"),
        ({"head": (2.5, 0.5)}, "combined"),
        ({"head": (3.0, 0.5)}, "combined"),
        ({"head": (3.5, 0.5)}, "head"),
        # Of those that are clearly better the best.
        ({"list": (3.5, 0.5), "head": (4.5, 0.5)}, "head"),
        ({"list": (3.5, 0.5), "head": (4.5, -0.5)}, "list"),
        ({"list": (3.5, 0.5), "head": (3.5, 0.5)}, "list"),
    ],
)
def test_the_combination_wins_unless_a_part_is_clearly_better(parts, winner):
    rows = [
        row(name, 600 + round(10 * f1), 0, 400 - round(10 * f1), Difference("combined", f1, low, 9.0, 0.1))
        for name, (f1, low) in parts.items()
    ]
    assert choose([*rows, row("combined", 600, 0, 400)], "combined") == winner


def test_a_combination_that_there_is_not():
    assert choose([row("list", 5, 0, 5), row("head", 6, 0, 4)], "combined") == "head"


def full(tmp_path):
    verdict = make_verdict(tmp_path / "ä b", "gold alone")
    difference = {"baseline": "gold alone", "f1": -5.0, "low": -9.0, "high": -1.0, "p": 0.01}
    verdict.contenders += [
        Contender("term list", "list", "there", {**SCORES, "f1": 75.0, "difference": difference}),
        Contender("chance", "x", "there", {**SCORES, "f1": 75.0, "difference": {**difference, "high": 1.0}}),
        Contender("same", "y", "there", {**SCORES, "difference": {**difference, "f1": -0.01, "high": 1.0}}),
    ]
    verdict.left_out.append(Rule("NEEDLE", False, "there is no dev"))
    verdict.notes, verdict.advice = ["a note"], ["Mehr Gold: 'ä'."]
    verdict.curve = [{"sentences": 10.0, "f1": 20.0}]
    return verdict


def test_a_verdict_comes_back(tmp_path):
    verdict = full(tmp_path)
    verdict.save(tmp_path / "new" / "verdict.json")
    again = Verdict.load(tmp_path / "new" / "verdict.json")
    assert again == verdict and again.best.path == str(tmp_path / "ä b") and again.lines() == verdict.lines()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["verdict.json"]


def test_what_is_said(tmp_path):
    first, *others = full(tmp_path).lines()
    assert first == "'gold alone' is the one to use. It has F1 80.0 (70.0 to 90.0), P 80.0, R 80.0 on 50 dev sentences."
    # The best first.
    assert others[0].endswith(", as good.")
    assert others[1].endswith("5.0 less.") and "5.0 less, which may be chance" in others[2]
    assert others[3] == "'NEEDLE' was not trained: there is no dev."


def test_what_a_combination_consists_of(tmp_path):
    verdict = make_verdict(tmp_path, COMBINED)
    assert len(verdict.lines()) == 1
    verdict.contenders.insert(0, Contender("term list", "list", "there", {**SCORES, "f1": 85.0}))
    _, parts, other = verdict.lines()
    assert "between lists and heads" in parts and other.startswith("'term list' has F1 85.0")
    assert [each.name for each in verdict.ranked()] == [COMBINED, "term list"]


def test_nothing_was_compared(tmp_path):
    verdict = make_verdict(tmp_path, scores=None)
    (line,) = verdict.lines()
    assert "'term list'" in line and "no gold" in line and verdict.best.scores is None


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"contenders": [1]}', b"\xff\xfe"])
def test_damaged_verdicts(tmp_path, text):
    path = tmp_path / "verdict.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(WeaknerError, match=r"WK681.*verdict\.json.*'spacy weakner fit'"):
        Verdict.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"notes": [3]},
        {"advice": 3},
        {"chosen_by": "x"},
        {"curve": [{"sentences": "ten", "f1": 1.0}]},
        {"settings": {"gold_steps": None}},
        {"facts": {"f1": [80.0]}},
        {"contenders": [{"name": "gold alone", "path": 3, "why": "", "scores": None}]},
        {"contenders": [{"name": "gold alone", "path": "x", "why": "", "scores": {**SCORES, "tp": "8"}}]},
        {"contenders": [{"name": "gold alone", "path": "x", "why": "", "scores": {**SCORES, "interval": {"low": 1}}}]},
    ],
)
def test_values_of_another_kind(tmp_path, change):
    path = tmp_path / "verdict.json"
    full(tmp_path).save(path)
    data = json.loads(path.read_text())
    for key, value in change.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(data))
    with pytest.raises(WeaknerError, match=r"WK681.*verdict\.json"):
        Verdict.load(path)


def test_a_winner_that_is_no_candidate(tmp_path):
    path = tmp_path / "verdict.json"
    full(tmp_path).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "winner": "nobody"}))
    with pytest.raises(WeaknerError, match="WK681"):
        Verdict.load(path)
    with pytest.raises(WeaknerError, match=r"WK100.*fit"):
        Verdict.load(tmp_path / "none.json")
