"""The end: scores on test, and a report that opens with the selection."""

import json
import re

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.project.mistakes import Mistake
from spacy_weakner.project.rules import Rule
from spacy_weakner.project.selection import read_test_scores
from spacy_weakner.project.selection_report import evaluate_selection, selection_section, training_section

from .util import ALL_TERMS, PEOPLE, SCORES, make_corpora, make_selection, make_trained, write_gold, write_ruler

pytest.importorskip("matplotlib")
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def project(tmp_path):
    selection = make_selection(write_ruler(tmp_path / "list", {"PER": [*PEOPLE]}), f"list {SCRIPT}")
    difference = {"baseline": selection.best, "f1": -5.0, "low": -9.0, "high": 1.0, "p": 0.2}
    other = make_trained("gold alone", write_ruler(tmp_path / "gold", ALL_TERMS), {**SCORES, "difference": difference})
    changes = {
        "candidates": [*selection.candidates, other],
        "left_out": [Rule(name="NEEDLE", trained=False, why=SCRIPT)],
        "recommendations": [f"More {SCRIPT}"],
        "mistakes": [Mistake(text=SCRIPT, gold="", probable=f"{SCRIPT} (PER)", score=1.0)],
        "notes": [f"note {SCRIPT}"],
        "curve": [{"sentences": 10.0, "f1": 20.0}, {"sentences": 20.0, "f1": 40.0}],
    }
    return selection.model_copy(update=changes), make_corpora(tmp_path / "corpus", gold=12, text=0)


def test_a_report_with_test(tmp_path, project):
    selection, corpora = project
    write_gold(corpora.test, 12, 500)
    how = {"labels": corpora.gold_labeled, "bootstrap": 20, "title": SCRIPT}
    rows = evaluate_selection(selection, corpora.test, tmp_path / "report.html", **how)
    assert [row.name for row in rows] == [selection.best, "gold alone"]
    # What was selected on dev stays selected: test has its own best.
    assert rows[1].f1 == 100.0 and rows[0].f1 < 100.0 and selection.best == rows[0].name
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in html and html.count("&lt;script&gt;") > 5
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", html, flags=re.S)
    # The package first, though another candidate is better on test.
    selected = "Scores and errors of &#39;list &lt;script&gt;alert(1)&lt;/script&gt;&#39;"
    assert headings[:3] == ["Example sentences", selected, "Comparison of candidates"]
    assert headings[3:] == ["How it was selected", "Training", "Weak labels", "Sentences with errors"]
    answer = [text for _, text in re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", html, flags=re.S)]
    assert f"F1 {rows[0].f1:.1f}" in answer[0] and "on test (24 entities)" in answer[0]
    assert answer[1].endswith("on 50 dev sentences.") and "more (95 % CI" in answer[2] and "on test" in answer[2]
    assert html.count("F1 is the harmonic mean") == 1 and re.search(r"20\d\d-\d\d-\d\d; 100 gold sentences", html)
    table = re.findall(r"<tbody>(.*?)</tbody>", html[html.index("<caption>Candidates") :], flags=re.S)[0]
    assert table.index("list &lt;script") < table.index("gold alone")
    assert "What would help next" in html and "F1 of gold alone, by number of gold sentences" in html
    assert "Probable mistakes in the gold" in html
    # The list of names has no case; short ones in capitals have.
    (cells,) = re.findall(r"F1 on text without case.*?<tbody>(.*?)</tbody>", html, flags=re.S)
    assert re.findall(r">(\d+\.\d)<", cells) == [f"{rows[0].f1:.1f}"] * 3


def test_a_report_without_test(tmp_path, project):
    selection, corpora = project
    report = tmp_path / "report.html"
    assert evaluate_selection(selection, None, report, labels=corpora.gold_labeled) == []
    assert "How it was selected" in report.read_text(encoding="utf-8")
    # The errors of the package, on the sentences that it was selected by.
    write_gold(tmp_path / "folds.spacy", 12)
    others = [other.model_copy(update={"predicted": str(corpora.gold_labeled)}) for other in selection.candidates]
    compared = selection.model_copy(update={"corpus": str(tmp_path / "folds.spacy"), "candidates": others})
    assert evaluate_selection(compared, None, report, bootstrap=20) == []
    html = report.read_text(encoding="utf-8")
    assert "Scores and errors of" in html and "Comparison of candidates" not in html and "on test" not in html
    assert "Sentences with errors" not in html  # `gold_labeled` has the gold itself in `doc.ents`
    with pytest.raises(WeaknerError, match=r"WK100.*nope"):
        evaluate_selection(selection, None, tmp_path / "other.html", labels=tmp_path / "nope.spacy")
    with pytest.raises(WeaknerError, match=r"WK100.*tset"):
        evaluate_selection(selection, corpora.test.with_name("tset.spacy"), tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()
    # Nor anything to compare.
    selection = make_selection(selection.selected.path, scores=None)
    assert evaluate_selection(selection, None, report) == []
    section = selection_section(selection)
    assert section.lines == selection.remarks() and not section.plots and not section.tables
    assert not training_section(selection).tables


def test_tables_of_the_selection(project):
    section = selection_section(project[0])
    (scores,), (recommended, mistakes, made) = section.tables, training_section(project[0]).tables
    assert mistakes.rows[0][:2] == ["-", f"{SCRIPT} (PER)"]
    interval = ["70.0 to 90.0", "-5.0 (-9.0 to +1.0)"]
    assert "dev" in scores.title and scores.rows[1][:6] == ["gold alone", "80.0", "80.0", "80.0", *interval]
    assert made.rows == [[f"note {SCRIPT}"]] and len(section.plots) == 2
    assert recommended.rows == [["1", f"More {SCRIPT}"]] and "NEEDLE" in section.lines[-1]


def test_the_answer_in_short(project):
    selection, _ = project
    answer = dict(selection.answer())
    assert [*answer] == ["Selected", "Best of the others", "Next step"]
    assert answer["Selected"] == selection.lines()[0] and answer["Next step"] == selection.recommendations[0]
    assert answer["Best of the others"].startswith("'gold alone'")
    assert answer["Best of the others"].endswith(" 5.0 F1 points less (95 % CI -1.0 to 9.0), not significant.")
    alone = selection.model_copy(update={"candidates": selection.candidates[:1]})
    assert "No other candidate" in dict(alone.answer())["Best of the others"]
    unknown = make_selection(selection.selected.path, scores=None).answer()
    assert [heading for heading, _ in unknown] == ["Selected", "Best of the others"] and "no gold" in unknown[1][1]


def test_a_candidate_that_is_better_but_not_significantly_contradicts_nothing(project):
    selection, _ = project
    difference = {"baseline": selection.best, "f1": 1.0, "low": -0.5, "high": 2.5, "p": 0.2}
    better = make_trained("linear with list", "x", {**SCORES, "f1": 81.0, "difference": difference})
    changed = selection.model_copy(update={"candidates": [*selection.candidates, better]})
    answer = dict(changed.answer())
    assert answer["Selected"].startswith(f"'{selection.best}': F1 80.0") and "best" not in answer["Selected"]
    assert answer["Best of the others"] == (
        "'linear with list': F1 81.0 (95 % CI 70.0 to 90.0), P 80.0, R 80.0; 1.0 F1 points more (95 % CI -0.5 to 2.5), "
        "not significant."
    )
    # On test, with the scores that it was selected by.
    rows = {other.name: other.scores.model_copy(update={"f1": 70.0}) for other in changed.candidates}
    answer = dict(changed.answer(rows))
    assert answer["Selected"].startswith(f"'{selection.best}': F1 70.0") and "on test" in answer["Selected"]
    assert "F1 80.0" in answer["Selected by"] and answer["Best of the others"].endswith("on test.")


def test_a_candidate_that_is_gone(tmp_path, project):
    selection, corpora = project
    write_gold(corpora.test, 6, 500)
    gone = [selection.candidates[0], make_trained("gold alone", tmp_path / "gone")]
    with pytest.raises(WeaknerError, match="gone"):
        changed = selection.model_copy(update={"candidates": gone})
        evaluate_selection(changed, corpora.test, tmp_path / "report.html", bootstrap=20)
    assert not (tmp_path / "report.html").exists()


def test_scores_come_back(tmp_path):
    path = tmp_path / "test.json"
    assert read_test_scores(path) == read_test_scores(None) == {}
    scores = make_trained("a", "x").scores
    row = {**scores.model_dump(), "training": {"seed": None, "config": None}}
    path.write_text(json.dumps({"made": {"test": None, "variables": {}}, "scores": [row]}))
    (found,) = read_test_scores(path).values()
    assert found.model_dump(exclude={"training"}) == scores.model_dump()
    # Without a test set, there are no scores.
    path.write_text(json.dumps({"made": {"test": None, "variables": {}}, "scores": []}))
    assert read_test_scores(path) == {}
    for text in ("[{", "3", '[{"name": "a"}]'):
        path.write_text(text)
        with pytest.raises(WeaknerError, match="WK206"):
            read_test_scores(path)
