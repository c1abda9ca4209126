import re

import pytest
import spacy

from spacy_weakner.checks.corpora import Sentence
from spacy_weakner.checks.matching import Seen
from spacy_weakner.checks.terms import check_terms
from spacy_weakner.labeling.sources import TermSource

from .conftest import found

NAMES = ["aspirin", "insulin", "ibuprofen", "warfarin", "heparin", "codeine", "morphine", "caffeine", "nicotine"]


def check(path, findings, seen=None, **settings):
    seen = seen or Seen(spacy.blank("xx"), 20)
    return check_terms(TermSource(name="t", path=str(path), **settings), "--terms t", "en", seen, findings)


@pytest.mark.parametrize(
    "rows, expected",
    [
        (["DRUG,-", "DRUG,%"], r'2 terms without any letter or digit.*stop = \["-", "%"\]'),
        (["DRUG,12", "DRUG,5"], r'2 terms without any letter: .*stop = \["12", "5"\]'),
        (["DRUG,C"], r'1 term of one character: C.*stop = \["C"\]'),
        (["DRUG,the", "DRUG,Of"], r'2 terms among the stop words of .en.*stop = \["the", "Of"\]'),
        ([f"DRUG,{'very ' * 30}long"], "1 term with more words than any text"),
        (["DRUG,Aspirin", "FOOD,aspirin"], r"1 term with several labels: aspirin \(DRUG, FOOD\).*ambiguity"),
    ],
)
def test_bad_terms(write, findings, rows, expected):
    check(write("t.csv", ["label,term", *(f"DRUG,{name}x" for name in NAMES), *rows]), findings)
    (warning,) = found(findings, "warning")
    assert re.search(expected, warning)


def test_the_stop_list_is_compared_as_the_ruler_compares_it(write, findings):
    check(write("t.csv", ["label,term", "Y,5-7", "D,n’t"]), findings, stop=["5 \u2013 7"])
    (warning,) = found(findings, "warning")
    assert re.search("1 term among the stop words of .en.: n’t", warning)


def test_words_written_together_are_other_terms(write, findings):
    check(write("t.csv", ["label,term", "A,Sea weed", "B,sea‑weed", "B,Seaweed", "C,Sea–weed"]), findings)
    (warning,) = found(findings, "warning")
    assert re.search(r"1 term with several labels: sea-weed \(B, C\)", warning)


def test_many_bad_terms_are_shown_in_part(write, findings):
    check(write("t.csv", ["label,term", *(f"N,{i}" for i in range(10, 30))]), findings)
    (warning,) = found(findings, "warning")
    assert "20 terms" in warning and "and 15 more" in warning and '"14", ...]' in warning


GOLD = [
    ("WAS was found", [(0, 1, "N")]),
    ("WAS is a gene", [(0, 1, "N")]),
    ("the year 1999", [(2, 3, "Y")]),
    ("of 12", []),
    *[("12 and 12", [])] * 2,
    ("All Saints sang at all", [(0, 2, "N")]),
    *[("All Saints sang", [(0, 2, "N")])] * 8,
]


def seen_gold():
    nlp = spacy.blank("xx")
    sentences = [Sentence(str(n), text, tuple(text.split()), ents) for n, (text, ents) in enumerate(GOLD)]
    return Seen(nlp, 20, sentences)


@pytest.mark.parametrize(
    "rows, level, expected",
    [
        # "WAS" must match in exact case, and is always right.
        (["N,WAS"], "info", "1 term among the stop words of 'en': WAS. Of their 2 matches in gold 2 are right."),
        (
            ["Y,1999", "Y,2001"],
            "info",
            "2 terms without any letter: 1999, 2001. Of their 1 match in gold 1 are right.",
        ),
        (["Y,1999", "Y,12"], "warning", 'in gold: 12 (0 right, 5 wrong). -> Remove them, or set stop = ["12"].'),
        (["N,of"], "warning", "more often wrong than right in gold: of (0 right, 1 wrong)."),
        # Few matches of one term say less than all of its kind.
        (["N,of", "N,WAS"], "info", "of, WAS. Of their 3 matches in gold 2 are right."),
        # Gold without a label does not tell where it is.
        (["OTHER,of"], "info", "1 term among the stop words of 'en': of. Of their 0 matches in gold 0 are right."),
        # The longest match of the whole list counts, however it is spelled.
        (["N,all", "N,All Saints"], "warning", "all (0 right, 1 wrong)."),
    ],
)
def test_gold_decides_on_doubtful_terms(write, findings, rows, level, expected):
    check(write("t.csv", ["label,term", *rows]), findings, seen_gold())
    (message,) = found(findings, "info") + found(findings, "warning")
    assert expected in message and len(found(findings, level)) == 1


def test_spellings_of_one_term_count_once(write, findings):
    check(write("t.csv", ["label,term", "N,of", "N,Of", "N,OF"]), findings, seen_gold())
    assert "of (0 right, 1 wrong)." in found(findings, "warning")[0]


def test_a_longer_match_counts_in_any_spelling(write, findings):
    words = ("the", "-", "foo")
    gold = [Sentence(str(n), "the - foo", words, [(0, 3, "N")]) for n in range(6)]
    check(write("t.csv", ["label,term", "N,the", "N,the \u2010 foo"]), findings, Seen(spacy.blank("xx"), 20, gold))
    assert not found(findings, "warning")


def test_labels_that_the_source_leaves_out_do_not_count(write, findings):
    gold = [Sentence(str(n), "the foo", ("the", "foo"), [(1, 2, "X")]) for n in range(6)]
    seen = Seen(spacy.blank("xx"), 20, gold)
    check(write("t.csv", ["label,term", "A,the", "B,the foo"]), findings, seen, labels={"A": "X"})
    assert "the (0 right, 6 wrong)" in found(findings, "warning")[0]


@pytest.mark.parametrize("seen", [None, "gold", "text"])
def test_terms_without_anything_visible_are_passed_over(write, findings, seen):
    gold = [Sentence("1", "in Paris", ("in", "Paris"), [])]
    nlp = spacy.blank("xx")
    given = {None: Seen(nlp), "gold": Seen(nlp, 20, gold), "text": Seen(nlp, 20, (), ["in Rome"])}[seen]
    check(write("t.csv", ["label,term", "N,\u200b", "N,\ufe0f", "N,\u00ad", "N,Paris"]), findings, given)
    assert not found(findings, "error")


def test_only_complete_sentences_judge(write, findings):
    seen = seen_gold()
    partly = [Sentence("9", "WAS 12", ("WAS", "12"), [], missing) for missing in (1, 2) * 20]
    check(write("t.csv", ["label,term", "N,WAS", "Y,12"]), findings, seen._replace(gold=[*partly, *seen.gold]))
    (message,) = found(findings, "info")
    assert "WAS. Of their 2 matches in gold 2 are right." in message
    assert "12 (0 right, 5 wrong)" in found(findings, "warning")[0]


def test_without_gold_their_matches_are_counted(write, findings):
    seen = Seen(spacy.blank("xx"), 20, (), ["the one", "The other", "of"])
    check(write("t.csv", ["label,term", "N,the"]), findings, seen)
    (warning,) = found(findings, "warning")
    assert "the (2 matches in the text)" in warning and "They may be right" in warning and "Remove" not in warning


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
        ("t.csv", [f"DRUG,{name}" for name in NAMES], "WK103.*no header.*sed -i '1i label,term'"),
        (
            "t.csv",
            ["name,type", *(f"{name},DRUG" for name in NAMES)],
            "WK103.*'type' seems.*'name' the term.*'term,label'",
        ),
        ("t.tsv", ["type\tname\tid", *(f"DRUG\t{n}\t{n}9" for n in NAMES)], "WK103.*'label<tab>term<tab>other2'"),
        ("t.csv", ["label;term", "DRUG;aspirin"], "WK103.*separated by ';'"),
        ("t.csv", ["label,term", "DRUG,"], "WK103.*line 2: the term is empty"),
        ("t.csv", ["label,term"], "WK200"),
        ("t.txt", NAMES, "WK103.*plain text gives no labels.*--term-label"),
        ("t.xlsx", [], "WK105"),
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


def test_a_sample_of_a_large_list_has_all_terms_of_one_text(write, findings, monkeypatch):
    monkeypatch.setattr("spacy_weakner.checks.terms.LIMIT", 20)
    check(write("t.csv", ["label,term", *(f"{label},term{i}" for label in "AB" for i in range(100))]), findings)
    several = re.search(r"(\d+) terms with several labels", found(findings, "warning")[0])
    looked_at = re.search(r"; (\d+) of them", found(findings, "info")[0])
    assert 0 < 2 * int(several[1]) == int(looked_at[1]) <= 20


def test_labels_of_large_lists_are_counted_in_all_of_it(write, findings, monkeypatch):
    monkeypatch.setattr("spacy_weakner.checks.terms.LIMIT", 5)
    rows = [*(f"A,{name}" for name in NAMES), "B,Kiel", "C,Anna", "C,the"]
    assert check(write("t.csv", ["label,term", *rows]), findings) == {"A": len(NAMES), "B": 1, "C": 2}
    assert "labels are counted in all 12 terms; " in found(findings, "info")[-1]


@pytest.mark.parametrize(
    "term, texts, is_counted",
    [
        ("Parkinson's disease", ["He has Parkinson’s\n disease."], True),
        ("COVID‑19", ["COVID-19 again"], True),
        ("Parkinson's disease", ["He has Parkinson’s disease.", "PARKINSON'S disease"], False),
        ("Parkinson's disease", ["Crohn’s disease"], False),
        ("aspirin", ["aspirin it’s"], False),
    ],
)
@pytest.mark.parametrize("attr, level", [("FORM", "info"), ("ORTH", "warning")])
def test_terms_that_only_a_variant_finds(write, findings, term, texts, is_counted, attr, level):
    source = TermSource(name="t", path=str(write("t.csv", ["label,term", f"D,{term}"])), attr=attr)
    check_terms(source, "--terms t", "en", Seen(spacy.blank("xx"), texts=texts), findings)
    messages = [message for message in found(findings, level) if "variants of characters" in message]
    assert len(messages) == is_counted


# Ids


def test_ids_with_several_labels_and_terms_with_several_ids(write, findings):
    rows = ["D,cold,1", "D,Cold,2", "D,chill,1", "X,frost,2", "D,cough,", "D,cough,"]
    check(write("t.csv", ["label,term,id", *rows]), findings)
    (warning,) = found(findings, "warning")
    assert re.search(r"1 id with several labels: 2 \(D, X\)", warning)
    several, repeated = sorted(found(findings, "info"))[::-1]
    assert re.search(r"1 term with several ids: cold \(D: 1, 2\)", several + repeated)
    assert re.search(r"1 term more than once", several + repeated)


@pytest.mark.parametrize(
    "ids, level", [({"1": "", "3|2": "", "9": "cough"}, "info"), ({"M:1": "x", "": ""}, "warning")]
)
def test_gold_ids_that_the_list_lacks(write, findings, ids, level):
    gold = [
        Sentence("", word or "a", (word or "a",), [(0, 1, "D")], ids={(0, 1, "D"): (each,)} if each else {})
        for each, word in ids.items()
    ]
    gold.append(Sentence("", "b", ("b",), [(0, 1, "X")], ids={(0, 1, "X"): ("7",)}))
    path = write("t.csv", ["label,term,id", "D,cold,1", "D,frost,2"])
    check(path, findings, Seen(spacy.blank("xx"), 20, gold))
    (finding,) = [each for each in found(findings, level) if "lacks" in each]
    assert re.search(r"1 of 3 .*: 9 \(cough\)\." if level == "info" else r"1 of 1 .*: M:1 \(x\)\.", finding)


def test_ids_of_a_named_column(write, findings):
    path = write("t.csv", ["label,term,mesh", "D,cold,1", "X,frost,1"])
    check(path, findings)
    assert not found(findings, "warning")
    check(path, findings, id_column="mesh")
    assert "1 id with several labels" in found(findings, "warning")[0]
