"""The selection: which candidate is the best, the sentences about it, and its file."""

import json
from pathlib import Path

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.bootstrap import Difference
from spacy_weakner.evaluation.compare import CandidateScores
from spacy_weakner.project.rules import COMBINED, Rule
from spacy_weakner.project.selection import Selection, better_student, choose_best, choose_fast, cost_of_speed
from spacy_weakner.scores import Counts, as_json

from .util import SCORES, make_facts, make_selection, make_trained

PATH = "selection.json"


def row(name, tp, fp=0, fn=0, difference=None):
    return CandidateScores(name=name, **as_json(Counts(tp, fp, fn)), difference=difference)


def differ(f1, low, high=9.0):
    return Difference(baseline="combined", f1=f1, low=low, high=high, p=0.1)


@pytest.mark.parametrize(
    "rows, best",
    [
        ([("term list", 5, 0, 5), ("gold alone", 6, 0, 4)], "gold alone"),
        ([("term list", 6, 0, 4), ("gold alone", 5, 0, 5)], "term list"),
        ([("term list", 5, 1, 4), ("gold alone", 5, 1, 4), ("NEEDLE", 5, 1, 4)], "term list"),
        ([("term list", 0, 0, 9), ("gold alone", 0, 9, 9)], "term list"),
    ],
)
def test_the_best_wins_and_of_equals_the_first(rows, best):
    rows = [row(*values) for values in rows]
    assert choose_best(rows) == choose_best(rows, "a combination that there is not") == best


@pytest.mark.parametrize(
    "parts, best",
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
def test_the_combination_is_selected_unless_a_part_is_clearly_better(parts, best):
    rows = [
        row(name, 600 + round(10 * f1), 0, 400 - round(10 * f1), differ(f1, low)) for name, (f1, low) in parts.items()
    ]
    assert choose_best([*rows, row("combined", 600, 0, 400)], "combined") == best


@pytest.mark.parametrize(
    "scores, best",
    [
        # The better student, unless another candidate is clearly and significantly better.
        ({"student": 610, "student and list": 600}, "student"),
        ({"student": 600, "term list": 611, "student and list": 601}, "student and list"),
        ({"student": 600, "term list": 650, "student and list": 601}, "term list"),
        # Combinations on a Transformer, the last package and heads on a Transformer are not fast.
        (
            {"combined": 900, "list and head": 900, "previous package": 900, "gold alone": 900, "student": 600},
            "student",
        ),
        ({"combined": 900, "gold alone": 600}, "gold alone"),
    ],
)
def test_speed_is_the_best_without_a_transformer(scores, best):
    rows = [row(name, tp, 0, 2 * (1000 - tp)) for name, tp in scores.items()]
    usual = better_student(rows)
    differences = (differ((tp - scores.get(usual, 0)) / 10, 1.0) for tp in scores.values())
    rows = [row(name, tp, 0, 2 * (1000 - tp), d) for (name, tp), d in zip(scores.items(), differences, strict=True)]
    assert choose_fast(rows, {"gold alone"}, usual) == best


def test_speed_has_its_price():
    more = Difference(baseline="list", f1=2.3, low=1.0, high=3.6, p=0.01)
    rows = [row("list", 5, 0, 5), row(COMBINED, 7, 0, 3, more)]
    assert "2.3 F1 points" in cost_of_speed(rows, "list") and "1.0 to 3.6" in cost_of_speed(rows, "list")
    assert cost_of_speed(rows, COMBINED) == cost_of_speed(rows[:1], "list") == ""


def full(tmp_path):
    selection = make_selection(tmp_path / "ä b", "gold alone")
    difference = {"baseline": "gold alone", "f1": -5.0, "low": -9.0, "high": -1.0, "p": 0.01}
    others = [
        make_trained("term list", tmp_path / "list", {**SCORES, "f1": 75.0, "difference": difference}),
        make_trained("chance", tmp_path / "x", {**SCORES, "f1": 75.0, "difference": {**difference, "high": 1.0}}),
        make_trained("same", tmp_path / "y", {**SCORES, "difference": {**difference, "f1": -0.01, "high": 1.0}}),
    ]
    return selection.model_copy(
        update={
            "candidates": [*selection.candidates, *others],
            "left_out": [Rule(name="NEEDLE", trained=False, why="there is no dev")],
            "notes": ["a note"],
            "recommendations": ["Mehr Gold: 'ä'."],
            "curve": [{"sentences": 10.0, "f1": 20.0}],
        }
    )


def test_a_selection_comes_back(tmp_path):
    selection = full(tmp_path)
    selection.save(tmp_path / "new" / PATH)
    again = Selection.load(tmp_path / "new" / PATH)
    assert again == selection and again.selected.path == str(tmp_path / "ä b") and again.lines() == selection.lines()
    assert [path.name for path in (tmp_path / "new").iterdir()] == [PATH]


def test_a_project_may_be_moved(tmp_path, monkeypatch):
    (tmp_path / "p").mkdir()
    monkeypatch.chdir(tmp_path / "p")
    make_selection(Path("training") / "list").save(Path("training") / PATH)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").rename(tmp_path / "q")
    with pytest.raises(WeaknerError, match="WK109"):
        Selection.load(tmp_path)
    for folder in (Path("q"), tmp_path / "q"):
        assert Selection.load(folder / "training" / PATH).selected.path == str(folder / "training" / "list")


def test_sentences_about_it(tmp_path):
    first, *others = full(tmp_path).lines()
    assert first == "'gold alone': F1 80.0 (95 % CI 70.0 to 90.0), P 80.0, R 80.0 on 50 dev sentences."
    # The best first.
    assert others[0].endswith(", equally good.")
    assert others[1].endswith("5.0 F1 points less (95 % CI 1.0 to 9.0), significant.")
    assert others[2].endswith("5.0 F1 points less (95 % CI -1.0 to 9.0), not significant.")
    assert others[3] == "'NEEDLE' was not trained: there is no dev."


def test_what_a_combination_consists_of(tmp_path):
    selection = make_selection(tmp_path, COMBINED)
    assert len(selection.lines()) == 1
    listed = make_trained("term list", "list", {**SCORES, "f1": 85.0})
    selection = selection.model_copy(update={"candidates": [listed, *selection.candidates]})
    _, other, parts = selection.lines()
    assert "lists and heads" in parts and other.startswith("'term list': F1 85.0")
    assert [*selection.ranked()] == [COMBINED, "term list"]
    assert "3 points" in parts and selection.explained() == parts
    # A head alone has nothing to be combined with.
    alone = {"facts": make_facts(lists=0), "candidates": [make_trained("gold alone", "x"), selection.selected]}
    assert not selection.model_copy(update=alone).remarks()
    # Nothing was compared.
    (line,) = make_selection(tmp_path, scores=None).lines()
    assert "'term list'" in line and "no gold" in line


@pytest.mark.parametrize(
    "damage",
    [
        *["", "[]", "3", "{}", '{"candidates": [1]}', b"\xff\xfe"],
        {"chosen_by": "x"},
        {"curve": [{"sentences": "ten", "f1": 1.0}]},
        {"settings": {"text_steps": None}},
        {"best": "nobody"},
        {"candidates": [{"name": "gold alone", "path": "x", "why": "", "scores": {**SCORES, "interval": {"low": 1}}}]},
        None,
    ],
)
def test_damaged_files(tmp_path, damage):
    path = tmp_path / PATH
    if isinstance(damage, dict):
        full(tmp_path).save(path)
        data = json.loads(path.read_text())
        for key, value in damage.items():
            data[key] = {**data[key], **value} if isinstance(value, dict) else value
        damage = json.dumps(data)
    if damage is not None:
        path.write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    code = "WK100" if damage is None else "WK206"
    with pytest.raises(WeaknerError, match=rf"{code}.*selection\.json.*'spacy weakner fit'"):
        Selection.load(path)
