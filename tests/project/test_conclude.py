"""The end: scores on test, and a report that opens with the verdict."""

import json
import re

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.project.conclude import conclude, read_scores, verdict_section
from spacy_weakner.project.rules import Rule
from spacy_weakner.project.verdict import Contender

from .util import ALL_TERMS, PEOPLE, SCORES, make_corpora, make_verdict, write_gold, write_ruler

pytest.importorskip("matplotlib")
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def project(tmp_path):
    verdict = make_verdict(write_ruler(tmp_path / "list", {"PER": [*PEOPLE]}), f"list {SCRIPT}")
    difference = {"baseline": verdict.winner, "f1": -5.0, "low": -9.0, "high": 1.0, "p": 0.2}
    path = write_ruler(tmp_path / "gold", ALL_TERMS)
    verdict.contenders.append(Contender("gold alone", str(path), "why", {**SCORES, "difference": difference}))
    verdict.left_out.append(Rule("NEEDLE", False, SCRIPT))
    verdict.advice, verdict.notes = [f"More {SCRIPT}"], [f"note {SCRIPT}"]
    verdict.curve = [{"sentences": 10.0, "f1": 20.0}, {"sentences": 20.0, "f1": 40.0}]
    return verdict, make_corpora(tmp_path / "corpus", gold=12, text=0)


def test_a_report_with_test(tmp_path, project):
    verdict, corpora = project
    write_gold(corpora.test, 12, 500)
    how = {"labels": corpora.gold_labelled, "bootstrap": 20, "title": SCRIPT}
    rows = conclude(verdict, corpora.test, tmp_path / "report.html", **how)
    assert [row.name for row in rows] == [verdict.winner, "gold alone"]
    # What was chosen on dev stays chosen: test has its own best.
    assert rows[1].counts.f1 == 100.0 and rows[0].counts.f1 < 100.0 and verdict.winner == rows[0].name
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in html and html.count("&lt;script&gt;") > 5
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", html, flags=re.S)
    assert "Verdict" in headings[0] and len(headings) > 2
    assert "What would help next, 1" in html and "verdict-curve" in html


def test_a_report_without_test(tmp_path, project):
    verdict, corpora = project
    assert conclude(verdict, corpora.test, tmp_path / "report.html", labels=corpora.gold_labelled) == []
    assert read_scores(tmp_path / "none.json") == read_scores(None) == {}
    assert "Verdict" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_report_of_nothing_but_the_verdict(tmp_path, project):
    verdict, corpora = project
    corpora.gold_labelled.unlink()
    verdict = make_verdict(verdict.best.path, scores=None)
    assert conclude(verdict, corpora.test, tmp_path / "report.html", labels=corpora.gold_labelled) == []
    section = verdict_section(verdict)
    assert section.lines == verdict.lines() and not section.plots and not section.tables


def test_tables_of_the_verdict(project):
    section = verdict_section(project[0])
    scores, made = section.tables
    assert "dev" in scores.title and scores.rows[1] == ["gold alone", "80.0", "80.0", "80.0", "70.0 to 90.0"]
    assert made.rows == [[f"note {SCRIPT}"]] and len(section.plots) == 2
    assert section.lines[-1].startswith("What would help next, 1: More")


def test_the_answer_in_short(project):
    verdict, _ = project
    words = [word for word, _ in verdict.answer()]
    texts = dict(verdict.answer())
    assert words == ["Use", "How sure", "Next"]
    assert texts["Use"] == verdict.lines()[0] and texts["Next"] == verdict.advice[0]
    assert "'gold alone'" in texts["How sure"] and "may be chance" in texts["How sure"]
    verdict.contenders.pop()
    assert "Nothing else" in dict(verdict.answer())["How sure"]
    alone = make_verdict(verdict.best.path, scores=None)
    assert [word for word, _ in alone.answer()] == ["Use", "How sure"] and "no gold" in alone.answer()[1][1]


def test_a_candidate_that_is_gone(tmp_path, project):
    verdict, corpora = project
    write_gold(corpora.test, 6, 500)
    verdict.contenders[1].path = str(tmp_path / "gone")
    with pytest.raises(WeaknerError, match="gone"):
        conclude(verdict, corpora.test, tmp_path / "report.html", bootstrap=20)
    assert not (tmp_path / "report.html").exists()


def test_scores_are_whole(tmp_path):
    (tmp_path / "test.json").write_text(json.dumps([{"name": "a", "f1": 1.0}]))
    assert read_scores(tmp_path / "test.json") == {"a": {"name": "a", "f1": 1.0}}


def test_damaged_scores(tmp_path):
    (tmp_path / "scores.json").write_text("[{")
    with pytest.raises(WeaknerError, match="WK681"):
        read_scores(tmp_path / "scores.json")
