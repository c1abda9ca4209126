import re
from functools import partial

import pytest
import spacy

from spacy_weakner.checks.sources import check_sources
from spacy_weakner.checks.terms import MatchedTexts
from spacy_weakner.corpus.sampling import SampledLines
from spacy_weakner.pipelines import add_sentences

from .conftest import GOLD, found

SEEN = MatchedTexts(spacy.blank("xx"), 20)
ANSWERS = [{"tokens": ["Anna"], "ents": [[0, 1, "PERSON"]]}, {"text": "x", "ents": [["x", "DRUGS"], ["x", "MISC"]]}]


@pytest.fixture
def declare(write, findings):
    def declare(**sections):
        write("terms.csv", ["label,term", "DRUG,aspirin", "DRUG,-"])
        write("names.csv", ["label,term", "ORG,Yahoo! Inc"])
        write("answers.jsonl", ANSWERS)
        write("patterns.jsonl", [{"label": "PER", "pattern": [{"LOWER": "anna"}]}, {"label": "ORG", "pattern": "x"}])
        lines = [line for name, keys in sections.items() for line in [f"[sources.{name}]", *keys, ""]]
        return check_sources(write("sources.cfg", lines), "en", SEEN, findings)

    return declare


def test_labels_of_all_kinds(declare, findings, tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "LOC", "pattern": "Paris"}])
    nlp.to_disk(tmp_path / "model")
    columns = declare(
        list=['terms = "terms.csv"', 'stop = ["-"]'],
        llm=['file = "answers.jsonl"'],
        rules=['patterns = "patterns.jsonl"'],
        model=['pipeline = "model"'],
    )
    assert {column.name: column.counts for column in columns} == {
        "list": {"DRUG": 2},
        "llm": {"PERSON": 1, "DRUGS": 1, "MISC": 1},
        "rules": {"PER": 1, "ORG": 1},
        "model": {"LOC": None},
    }
    assert not findings.sorted()


@pytest.mark.parametrize("meta", ["[]", '{"labels": null}', '{"labels": {"ner": 5}}', '{"labels": {"ner": [[]]}}'])
def test_a_pipeline_with_damaged_meta_data(declare, findings, tmp_path, meta):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "meta.json").write_text(meta)
    columns = declare(model=['pipeline = "model"'], llm=['file = "answers.jsonl"'])
    (error,) = found(findings, "error")
    assert re.search(r"sources.model\]: .WK206.*meta.json", error) and [column.name for column in columns] == ["llm"]


@pytest.mark.parametrize("how, splits", [("sentencizer", 3), ("rule", 2), ("none", 0)])
def test_labels_of_texts_that_are_split(declare, findings, monkeypatch, how, splits):
    texts = ["One came. Two went.", "Anna left. Bob stayed.", "We bought Yahoo! Inc shares today."]
    nlp = spacy.blank("xx")
    add_sentences(nlp, (), how)
    monkeypatch.setattr("tests.checks.test_sources.SEEN", MatchedTexts(nlp, 20, texts=texts))
    monkeypatch.setattr("tests.checks.test_sources.ANSWERS", [{"text": text, "ents": []} for text in (*texts, "x")])
    declare(llm=['file = "answers.jsonl"'], list=['terms = "names.csv"'])
    warned = [text for text in found(findings, "warning") if "whole texts" in text]
    assert len(warned) == bool(splits) and all(f"{splits} rows" in text for text in warned)


def test_labels_are_renamed(declare, findings):
    (column,) = declare(llm=['file = "answers.jsonl"', 'labels = {"PERSON": "PER", "DRUG": "DRUG"}'])
    assert column.counts == {"PER": 1}
    (warning,) = found(findings, "warning")
    assert "renames 'DRUG', but the source has no such label (did you mean 'DRUGS'?" in warning
    assert "left out: DRUGS, MISC" in found(findings, "info")[0]


def test_every_section_is_looked_at(declare, findings):
    declare(
        a=['terms = "term.csv"'],
        b=['file = "answers.jsonl"', "minscore = 1"],
        c=['terms = "terms.csv"'],
        d=['file = "answers.jsonl"', 'labels = {"X": "Y"}'],
    )
    errors = found(findings, "error")
    assert len(errors) == 3
    assert re.search(r"\[sources.a\]: \[WK308\].*did you mean 'terms.csv'", errors[0])
    assert re.search(r"\[sources.b\]: \[WK308\].*did you mean 'min_score'", errors[1])
    assert re.search(r"\[sources.d\]: 'labels' lists none of the labels.*PERSON, DRUGS, MISC", errors[2])
    assert 'stop = ["-"]' in " ".join(found(findings, "warning"))


@pytest.mark.parametrize(
    "key, rows, expected",
    [
        ("patterns", [{"label": "PER"}, {"label": "ORG", "pattern": "x"}], "line 1: a pattern needs 'label'"),
        ("patterns", ["["], "line 1: not JSON"),
        ("file", [{"text": "Anna", "ents": []}] * 2, "None of the 2 rows of .* contains an entity"),
        ("file", [], "contains no answers"),
        ("file", ["{", {"tokens": ["a"], "ents": [[0, 9, "X"]]}], "line 1: not JSON.*line 2"),
    ],
)
def test_sources_that_cannot_be_used(write, findings, key, rows, expected):
    write("rows.jsonl", rows)
    check_sources(write("sources.cfg", ["[sources.a]", f'{key} = "rows.jsonl"']), "en", SEEN, findings)
    assert re.search(expected, " ".join(found(findings, "error")))


def test_large_files_of_answers_are_sampled(write, findings, monkeypatch):
    monkeypatch.setattr("spacy_weakner.checks.sources.SampledLines", partial(SampledLines, limit=200))
    write("answers.jsonl", [ANSWERS[0]] * 300)
    (column,) = check_sources(write("sources.cfg", ["[sources.a]", 'file = "answers.jsonl"']), "en", SEEN, findings)
    assert column.counts["PERSON"] == 200 and "only a sample was checked" in found(findings, "info")[0]


def test_against_gold(check, write):
    write("answers.jsonl", ANSWERS)
    report = check(gold=GOLD, sources=["[sources.llm]", 'file = "answers.jsonl"'])
    assert "'PERSON' (1 entity) does not occur in gold; the nearest label there is 'PER'" in " ".join(
        found(report, "error")
    )


def test_a_file_that_declares_nothing(check):
    assert re.search("WK311|WK307", " ".join(found(check(sources=["[other]"]), "error")))


def test_labels_that_the_texts_bring_along(write, findings):
    names = ["a", "imported", "b", "silent"]
    sources = write("sources.cfg", [line for name in names for line in (f"[sources.{name}]", "corpus = true")])
    rows = [
        {"text": "Anna Bob", "weak_ents": {"a": [[0, 4, "PER"], [5, 8, "PER"]], "c": None, "silent": []}},
        {"text": "Anna", "weak_ents": [[0, 4, "NAME"]]},
        {"text": "Anna"},
        {"text": "Anna", "weak_ents": {"a": "broken"}},
    ]
    columns = check_sources(sources, "en", SEEN, findings, write("text.jsonl", rows))
    counts = {column.name: dict(column.counts) for column in columns}
    assert counts == {"a": {"PER": 2}, "imported": {"NAME": 1}, "b": {}, "silent": {}}
    (error,) = found(findings, "error")
    assert "has no labels named 'b'" in error
    assert len(found(findings, "info")) == 1
    # Where nobody can look, nothing is said.
    assert check_sources(sources, "en", SEEN, findings) == []
