import re

import pytest

from spacy_weakner.quality.checking.terms import check_terms
from spacy_weakner.stages.labelling.sources import Source

from .conftest import found

NAMES = ["aspirin", "insulin", "ibuprofen", "warfarin", "heparin", "codeine", "morphine", "caffeine", "nicotine"]


def check(path, findings, **settings):
    return check_terms(Source("t", "terms", str(path), **settings), "--terms t", "en", 20, findings)


@pytest.mark.parametrize(
    "rows, expected",
    [
        (["DRUG,-", "DRUG,%"], r'2 terms without any letter or digit.*stop = \["-", "%"\]'),
        (["DRUG,12", "DRUG,5"], r'2 terms without any letter, .*stop = \["12", "5"\]'),
        (["DRUG,C"], "1 term of one character: C.*min_length = 2"),
        (["DRUG,the", "DRUG,Of"], r'2 terms that are stop words of .en.*stop = \["the", "Of"\]'),
        ([f"DRUG,{'very ' * 30}long"], "1 term with more words than any text"),
        (["DRUG,Aspirin", "FOOD,aspirin"], r"1 term with several labels: aspirin \(DRUG, FOOD\).*ambiguity"),
    ],
)
def test_bad_terms(write, findings, rows, expected):
    check(write("t.csv", ["label,term", *(f"DRUG,{name}x" for name in NAMES), *rows]), findings)
    (warning,) = found(findings, "warning")
    assert re.search(expected, warning)


def test_many_bad_terms_are_shown_in_part(write, findings):
    check(write("t.csv", ["label,term", *(f"N,{i}" for i in range(10, 30))]), findings)
    (warning,) = found(findings, "warning")
    assert "20 terms" in warning and "10, 11, 12, 13, 14 and 15 more" in warning and '"14", ...]' in warning


def test_settings_of_the_source_are_known(write, findings):
    path = write("t.csv", ["label,term", "D,-", "D,aspirin", "F,aspirin", "D,the"])
    assert check(path, findings, stop=("The",), min_length=2, ambiguity="drop") == {"D": 3, "F": 1}
    assert not found(findings, "warning")


def test_repeated_terms(write, findings):
    check(write("t.csv", ["label,term", "D,aspirin", "D,Aspirin", "D,insulin"]), findings)
    assert "1 term more than once" in found(findings, "info")[0]


@pytest.mark.parametrize(
    "name, rows, expected",
    [
        ("t.csv", [f"DRUG,{name}" for name in NAMES], "WK201.*no header.*sed -i '1i label,term'"),
        (
            "t.csv",
            ["name,type", *(f"{name},DRUG" for name in NAMES)],
            "WK201.*'type' seems.*'name' the term.*'term,label'",
        ),
        ("t.tsv", ["type\tname\tid", *(f"DRUG\t{n}\t{n}9" for n in NAMES)], "WK201.*'label<tab>term<tab>other2'"),
        ("t.csv", ["label;term", "DRUG;aspirin"], "WK201.*separated by ';'"),
        ("t.csv", ["label,term", "DRUG,"], "WK201.*line 2: the term is empty"),
        ("t.csv", ["label,term"], "WK200"),
        ("t.txt", NAMES, "WK201.*plain text gives no labels.*--term-label"),
        ("t.xlsx", [], "WK205"),
        ("t.csv", "label,term\nDRUG,Käse\n".encode("cp1252"), "WK104.*WINDOWS-1252"),
        ("t.csv", "label,term\nDRUG,Käse\n".encode("utf-16"), "WK104.*UTF-16"),
    ],
)
def test_unreadable_lists(write, findings, name, rows, expected):
    check(write(name, rows), findings)
    (error,) = found(findings, "error")
    assert re.search(expected, error, re.DOTALL)


def test_terms_without_header_but_with_a_label(write, findings):
    assert check(write("t.txt", NAMES), findings, term_label="DRUG") == {"DRUG": len(NAMES)}
    assert not findings.sorted()


def test_large_lists_are_sampled(write, findings, monkeypatch):
    monkeypatch.setattr("spacy_weakner.quality.checking.terms.LIMIT", 5)
    assert check(write("t.txt", NAMES), findings, term_label="DRUG") == {"DRUG": 5}
    assert "looked at the first 5 terms" in found(findings, "info")[0]
