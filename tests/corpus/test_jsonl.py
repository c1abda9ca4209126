import gzip
import json

import pytest
import spacy

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.counts import RowCounts, RowError
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.formats.reading import Reading, read_corpus
from spacy_weakner.corpus.formats.writing import write_corpus
from spacy_weakner.corpus.gold import Gold, find_gold
from spacy_weakner.corpus.jsonl import row_from_doc
from spacy_weakner.corpus.records import BLANK, BLANK_TOKENS
from spacy_weakner.errors import WeaknerError

from ..util import doc_from_row, iob

NLP = spacy.blank("xx")
TOKENS = ["New", "York", "and", "Paris", "rock"]


def write(path, *lines):
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines), encoding="utf-8")
    return path


def read(path, counts=None, **settings):
    return read_corpus(path, NLP, Reading(sentences=False, **settings), format="jsonl", counts=counts)


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"tokens": TOKENS, "ents": [[0, 2, "CITY"], [3, 4, "CITY"]]}, "BIOBO"),
        ({"tokens": TOKENS, "spans": [{"start": 0, "end": 2, "label": "CITY"}]}, "BIOOO"),
        ({"tokens": TOKENS, "ents": []}, "OOOOO"),
        ({"tokens": TOKENS, "ents": None}, "-----"),
        ({"tokens": TOKENS}, "-----"),
        ({"tokens": TOKENS, "ents": [[0, 2, "CITY"]], "missing": [[2, 4]]}, "BI--O"),
        ({"tokens": TOKENS, "ents": [[0, 2, "CITY"]], "missing": [[0, 5]]}, "BI---"),
        ({"text": "New York and Paris rock", "ents": [[0, 8, "CITY"], [13, 18, "CITY"]]}, "BIOBO"),
        ({"text": "New York and Paris rock", "ents": [[0, 9, "CITY"], [12, 18, "CITY"]]}, "BIOBO"),
        ({"text": "New York and Paris rock", "ents": [], "missing": [[9, 18]]}, "OO--O"),
        ({"text": "New  York\nrocks", "ents": [[0, 9, "CITY"]]}, "BIIOO"),
    ],
)
def test_entities_missing_and_outside(row, expected):
    doc = doc_from_row(row, NLP)
    assert iob(doc) == expected
    # Tokens of white space are left out of rows of tokens.
    again = doc_from_row(row_from_doc(doc), NLP)
    assert [(t.text, t.ent_iob, t.ent_type) for t in again if not t.is_space] == [
        (t.text, t.ent_iob, t.ent_type) for t in doc if not t.is_space
    ]


def test_weak_groups_scores_and_overlaps():
    row = {
        "tokens": TOKENS,
        "weak_ents": {
            "a": [[0, 2, "CITY", 0.5], [0, 2, "ORG"], {"start": 1, "end": 4, "label": "X", "score": 1}],
            "b": [],
            "c": None,
        },
    }
    doc = doc_from_row(row, NLP)
    assert weak.weak_sources(doc) == ["a", "b"]
    assert weak.group_entities(doc, "weak:a") == [(0, 2, "CITY"), (0, 2, "ORG"), (1, 4, "X")]
    assert weak.group_scores(doc, "weak:a") == [0.5, None, 1.0]
    assert iob(doc) == "-----"


def test_cats_and_identifiers():
    doc = doc_from_row({"id": 7, "tokens": ["a"], "cats": {"X": 1, "Y": 0.25, "Z": False}}, NLP)
    assert weak.get_id(doc) == "7" and doc.cats == {"X": 1.0, "Y": 0.25, "Z": 0.0}


@pytest.mark.parametrize(
    "row, reason",
    [
        ("{", "not JSON"),
        ('{"tokens": ["a"], "cats": {"X": NaN}}', "NaN is not a number"),
        ("[" * 100_000, "nested too deeply"),
        ([["x" * 1_000_000]], "expected a JSON object"),
        ([1], "expected a JSON object"),
        ({}, "neither 'tokens' nor 'text'"),
        ({"tokens": ["a"], "text": "a"}, "both 'tokens' and 'text'"),
        ({"tokens": []}, "'tokens' is empty"),
        ({"tokens": "abc"}, "'tokens' must be a list"),
        ({"tokens": ["", " \u3000"]}, "only white space"),
        ({"tokens": ["a", 1]}, "token 1 "),
        ({"tokens": ["\ud800"]}, "surrogate"),
        ({"tokens": ["a"], "spaces": [True, False]}, "'spaces'"),
        ({"tokens": ["a"], "spaces": [1]}, "'spaces'"),
        ({"text": " "}, "'text' must be a string"),
        ({"text": 3}, "'text' must be a string"),
        ({"tokens": TOKENS, "ents": [], "spans": []}, "both 'ents' and 'spans'"),
        ({"tokens": TOKENS, "ents": {}}, "'ents' must be a list"),
        ({"tokens": TOKENS, "ents": [[0, 1]]}, r"expected \[start, end, label\]"),
        ({"tokens": TOKENS, "ents": [[0, 1, "A", 0.5]]}, r"expected \[start, end, label\]"),
        ({"tokens": TOKENS, "ents": [{"start": 0, "label": "A"}]}, r"expected \[start, end, label\]"),
        ({"tokens": TOKENS, "ents": [[0, 1, ""]]}, "label of a span must be a string"),
        ({"tokens": TOKENS, "ents": [[0, 1, None]]}, "label of a span must be a string"),
        ({"tokens": TOKENS, "ents": [[0.0, 1, "A"]]}, "whole numbers"),
        ({"tokens": TOKENS, "ents": [[False, True, "A"]]}, "whole numbers"),
        ({"tokens": TOKENS, "ents": [[0, 6, "A"]]}, "within the 5 tokens"),
        ({"tokens": TOKENS, "ents": [[-1, 2, "A"]]}, "begins before"),
        ({"tokens": TOKENS, "ents": [[2, 2, "A"]]}, "is empty"),
        ({"tokens": TOKENS, "ents": [[1, 3, "B"], [0, 2, "A"]]}, r'overlap.*\[0, 2, "A"\] and \[1, 3, "B"\]'),
        ({"tokens": TOKENS, "gold": [[0, 2, "A"], [0, 2, "A"]]}, "gold overlap"),
        ({"tokens": TOKENS, "missing": [[0]]}, r"expected \[start, end\]"),
        ({"text": "New York", "ents": [[0, 6, "A"]]}, r"\('New Yo'\) does not begin and end at token boundaries"),
        ({"text": "New York", "ents": [[3, 4, "A"]]}, "only white space"),
        ({"text": "New York", "ents": [[0, 9, "A"]]}, "within the 8 characters"),
        (
            {"tokens": TOKENS, "weak_ents": [{"start": 0, "end": 1, "label": "A", "score": "high"}]},
            "score must be a number",
        ),
        ({"tokens": TOKENS, "weak_ents": {"": []}}, "name of a source is empty"),
        ({"tokens": TOKENS, "weak_ents": "x"}, "must be a list"),
        ({"tokens": TOKENS, "cats": ["X"]}, "'cats' must be an object"),
        ({"tokens": TOKENS, "cats": {"X": "1"}}, "cats: X must be a number"),
        ({"tokens": TOKENS, "id": 1.5}, "'id' must be a string"),
        ({"tokens": TOKENS, "weak": True, "confidence": "0.5"}, "confidence must be a number"),
        ({"tokens": TOKENS, "weak": True, "confidence": 7}, "confidence must be between 0 and 1"),
        ({"tokens": TOKENS, "weak": "false"}, "'weak' must be true or false"),
        ({"tokens": TOKENS, "weak": 1}, "'weak' must be true or false"),
        ('{"tokens": ["a"], "weak_ents": [[0, 1, "A", 1e999]]}', "the score is too large"),
        ({"tokens": TOKENS, "cats": {"X": 10**400}}, "too many digits"),
        ('{"tokens": ["a"], "id": ' + "1" * 5000 + "}", "a number has too many digits"),
    ],
)
def test_malformed_rows_are_named(tmp_path, row, reason):
    path = write(tmp_path / "bad.jsonl", {"tokens": ["fine"]}, "", row)
    with pytest.raises(WeaknerError, match=rf"WK103.*bad\.jsonl, line 3: .*{reason}") as error:
        list(read(path))
    assert len(str(error.value)) < 400


def test_nothing_is_known_where_spans_were_dropped(tmp_path):
    row = {"text": "in New York or so", "ents": [[3, 9, "A"]], "missing": [[13, 14]]}
    row["gold"] = [[3, 5, "A"], [15, 17, "B"]]
    (doc,) = read(write(tmp_path / "a.jsonl", row), misaligned="drop")
    assert [token.i for token in doc if token.ent_iob == 0] == [1, 2, 3]
    assert find_gold(doc) == Gold(frozenset({(4, 5, "B")}), frozenset({1}))
    again = doc_from_row(row_from_doc(doc), NLP)
    assert find_gold(again) == find_gold(doc)
    assert [token.ent_iob for token in again] == [token.ent_iob for token in doc]


@pytest.mark.parametrize(
    "misaligned, entities, unknown, counted",
    [
        ("drop", [(2, 3, "C")], [0, 1], (3, 0)),
        ("expand", [(0, 2, "A"), (2, 3, "C")], [], (1, 2)),
        ("contract", [(0, 1, "A"), (2, 3, "C")], [1], (1, 2)),
    ],
)
def test_misaligned_spans_can_be_moved(misaligned, entities, unknown, counted):
    row = {"text": "New York city", "ents": [[0, 6, "A"], [6, 8, "B"], [9, 13, "C"]], "weak_ents": [[1, 8, "A"]]}
    counts = RowCounts()
    doc = doc_from_row(row, NLP, misaligned=misaligned, counts=counts)
    assert weak.doc_entities(doc) == entities
    assert [token.i for token in doc if token.ent_iob == 0] == unknown
    assert (counts.misaligned, counts.moved) == counted


@pytest.mark.parametrize("blank", ["\n", " \u3000", "\u00a0", ""])
def test_tokens_of_white_space_are_dropped(blank):
    row = {
        "tokens": [blank, "Anna", blank, "Lee", blank, blank, "left", blank],
        "ents": [[1, 4, "PER"], [4, 6, "PER"]],
        "missing": [[4, 8]],
        "wrong": [[5, 7, "LOC"]],
        "weak_ents": {"s": [[0, 2, "PER", 0.5], [2, 3, "X"], [6, 7, "X"]]},
        "gold": [[6, 8, "X"]],
        "gold_missing": [[2, 4], [0, 1]],
    }
    counts = RowCounts()
    doc = doc_from_row(row, NLP, counts=counts)
    again = row_from_doc(doc)
    assert again == {
        "tokens": ["Anna", "Lee", "left"],
        "ents": [[0, 2, "PER"]],
        "missing": [[2, 3]],
        "wrong": [[2, 3, "LOC"]],
        "weak_ents": {"s": [[0, 1, "PER", 0.5], [2, 3, "X"]]},
        "gold": [[2, 3, "X"]],
        "gold_missing": [[1, 2]],
    }
    assert counts.notes == {BLANK_TOKENS: 5, BLANK: 2}
    with pytest.raises(WeaknerError, match="within the 8 tokens"):
        doc_from_row({**row, "ents": [[7, 9, "PER"]]}, NLP)


@pytest.mark.parametrize(
    "tokens, spaces, text",
    [
        (["Anna", "\n", "left"], [False, False, False], "Anna left"),
        (["Anna", "", "left"], [False, False, False], "Annaleft"),
        (["Anna", "", "left"], [False, True, False], "Anna left"),
        (["\n", "Anna", "left", "\n"], [True, True, False, False], "Anna left "),
        (["Anna", "\n", "left"], None, "Anna left "),
    ],
)
def test_blanks_stand_where_tokens_of_white_space_were(tokens, spaces, text):
    doc = doc_from_row({"tokens": tokens} if spaces is None else {"tokens": tokens, "spaces": spaces}, NLP)
    assert doc.text == text and doc.has_unknown_spaces == (spaces is None)


def test_gzip_bom_and_long_lines(tmp_path):
    text = "word " * 100_000 + "New York"
    row = {"text": text, "ents": [[len(text) - 8, len(text), "CITY"]]}
    path = tmp_path / "long.jsonl.gz"
    path.write_bytes(gzip.compress(("\ufeff" + json.dumps(row) + "\n").encode("utf-8")))
    (doc,) = read(path)
    assert weak.doc_entities(doc) == [(100_000, 100_002, "CITY")]


def test_streams(tmp_path):
    path = write(tmp_path / "a.jsonl", {"tokens": ["fine"]}, "{broken")
    assert next(read(path)).text == "fine "


@pytest.mark.parametrize(
    "row",
    [
        {"tokens": TOKENS, "ents": [[0, 2, "CITY"]]},
        {"tokens": TOKENS, "ents": None},
        {"tokens": TOKENS, "ents": []},
        {"id": "x", "tokens": TOKENS, "ents": [[0, 2, "CITY"]], "missing": [[2, 3], [4, 5]]},
        {"tokens": TOKENS, "spaces": [True, False, True, True, False], "ents": []},
        {"tokens": TOKENS, "ents": [], "weak_ents": {"a": [[0, 2, "C", 0.5], [1, 3, "D"]], "b": []}},
        {"tokens": ["我", "住", "在", "北", "京", "。"], "ents": [[3, 5, "城市"]], "cats": {"旅行": 1.0}},
        {
            "tokens": TOKENS,
            "ents": [[0, 1, "CITY"]],
            "gold": [[0, 2, "CITY"]],
            "weak": True,
            "confidence": 0.75,
        },
        {"tokens": ["O'Neil\u2028", "x"], "ents": []},
    ],
)
def test_round_trip_through_docs_and_files(tmp_path, row):
    doc = doc_from_row(row, NLP)
    write_docs(tmp_path / "a.spacy", [doc])
    (stored,) = read_docs(tmp_path / "a.spacy", NLP.vocab)
    assert row_from_doc(stored) == row
    assert write_corpus(tmp_path / "a.jsonl", [stored]).docs == 1
    (again,) = read(tmp_path / "a.jsonl")
    assert row_from_doc(again) == row
    assert iob(again) == iob(doc)


def test_what_annotators_are_told_stays_and_foreign_notes_are_counted(tmp_path):
    counts = RowCounts()
    rows = ['{"tokens": ["a"], "meta": {"why": "x", "score": 0.5}}', '{"tokens": ["a"], "meta": {"pages": [1]}}']
    told, foreign = read(write(tmp_path / "a.jsonl", *rows), counts=counts)
    assert row_from_doc(told)["meta"] == {"why": "x", "score": 0.5}
    assert "meta" not in row_from_doc(foreign)
    assert counts.ignored == {"meta": 1}


# Ids of concepts


@pytest.mark.parametrize(
    "ents",
    [
        [[0, 2, "CITY", "Q60"], [3, 4, "CITY"]],
        [{"start": 0, "end": 2, "label": "CITY", "kb_id": "Q60"}, [3, 4, "CITY"]],
    ],
)
def test_ids_of_entities_and_weak_labels_come_back(ents):
    nlp = spacy.blank("xx")
    weak_ents = {"a": [[0, 2, "CITY", 0.5, "Q60"], [3, 4, "CITY", "Q90"], [3, 4, "X", 0.25]]}
    row = {"tokens": ["New", "York", "and", "Paris"], "ents": ents, "weak_ents": weak_ents}
    doc = doc_from_row(row, nlp)
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("New York", "Q60"), ("Paris", "")]
    assert [span.kb_id_ for span in doc.spans["weak:a"]] == ["Q60", "Q90", ""]
    again = row_from_doc(doc)
    assert again["ents"] == [[0, 2, "CITY", "Q60"], [3, 4, "CITY"]]
    assert again["weak_ents"] == weak_ents
    row = {"tokens": ["A", "b"], "ents": [[0, 1, "X"]], "weak": True, "gold": [[0, 1, "D", "G1"], [1, 2, "D"]]}
    assert row_from_doc(doc_from_row(row, nlp))["gold"] == row["gold"]
    several = doc_from_row({"tokens": ["A"], "weak_ents": {"a": [[0, 1, "D", "x"], [0, 1, "D", "y"]]}}, nlp)
    assert weak.group_ids(several, "weak:a") == {(0, 1, "D"): ("x", "y")}
    text = doc_from_row({"text": "in New York", "ents": [[3, 11, "CITY", "Q60"]]}, nlp)
    assert [(ent.text, ent.kb_id_) for ent in text.ents] == [("New York", "Q60")]


@pytest.mark.parametrize("bad", ["x" * 201, True, 1.5, {"id": "x"}])
def test_ids_that_cannot_be(bad):
    with pytest.raises(RowError):
        doc_from_row({"tokens": ["a"], "ents": [{"start": 0, "end": 1, "label": "A", "kb_id": bad}]}, spacy.blank("xx"))


@pytest.mark.parametrize("key", ["ents", "spans", "wrong", "weak_ents"])
@pytest.mark.parametrize(
    "start, end, text, fits",
    [
        (0, 2, "New York", True),
        (0, 2, "NewYork ", True),
        (0, 2, "NEW York", True),
        (0, 2, "\uff2eew York", True),
        (0, 2, None, True),
        (0, 1, "New York", False),  # as where the end is the last token
        (3, 4, "New York", False),
        (0, 2, "", False),
    ],
)
def test_spans_cover_the_text_that_stands_beside_them(tmp_path, key, start, end, text, fits):
    row = {"text": " ".join(TOKENS)}
    borders = [(0, 3), (4, 8), (9, 12), (13, 18), (19, 23)]
    start, end = borders[start][0], borders[end - 1][1]
    span = {"start": start, "end": end, "label": "CITY", "text": text}
    path = write(tmp_path / "a.jsonl", {**row, "ents": [], key: [span]} if key != "spans" else {**row, key: [span]})
    if fits:
        assert len(list(read(path))) == 1
    else:
        with pytest.raises(WeaknerError, match=r"WK103.*line 1.*covers"):
            list(read(path))


@pytest.mark.parametrize(
    "row, span",
    [
        ({"text": "Jose\u0301 ran"}, {"end": 5, "text": "Jos\u00e9"}),
        ({"text": "Jos\u00e9 ran"}, {"end": 4, "text": "Jose\u0301"}),
        ({"tokens": ["-LRB-", "ran"]}, {"end": 1, "text": "("}),
    ],
)
def test_a_text_may_have_another_spelling(tmp_path, row, span):
    path = write(tmp_path / "a.jsonl", {**row, "ents": [{"start": 0, "label": "X", **span}]})
    (doc,) = read(path)
    assert [(ent.start, ent.end) for ent in doc.ents] == [(0, 1)]


@pytest.mark.parametrize("text", [3, None, ["a"], {}])
def test_a_text_that_is_none_beside_a_span_with_text(tmp_path, text):
    span = {"start": 0, "end": 1, "label": "X", "text": "a"}
    with pytest.raises(WeaknerError, match=r"WK103.*line 1"):
        list(read(write(tmp_path / "a.jsonl", {"text": text, "ents": [span]})))
