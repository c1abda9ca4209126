import gzip
import json

import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.counts import RowError
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.alignment import align, align_mentions, find_weak_name, letter_borders, read_mentions
from spacy_weakner.labeling.imported import FileLabeler
from spacy_weakner.labeling.label import label
from spacy_weakner.labeling.report import SourceCounts
from spacy_weakner.labeling.sources import FileSource

NLP = spacy.blank("xx")


def make_doc(words, id_=None, spaces=None):
    doc = Doc(NLP.vocab, words=words.split("|") if isinstance(words, str) else words, spaces=spaces)
    weak.set_id(doc, id_)
    return doc


def find(doc, row, misaligned="drop"):
    return align_mentions(doc, read_mentions(row), misaligned)


# Places


@pytest.mark.parametrize(
    "words, text, span, strict, expanded, contracted",
    [
        # begins and ends at tokens
        ("New|York|rocks", "New York rocks", (0, 8), (0, 2), (0, 2), (0, 2)),
        # white space at the edges, and none or more of it between words
        ("New|York|rocks", " New\u00a0 York\n rocks", (0, 12), (0, 2), (0, 2), (0, 2)),
        ("L|-|dopa|helps", "L-dopa helps", (0, 6), (0, 3), (0, 3), (0, 3)),
        # ends within tokens
        ("L-dopa|helps", "L-dopa helps", (2, 6), None, (0, 1), None),
        ("Anti-AIDS|drugs|work", "Anti-AIDS drugs work", (5, 15), None, (0, 2), (1, 2)),
        ("big|drugs|works", "big drugs works", (4, 14), None, (1, 3), (1, 2)),
        ("ab|cd", "abcd", (1, 3), None, (0, 2), None),
        # other case, and case that changes the number of letters
        ("STRASSE|5", "straße 5", (0, 6), (0, 1), (0, 1), (0, 1)),
        ("İstanbul|x", "İstanbul x", (9, 10), (1, 2), (1, 2), (1, 2)),
        # no blanks between words; several code units
        ("我|住|在|北京|市", "我住在北京市", (3, 5), (3, 4), (3, 4), (3, 4)),
        ("我|住|在|北京|市", "我住在北京市", (4, 6), None, (3, 5), (4, 5)),
        ("👩‍🔬|in|Paris|🎉", "👩‍🔬 in Paris 🎉", (7, 12), (2, 3), (2, 3), (2, 3)),
        # tokens of white space
        (["a", "\n", "b", " ", "c"], "a\nb  c", (0, 3), (0, 3), (0, 3), (0, 3)),
        (["a", "\n", "bb", " ", "cc"], "a\nbb  cc", (3, 7), None, (2, 5), None),
        (["aa", "\n", "bb", " ", "cc"], "aa\nbb  cc", (1, 7), None, (0, 3), (2, 3)),
    ],
)
def test_alignment_of_characters(words, text, span, strict, expanded, contracted):
    doc = make_doc(words)
    row = {"text": text, "ents": [[*span, "X"]]}
    for misaligned, expected in (("drop", strict), ("expand", expanded), ("contract", contracted)):
        found = find(doc, row, misaligned)
        assert found.entities == ([] if expected is None else [(*expected, "X")])
        assert found.misaligned == (expected is None)
    if strict is None:
        with pytest.raises(RowError, match="token boundaries"):
            find(doc, row, "error")
    else:
        assert find(doc, row, "error").entities == [(*strict, "X")]


def test_alignment_agrees_with_a_search_over_all_tokens():
    words = ["a", " ", "bcd", "ef", "\n", "\n", "g"]
    borders = letter_borders(words)
    tokens = [i for i, word in enumerate(words) if not word.isspace()]
    for start in range(borders[-1]):
        for end in range(start + 1, borders[-1] + 1):
            touched = [i for i in tokens if borders[i] < end and borders[i + 1] > start]
            covered = [i for i in tokens if start <= borders[i] and borders[i + 1] <= end]
            assert align(borders, start, end, "expand") == (touched[0], touched[-1] + 1)
            expected = (covered[0], covered[-1] + 1) if covered else None
            assert align(borders, start, end, "contract") == expected
            assert align(borders, start, end, "drop") == (expected if touched == covered else None)


# Phrases


@pytest.mark.parametrize(
    "words, phrase, expected",
    [
        ("Paris|and|Paris", "Paris", [(0, 1), (2, 3)]),
        ("paris|and|Paris", "Paris", [(2, 3)]),
        ("Parisian|Paris", "Paris", [(1, 2)]),
        ("Parisian|style", "Paris", []),
        ("L|-|dopa", "L-dopa", [(0, 3)]),
        ("我|住|北京|市|北京", "北京", [(2, 3), (4, 5)]),
        ("🎉|party|🎉", "🎉", [(0, 1), (2, 3)]),
        ("STRASSE|ẞ", "Straße", [(0, 1)]),
        ("nothing", "else", []),
    ],
)
def test_phrases(words, phrase, expected):
    doc = make_doc(words)
    for item in ({"text": phrase, "label": "X"}, {"word": phrase, "type": "X"}, [phrase, "X"]):
        found = find(doc, {"id": "1", "entities": [item]})
        assert found.entities == [(*place, "X") for place in expected]
        assert found.not_found == (not expected)


def test_forms_of_items():
    row = {"text": "Anna in Paris", "spans": []}
    row["spans"] = [
        [0, 4, "A"],
        [0, 4, "B", 0.5],
        {"start": 0, "end": 4, "label": "C"},
        {"start": 0, "end": 4, "type": "D", "score": 1},
        {"start": 8, "end": 13, "entity_group": "E", "word": "paris", "score": 0.25},
        {"phrase": "Paris", "label": "F", "score": 0.75, "start": None, "end": None},
        ["Paris", "G", 0.1],
        ["Anna in", "H"],
    ]
    found = find(make_doc("Anna|in|Paris"), row)
    assert "".join(label for _, _, label in found.entities) == "ABCDEFGH"
    assert [start for start, _, _ in found.entities] == [0, 0, 0, 0, 2, 2, 2, 0]
    assert found.scores == [None, 0.5, None, 1.0, 0.25, 0.75, 0.1, None]


def test_ids_of_concepts(tmp_path):
    ents = [{"start": 0, "end": 1, "label": "A", "kb_id": "D1"}, {"text": "b", "label": "B", "kb_id": 7}, [0, 3, "A"]]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "a b", "ents": ents}) + "\n")
    sources = {"hub": {"file": str(tmp_path / "a.jsonl"), "labels": {"A": "X", "B": "B"}}}
    for n, words in enumerate(("a|b", "a|b|.|a|b")):  # also by its parts
        write_docs(tmp_path / f"{n}.spacy", [make_doc(words)])
        label(tmp_path / f"{n}.spacy", tmp_path / f"out-{n}.spacy", sources=sources, lang="xx")
        (doc,) = read_docs(tmp_path / f"out-{n}.spacy", NLP.vocab)
        if n == 0:
            assert weak.group_ids(doc, "weak:hub") == {(0, 1, "X"): ("D1",), (1, 2, "B"): ("7",)}


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"ents": [["a", "X"]]}, "X"),
        ({"ents": None, "entities": [["a", "X"]]}, "X"),
        ({"ents": [["a", "GOLD"]], "weak_ents": [["a", "X"]]}, "X"),
        ({"weak_ents": {"s": [["a", "X"]], "other": [["a", "Y"]]}}, "X"),
        ({"weak_ents": {"other": [["a", "X"]]}}, "X"),
        ({"ents": [["a", "GOLD"]], "weak_ents": None}, None),
        ({"weak_ents": {"s": None}}, None),
        ({"entities": None}, None),
        ({"entities": []}, ""),
    ],
)
def test_where_labels_stand(row, expected):
    mentions = read_mentions({"text": "a", **row}, find_weak_name([row], "s"))
    assert (None if mentions is None else "".join(mention.label for mention in mentions)) == expected


@pytest.mark.parametrize(
    "row, message",
    [
        ({"text": "ab"}, "no labels"),
        ({"text": "ab", "ents": [], "entities": []}, "both 'ents' and 'entities'"),
        ({"text": "ab", "ents": "x"}, "must be a list"),
        ({"text": "ab", "ents": [5]}, "expected"),
        ({"text": "ab", "ents": [{"label": "X"}]}, "expected"),
        ({"text": "ab", "ents": [[0, 1, ""]]}, "the label"),
        ({"text": "ab", "ents": [{"start": 0, "end": 1}]}, "the label"),
        ({"text": "ab", "ents": [[0, 1, "X", "high"]]}, "the score"),
        ({"text": "ab", "ents": [[0, 1, "X", True]]}, "the score"),
        ({"text": "ab", "ents": [[0, 1, "X", 10**400]]}, "too many digits"),
        ({"text": "ab", "ents": [["  ", "X"]]}, "the phrase"),
        ({"text": "ab", "ents": [[0, 3, "X"]]}, "not within the 2"),
        ({"text": "ab", "ents": [[-1, 1, "X"]]}, "is empty"),
        ({"text": "ab", "ents": [[0.0, 1, "X"]]}, "whole numbers"),
        ({"text": "a b", "ents": [[1, 2, "X"]]}, "only white space"),
        ({"id": "1", "ents": [[0, 1, "X"]]}, "neither 'text' nor 'tokens'"),
        ({"text": "a", "tokens": ["a"], "ents": [[0, 1, "X"]]}, "both 'text' and 'tokens'"),
        ({"text": 5, "ents": [[0, 1, "X"]]}, "'text' must be"),
        ({"tokens": [5], "ents": []}, "'tokens' must be"),
        ({"text": "a", "id": 1.5, "ents": []}, "'id' must be"),
        ({"ents": []}, "belongs to no document"),
        ([], "JSON object"),
    ],
)
def test_malformed_rows_name_file_and_line(tmp_path, row, message):
    path = tmp_path / "llm.jsonl"
    path.write_text('\n{"text": "x", "ents": []}\n' + json.dumps(row) + "\n")
    with pytest.raises(WeaknerError, match=rf"WK103.*llm\.jsonl, line 3: .*{message}"):
        prepare(path)


def test_all_rows_of_a_file_have_the_labels_under_the_same_name(tmp_path):
    rows = [
        {"text": "a", "ents": [["a", "GOLD"]], "weak_ents": {"s": [["a", "A"]], "other": [["a", "B"]]}},
        {"text": "b", "ents": [["b", "GOLD"]], "weak_ents": {"other": [["b", "B"]]}},
        {"text": "c", "ents": [["c", "GOLD"]]},
        {"text": "d", "weak_ents": {}},
    ]
    docs = [make_doc(row["text"]) for row in rows]
    # A source without labels in a row did not label its text: the row has labels of others, or gold.
    assert look_up(open_labels(tmp_path, rows, "0.jsonl"), docs) == [["A"], None, None, None]
    assert look_up(open_labels(tmp_path, rows[1:], "1.jsonl"), docs) == [None, ["B"], None, None]
    assert look_up(open_labels(tmp_path, rows[2:3], "2.jsonl"), docs) == [None, None, ["GOLD"], None]
    assert look_up(open_labels(tmp_path, rows[2:], "3.jsonl"), docs) == [None, None, None, None]
    plain = [{"text": "a", "weak_ents": []}, {"text": "b", "weak_ents": {"other": [["b", "B"]]}}]
    assert look_up(open_labels(tmp_path, plain, "4.jsonl"), docs) == [[], ["B"], None, None]
    path = tmp_path / "llm.jsonl"
    path.write_text("".join(json.dumps({"text": "a", "weak_ents": {name: []}}) + "\n" for name in "xy"))
    with pytest.raises(WeaknerError, match=r"WK103.*llm\.jsonl.*'s'.*labels of x, y"):
        prepare(path)


# Rows and Docs


def open_labels(folder, rows, name="llm.jsonl", newline="\n", prefix=""):
    data = (prefix + "".join(json.dumps(row, ensure_ascii=False) + newline for row in rows)).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return FileLabeler(prepare(folder / name), NLP, folder, name)


def prepare(path):
    source = FileSource(name="s", path=str(path))
    FileLabeler.prepare(source, NLP, path.parent, path.name)
    return source


def look_up(labeler, docs):
    found = list(labeler.find(docs, SourceCounts()))
    labeler.close()
    return [None if f is None else [label for _, _, label in f.entities] for f in found]


@pytest.mark.parametrize(
    "name, newline, prefix", [("llm.jsonl", "\n", ""), ("llm.jsonl.gz", "\r\n", ""), ("llm.jsonl", "\n\n", "\ufeff")]
)
def test_rows_are_found_by_id_or_text_in_any_order(tmp_path, name, newline, prefix):
    rows = [
        {"text": "c  C", "ents": [["c", "TEXT-C"]]},
        {"id": 7, "tokens": ["b"], "ents": [["b", "ID-B"]]},
        {"id": "only", "ents": [["a", "ONLY-ID"]]},
        {"text": "Übung 北京", "ents": [[0, 5, "U"]]},
        {"id": "null", "text": "null", "ents": None},
    ]
    docs = [
        make_doc("Übung|北京"),
        make_doc("b", "7"),
        make_doc("a", "only"),
        make_doc("B"),  # no id: by text, though the row has one
        make_doc("C|c", "x"),  # no row has this id
        make_doc("null", "null"),
        make_doc("other"),
    ]
    file_ = open_labels(tmp_path, rows, name, newline, prefix)
    assert (file_.counts().rows, file_.counts().repeated_rows) == (4, 0)
    assert look_up(file_, docs) == [["U"], ["ID-B"], ["ONLY-ID"], ["ID-B"], ["TEXT-C"], None, None]


def test_a_row_of_the_same_id_with_another_text_is_passed_over(tmp_path):
    rows = [{"id": "1", "text": "old text", "ents": [[0, 3, "X"]]}, {"text": "new text", "ents": [[0, 3, "Y"]]}]
    file_ = open_labels(tmp_path, rows)
    for words, labels in (("new|text", ["Y"]), ("newest|text", None)):
        stats = SourceCounts()
        (found,) = file_.find([make_doc(words, "1")], stats)
        assert (found and [label for _, _, label in found.entities]) == labels and stats.other_text == 1
    file_.close()


def test_of_repeated_rows_the_first_counts(tmp_path):
    rows = [{"text": "a", "ents": [["a", label]]} for label in "ABC"]
    rows += [{"id": "1", "text": "a", "ents": [["a", label]]} for label in "DE"]
    file_ = open_labels(tmp_path, rows)
    assert (file_.counts().rows, file_.counts().repeated_rows) == (2, 3)
    assert look_up(file_, [make_doc("A"), make_doc("a"), make_doc("a", "1")]) == [["A"], ["A"], ["D"]]


def test_not_utf8_and_damaged(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a", "ents": []}\n{"text": "\xff", "ents": []}\n')
    with pytest.raises(WeaknerError, match=r"WK104.*line 2, byte 36"):
        prepare(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"x" * 1000)[:-12])
    with pytest.raises(WeaknerError, match="WK206"):
        prepare(tmp_path / "a.jsonl.gz")


# The stage


def test_report(tmp_path):
    texts = ["one two", "three four", "one two", "five", "six"]
    for i, part in enumerate((texts[:2], texts[2:])):
        write_docs(tmp_path / "in" / f"{i}.spacy", [make_doc(text.split()) for text in part])
    rows = [
        {"text": "SIX", "ents": [["six", "A", 0.9], ["six", "A", 0.3], [0, 3, "A", 0.5], [0, 3, "B", 0.1]]},
        {"text": "one two", "ents": [["one", "A"], ["seven", "A"], ["two", "C"], [0, 2, "A"]]},
        {"text": "not there", "ents": []},
        {"text": "nor this", "ents": [["this", "A"]]},
        {"text": "One Two", "ents": []},
        {"text": "three four", "ents": []},
    ]
    (tmp_path / "llm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sources = {"llm": {"file": str(tmp_path / "llm.jsonl"), "labels": {"A": "X", "B": "B"}, "min_score": 0.2}}
    for skipped in (0, 2):
        report = label(tmp_path / "in", tmp_path / "out", sources=sources, lang="xx")
        assert (report.docs, report.excluded, report.unmatched, report.skipped) == (5, 0, 2, skipped)
        assert (report.spans, report.sources[0].name) == ({"X": 3}, "llm")
        own = report.sources[0]
        assert (own.kind, own.name, own.spans, own.left_out, own.low_scores) == ("file", "llm", {"X": 3}, {"C": 2}, 1)
        assert (own.misaligned, own.not_found, own.docs_without_row, own.other_text) == (2, 2, 1, 0)
        assert (own.docs_with_row, own.repeated_rows, own.rows) == (4, 1, 5)
    docs = list(read_docs(tmp_path / "out", NLP.vocab))
    x = [(0, 1, "X")]
    assert [weak.group_entities(doc, "weak:llm") for doc in docs] == [x, [], x, [], x]
    assert weak.group_scores(docs[4], "weak:llm") == [0.9]
    assert ["weak:llm" in doc.spans for doc in docs] == [True, True, True, False, True]
    # Where an answer was lost, silence is none.
    assert [weak.is_complete(docs[i], "llm") for i in (0, 1, 4)] == [False, True, True]
