import re

import pytest
import spacy

from spacy_weakner.checks.corpora import CheckedSentence
from spacy_weakner.checks.matching import MatchedTexts
from spacy_weakner.checks.terms import check_terms
from spacy_weakner.labeling.label import label
from spacy_weakner.labeling.sources import TermSource
from spacy_weakner.pipelines import WORD_TOKENIZER, blank_pipeline

from .conftest import found

NLP = spacy.blank("xx")
UNSEEN = MatchedTexts(NLP, 20)
NAMES = ["aspirin", "insulin", "ibuprofen", "warfarin", "heparin", "codeine", "morphine", "caffeine", "nicotine"]


@pytest.fixture
def check(write, findings):
    """Checks a list of rows."""

    def check(rows, seen=UNSEEN, header="label,term", name="t.csv", **settings):
        path = write(name, rows if isinstance(rows, bytes) else [header, *rows] if header else rows)
        return check_terms(TermSource(name="t", path=str(path), **settings), "--terms t", "en", seen, findings)

    return check


def test_kinds_of_bad_terms(check, findings):
    many = [f"N,{i}" for i in range(10, 30)]
    for rows, settings, expected in [
        (["DRUG,-", "DRUG,%"], {}, r'2 terms without any letter or digit.*stop = \["-", "%"\]'),
        (["DRUG,12", "DRUG,5"], {}, r'2 terms without any letter: .*stop = \["12", "5"\]'),
        (["DRUG,C"], {}, r'1 term of one character: C.*stop = \["C"\]'),
        (["DRUG,the", "DRUG,Of"], {}, r'2 terms among the stop words of .en.*stop = \["the", "Of"\]'),
        ([f"DRUG,{'very ' * 30}long"], {}, "1 term with more words than any text"),
        (["DRUG,Aspirin", "FOOD,aspirin"], {}, r"1 term with several labels: aspirin \(DRUG, FOOD\).*ambiguity"),
        # The stop list is compared as the ruler compares it.
        (["Y,5-7", "D,n’t"], {"stop": ["5 \u2013 7"]}, "1 term among the stop words of .en.: n’t"),
        # Words that are written together are other terms.
        (["A,Sea weed", "B,sea‑weed", "B,Seaweed", "C,Sea–weed"], {}, r"1 term with several labels: sea-weed \(B, C\)"),
        (
            ["P,polyvinyl chloride; PVC", "P,nylon|PA", "P,t(9;22)"],
            {},
            r"2 terms that may be several .*; PVC, nylon.PA",
        ),
        (["P,&beta;-glucan", "P,CO<sub>2</sub>", "P,&#946; cell"], {}, "3 terms with HTML.*: &beta;-glucan"),
        (
            ["P,asthma (disorder)", "P,aspirin [drug]", "P,iron (III)", "P,heart failure (HF)"],
            {},
            "2 terms with a qual",
        ),
        (
            ["P,asthma.*", "P,COVID-?19", "P,colou?r", "P,asthma*", "P,Guess?", "P,HLA-A*02:01"],
            {},
            "4 terms like regular",
        ),
        (['P,"""asthma"""', "P,“drug”", "P,'n' roll"], {}, "2 terms in quotes"),
        (["P,- asthma", "P,# drugs", 'P,"drug,"', "P,FC-Köln", "P,-ase"], {}, "3 terms with a mark of a list"),
        (many, {}, r'20 terms.*and 15 more.*"14", \.\.\.\]'),
    ]:
        before = len(findings.sorted())
        check([*(f"DRUG,{name}x" for name in NAMES), *rows], **settings)
        (warning,) = findings.sorted()[before:]
        assert warning.level == "warning" and re.search(expected, f"{warning.message} {warning.cure}")


@pytest.mark.parametrize(
    "row, shown",
    [
        ("nan,G,,", "nan"),
        ("BRCA1,nan,,", "BRCA1 (label nan)"),
        ("BRCA1,G,nan,", "BRCA1 (id nan)"),
        ("BRCA1,G,#N/A,x", "BRCA1 (id #N/A)"),
        ("BRCA1,G,7,None", "BRCA1 (name None)"),
        ("BRCA1,G,NA,", "BRCA1 (id NA)"),
        ("#NAME?,G,,", "#NAME?"),
        ("BRCA1,G,22298006.0,", "BRCA1 (id 22298006.0)"),
        ("BRCA1,G,1.13E+13,", "BRCA1 (id 1.13E+13)"),
        ("2-Sep,G,,", "2-Sep"),
        ("Mar-01,G,,", "Mar-01"),
        ("1.23E+05,G,,", "1.23E+05"),
        # Not these.
        ("BRCA1,G,22298006,", None),
        ("NA,G,,", None),
        ("Nan,G,,", None),
        ("nan mutation,G,C0.0,nano", None),
        ("SEPT2,G,2E3,", None),
        ("Sep-tember,G,,", None),
    ],
)
def test_cells_of_programs(check, findings, row, shown):
    labels = check([row, "TP53,G,8,"], header="term,label,id,name")
    assert sum(labels.values()) == 2  # nothing is dropped
    warnings = [text for text in found(findings, "warning") if "programs write" in text or "spreadsheets" in text]
    assert len(warnings) == (shown is not None)
    assert all("1 value that" in text and f": {shown}. ->" in text for text in warnings)


def test_codes_with_decimals(check, findings):
    check(["BRCA1,G,250.0", "TP53,G,250.1"], header="term,label,id")
    assert not found(findings, "warning")


TERMS = ["DIS,asthma", "DIS,heart failure", "S,fever", "S,it"]
GLUED = ["asthma[1]", "Heart failure(HF)", "asthma+fever", "asthma;treated", "(asthma)"]


@pytest.mark.parametrize(
    "texts, tokenizer, level, message",
    [
        (GLUED, None, "warning", "5 of 6 mentions of terms in the text"),
        (GLUED, WORD_TOKENIZER, "", ""),
        (["a fever[2]", *["fever, asthma."] * 20], None, "info", "1 of 41 mentions of terms in the text"),
        (["fever, (asthma) of heart failure.", "asthmatic", "can't", ""], None, "", ""),
    ],
)
def test_terms_glued_to_signs(check, findings, texts, tokenizer, level, message):
    check(TERMS, MatchedTexts(blank_pipeline("en", tokenizer), 20, (), texts))
    told = [finding for finding in findings.sorted() if "longer tokens" in finding.message]
    assert [finding.level for finding in told] == ([level] if level else [])
    assert all(message in finding.message and WORD_TOKENIZER in finding.cure for finding in told)


def test_the_cure_of_glued_terms(write, tmp_path):
    """The tokenizer finds them in raw text."""
    text, terms = write("a.txt", GLUED), write("a.csv", ["label,term", *TERMS])
    for tokenizer, n in ((None, 1), (WORD_TOKENIZER, 6)):
        report = label(text, tmp_path / f"{n}.spacy", terms=terms, lang="en", tokenizer=tokenizer)
        assert report.spans.total() == n


GOLD = [
    ("WAS was found", [(0, 1, "N")]),
    ("WAS is a gene", [(0, 1, "N")]),
    ("the year 1999", [(2, 3, "Y")]),
    ("of 12", []),
    *[("12 and 12", [])] * 2,
    ("All Saints sang at all", [(0, 2, "N")]),
    *[("All Saints sang", [(0, 2, "N")])] * 8,
]


def seen_gold(gold=GOLD):
    return MatchedTexts(
        NLP, 20, [CheckedSentence(str(n), text, tuple(text.split()), ents) for n, (text, ents) in enumerate(gold)]
    )


@pytest.mark.parametrize(
    "rows, level, expected",
    [
        # "WAS" must match in exact case, and is always right.
        (["N,WAS"], "info", "1 term among the stop words of 'en': WAS. Right matches in gold: 2 of 2."),
        (["Y,1999", "Y,2001"], "info", "2 terms without any letter: 1999, 2001. Right matches in gold: 1 of 1."),
        (["Y,1999", "Y,12"], "warning", 'in gold: 12 (0 right, 5 wrong). -> Remove them, or set stop = ["12"].'),
        (["N,of"], "warning", "more often wrong than right in gold: of (0 right, 1 wrong)."),
        # Few matches of one term say less than all of its kind.
        (["N,of", "N,WAS"], "info", "of, WAS. Right matches in gold: 2 of 3."),
        # Gold without a label does not tell where it is.
        (["OTHER,of"], "info", "1 term among the stop words of 'en': of. Right matches in gold: 0 of 0."),
        # The longest match of the whole list counts, however it is spelled.
        (["N,all", "N,All Saints"], "warning", "all (0 right, 1 wrong)."),
        # Spellings of one term count once.
        (["N,of", "N,Of", "N,OF"], "warning", "of (0 right, 1 wrong)."),
    ],
)
def test_gold_decides_on_doubtful_terms(check, findings, rows, level, expected):
    check(rows, seen_gold())
    (message,) = [text for text in found(findings, "info") + found(findings, "warning") if "repeated term" not in text]
    assert expected in message and message in found(findings, level)


def test_which_matches_in_gold_count(check, findings):
    # A longer match in any spelling counts.
    check(["N,the", "N,the \u2010 foo"], seen_gold([("the - foo", [(0, 3, "N")])] * 6))
    assert not found(findings, "warning")
    # Labels that the source leaves out do not count.
    check(["A,the", "B,the foo"], seen_gold([("the foo", [(1, 2, "X")])] * 6), labels={"A": "X"})
    assert "the (0 right, 6 wrong)" in found(findings, "warning")[0]


def test_only_complete_sentences_judge(check, findings):
    seen = seen_gold()
    partly = [CheckedSentence("9", "WAS 12", ("WAS", "12"), [], missing) for missing in (1, 2) * 20]
    check(["N,WAS", "Y,12"], seen._replace(gold=[*partly, *seen.gold]))
    (message,) = found(findings, "info")
    assert "WAS. Right matches in gold: 2 of 2." in message
    assert "12 (0 right, 5 wrong)" in found(findings, "warning")[0]


@pytest.mark.parametrize(
    "more", [(), (20, [CheckedSentence("1", "in Paris", ("in", "Paris"), [])]), (20, (), ["in Rome"])]
)
def test_terms_without_anything_visible_are_passed_over(check, findings, more):
    check(["N,\u200b", "N,\ufe0f", "N,\u00ad", "N,Paris"], MatchedTexts(NLP, *more))
    assert not found(findings, "error")


def test_without_gold_their_matches_are_counted(check, findings):
    check(["N,the"], MatchedTexts(NLP, 20, (), ["the one", "The other", "of"]))
    (warning,) = found(findings, "warning")
    assert "the (2 matches in the text)" in warning and "They may be right" in warning and "Remove" not in warning


def test_settings_of_the_source_are_known(check, findings):
    rows, settings = ["D,-", "D,aspirin", "F,aspirin", "D,the"], {"stop": ("The",), "min_length": 2}
    assert check(rows, ambiguity="drop", **settings) == {"D": 3, "F": 1}
    assert not found(findings, "warning")


@pytest.mark.parametrize(
    "name, rows, expected",
    [
        ("t.csv", [f"DRUG,{name}" for name in NAMES], "WK103.*no header.*sed -i '1i label,term'"),
        (
            "t.csv",
            ["name,type", *(f"{n},DRUG" for n in NAMES)],
            "WK103.*Probably: --term-columns label=type,term=name ",
        ),
        (
            "t.tsv",
            ["type\tname\tid", *(f"DRUG\t{n}\t{n}9" for n in NAMES)],
            "WK103.*--term-columns label=type,term=name,id=id ",
        ),
        # Advice keeps the delimiter, so that terms with commas stay whole.
        ("t.csv", [f"DRUG;{n}, alpha-{n}" for n in NAMES], "WK103.*no header.*sed -i '1i label;term'"),
        ("t.csv", ["type|name", *(f'DRUG|"1,2-{n}"' for n in NAMES)], "WK103.*--term-columns label=type,term=name "),
        ("t.tsv", ["name,type", *(f'"1,2-{n}",DRUG' for n in NAMES)], "WK103.*--term-columns label=type,term=name "),
        ("t.csv", ["label,term", "DRUG,"], "WK103.*line 2: the term is empty"),
        ("t.csv", ["label,term"], "WK200"),
        ("t.txt", NAMES, "WK103.*plain text has no labels.*--term-label"),
        ("t.xls", [], "WK105"),
        (
            "t.csv",
            ["Code;Bezeichnung;Synonyme;Typ", *(f"{n};{n};x, {n}-2, {n}, y;DRUG" for n in NAMES)],
            "WK103.*--term-columns label=Typ,term=Bezeichnung,synonyms=Synonyme,id=Code --synonyms-separator ','",
        ),
        ("t.csv", ["Kind|What", *(f"DRUG|{n}" for n in NAMES)], "WK103.*--term-columns label=Kind,term=What "),
        ("t.csv", "label,term\nDRUG,Käse\n".encode("cp1252"), "WK104.*WINDOWS-1252"),
        ("t.csv", "label,term\nDRUG,Käse\n".encode("utf-16"), "WK104.*UTF-16"),
    ],
)
def test_unreadable_lists(check, findings, name, rows, expected):
    check(rows, header="", name=name)
    (error,) = found(findings, "error")
    assert re.search(expected, error, re.DOTALL)


@pytest.mark.parametrize(
    "cell, separator, warned",
    [
        ("x, y", "|", True),
        ("x, y", ",", False),
        ("x|y", "|", False),
        ("x|y", ";", True),
        ("x", "|", False),
    ],
)
def test_another_separator_of_synonyms(check, findings, cell, separator, warned):
    check([f"DRUG;{n};{cell}" for n in NAMES], header="label;term;synonyms", synonyms_separator=separator)
    assert any("--synonyms-separator" in text for text in found(findings, "warning")) == warned


@pytest.mark.parametrize("cell, warned", [("x; y", True), ("x|y|z", False), ("x, y", False)])
def test_mixed_separators_of_synonyms(check, findings, cell, warned):
    rows = [f'DRUG,{n},"{cell if i == 3 else "u|v"}"' for i, n in enumerate(NAMES)]
    check(rows, header="label,term,synonyms")
    assert any("cells with synonyms" in text for text in found(findings, "warning")) == warned


@pytest.mark.parametrize(
    "title, name, warned",
    [("drug", "list.csv", 1), ("Name", "list.csv", 1), ("bird", "birds.csv", 1), ("aspirin", "list.csv", 0)],
)
def test_a_title_that_is_read_as_a_term(check, findings, title, name, warned):
    assert check(["heparin"], header=title, name=name, term_label="DRUG") == {"DRUG": 2}
    assert len([text for text in found(findings, "warning") if f"term={title.lower()}" in text]) == warned


@pytest.mark.parametrize(
    "more, level, message",
    [
        ('"aliases": ["ASA"]', "warning", "not read: aliases"),
        ('"Synonyms": ["ASA"]', "warning", "not read: Synonyms"),
        ('"url": "x"', "info", "not read: url"),
        ('"synonyms": "ASA, acetylsalicylic acid"', "warning", "',' is in 1 of 1 cells"),
        ('"synonyms": ["ASA, x"], "id": "7"', "warning", ""),
    ],
)
def test_keys_that_are_not_read_are_named(check, findings, more, level, message):
    check(
        [f'{{"label": "DRUG", "term": "aspirin", {more}}}', '{"label": "DRUG", "pattern": "x1"}'],
        header="",
        name="t.jsonl",
    )
    assert any(message in text for text in found(findings, level)) == bool(message)


def test_mapped_columns_are_not_guessed_again(check, findings):
    rows = ["Typ;Bezeichnung;binding", *(f"DRUG;{n};" for n in NAMES), f"DRUG;{NAMES[0]};always"]
    check(rows, header="", term_columns="label=Typ,term=Bezeichnung")
    (error,) = found(findings, "error")
    assert "must or never" in error and "--term-columns" not in error


def test_terms_without_header_but_with_a_label(check, findings):
    assert check(NAMES, header="", name="t.txt", term_label="DRUG") == {"DRUG": len(NAMES)}
    assert not findings.sorted()


def test_large_lists(check, findings, monkeypatch):
    monkeypatch.setattr("spacy_weakner.checks.terms.LIMIT", 20)
    # A sample has all terms of one text.
    assert check([f"{label},term{i}" for label in "AB" for i in range(100)]) == {"A": 100, "B": 100}
    several = re.search(r"(\d+) terms with several labels", found(findings, "warning")[0])
    looked_at = re.search(
        r"labels are counted in all 200 terms, but only (\d+) were checked", found(findings, "info")[0]
    )
    assert 0 < 2 * int(several[1]) == int(looked_at[1]) <= 20


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
def test_terms_that_only_a_variant_finds(check, findings, term, texts, is_counted, attr, level):
    check([f"D,{term}"], MatchedTexts(NLP, texts=texts), attr=attr)
    messages = [message for message in found(findings, level) if "variant characters" in message]
    assert len(messages) == is_counted


# Ids


def test_ids_with_several_labels_and_terms_with_several_ids(check, findings):
    check(["D,cold,1", "D,Cold,2", "D,chill,1", "X,frost,2", "D,cough,", "D,cough,"], header="label,term,id")
    (warning,) = found(findings, "warning")
    assert "1 id with several labels: 2 (D, X)" in warning
    infos = "".join(found(findings, "info"))
    assert "1 term with several ids: cold (D: 1, 2)" in infos and "1 repeated term" in infos


@pytest.mark.parametrize(
    "ids, level, expected",
    [
        ({"1": "", "3|2": "", "9": "cough"}, "info", r"1 of 3 .*: 9 \(cough\)\."),
        ({"M:1": "x", "": ""}, "warning", r"1 of 1 .*: M:1 \(x\)\."),
    ],
)
def test_gold_ids_that_the_list_lacks(check, findings, ids, level, expected):
    gold = [
        CheckedSentence("", word or "a", (word or "a",), [(0, 1, "D")], ids={(0, 1, "D"): (each,)} if each else {})
        for each, word in ids.items()
    ]
    gold.append(CheckedSentence("", "b", ("b",), [(0, 1, "X")], ids={(0, 1, "X"): ("7",)}))
    check(["D,cold,1", "D,frost,2"], MatchedTexts(NLP, 20, gold), header="label,term,id")
    (finding,) = [each for each in found(findings, level) if "not in the list" in each]
    assert re.search(expected, finding)


@pytest.mark.parametrize("name, separator", [("t.csv", ","), ("t.tsv", "\t")])
def test_columns_that_are_not_read_are_named(check, findings, name, separator):
    header = ["Label", "term", "mesh", "code", "name", "Synonyms", "Note", ""]
    row = separator.join(["D", "cold", "1", "2", "Cold", "chill", "", ""])
    check([row], header=separator.join(header), name=name)
    check([row], header=separator.join(header), name=name, term_columns="id=mesh")
    first, second = found(findings, "info")
    assert "not read: mesh, note." in first and "not read: code, note." in second
    header[-1] = "accept"  # a reviewed list
    check([f"{row}yes"], header=separator.join(header), name=name)
    assert len(found(findings, "info")) == 2


def test_ids_of_a_named_column(check, findings):
    rows = ["D,cold,1", "X,frost,1"]
    check(rows, header="label,term,mesh")
    assert not found(findings, "warning")
    check(rows, header="label,term,mesh", term_columns="id=mesh")
    assert "1 id with several labels" in found(findings, "warning")[0]
