"""Labels that are spelt differently, or stand in some files only."""

import re

import pytest

from spacy_weakner.checks.labels import Column, check_labels, label_table, nearest

from .conftest import found

GOLD = {"Chemical": 40, "Disease": 30}


@pytest.mark.parametrize(
    "label, expected",
    [
        ("Chemicals", "Chemical"),
        ("CHEMICAL", "Chemical"),
        ("B-Chemical", "Chemical"),
        ("chem", "Chemical"),
        ("Chemcial", "Chemical"),
        ("Chemical_name", None),
        ("Person", None),
        ("C", None),
    ],
)
def test_nearest(label, expected):
    assert nearest(label, list(GOLD)) == expected


@pytest.mark.parametrize("a, b", [("CITY", "Cities"), ("person", "PER"), ("Model_name", "ModelName")])
def test_nearest_goes_both_ways(a, b):
    assert nearest(a, [b]) == b
    assert nearest(b, [a]) == a


NONE = "None of its labels occurs in gold: 'PER' .9 terms., 'ORG' .9 terms.*gold has: Chemical, Disease"
SPELLED = r"'Chemicals' \(9 terms\).*the nearest label there is 'Chemical' \(40 entities\).*\"Chemicals\": \"Chemical\""
MISSED = r"'Chemicals' \(9 entities\) does not occur in gold; the nearest label there is 'Chemical'.*missed"


@pytest.mark.parametrize(
    "name, counts, level, expected",
    [
        ("terms", {"Chemicals": 9}, "error", SPELLED),
        ("terms", {"chemical": 1, "Disease": 9}, "error", r"'chemical' \(1 term\)"),
        ("terms", {"PER": 9, "ORG": 9}, "error", NONE),
        ("terms", {"Chemical": 9, "Gene": 9}, "warning", r"predict them: 'Gene' \(9 terms\)"),
        ("terms", {"Chemical": 9, "Chemicals": 9}, "warning", "differ only in spelling"),
        ("terms", {"Chemical": 9}, "info", "learned from gold alone: Disease"),
        ("dev", {"Chemicals": 9, "Disease": 1}, "error", MISSED),
        # A similar label may have another meaning.
        (
            "terms",
            {"Disease": 9, "Chemicalrisk": 9},
            "warning",
            "'Chemicalrisk'.*nearest.*-> If they mean the same",
        ),
        ("dev", {"Disease": 9, "Chemicalrisk": 9}, "warning", "'Chemicalrisk'.*nearest.*-> If they mean the same"),
        ("terms", {"Chem": 9}, "error", "the nearest label there is 'Chemical'"),
        ("dev", {"Gene": 9, "Disease": 1, "Chemical": 1}, "warning", r"learned from it: 'Gene' \(9 entities\)"),
        ("dev", {"Disease": 1}, "info", "they are not scored: Chemical"),
    ],
)
def test_terms_and_dev_against_gold(findings, name, counts, level, expected):
    column = Column(name, f"--{name} f", counts, "term" if name == "terms" else "entity")
    check_labels([Column("gold", "--gold g", GOLD), column], findings)
    assert re.search(expected, "".join(found(findings, level)))
    assert level == "error" or not found(findings, "error")


def test_gold_that_was_read_in_part_refuses_nothing(findings):
    gold = Column("gold", "--gold g", GOLD, is_part=True)
    for counts in ({"PER": 9}, {"Chemicals": 9}):
        check_labels([gold, Column("terms", "--terms t", counts, "term")], findings)
    assert len(found(findings, "warning")) == 2 and not found(findings, "error")


def test_what_to_write_into_a_sources_file(findings):
    check_labels([Column("gold", "g", GOLD), Column("llm", "s", {"Drug": None, "Diseases": None})], findings)
    assert 'In [sources.llm]: labels = {"Diseases": "Disease", ...}' in "".join(found(findings, "error"))


def test_gold_itself(findings):
    check_labels([Column("gold", "--gold g", {"B-PER": 9, "I-PER": 2})], findings)
    warnings = " ".join(found(findings, "warning"))
    assert "tag prefix: B-PER, I-PER" in warnings
    assert "'I-PER' (2 entities) and 'B-PER' (9 entities) differ only in spelling" in warnings
    assert "fewer than 5 entities" in warnings


def test_labels_of_what_is_no_entity(findings):
    check_labels([Column("gold", "--gold g", {"O": 9, "None": 9, "ORG": 9})], findings)
    (warning,) = found(findings, "warning")
    assert "'O' (9 entities), 'None' (9 entities)." in warning


def test_table():
    columns = [Column("gold", "g", {"A": 1200}), Column("model", "m", {"A": None, "B": None})]
    assert label_table(columns) == (["Label", "gold", "model"], [["A", "1,200", "yes"], ["B", "-", "yes"]])
