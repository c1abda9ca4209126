"""Datasets of Hugging Face, as rows of JSON and as Parquet."""

import json
import re
import shlex
from datetime import datetime
from decimal import Decimal

import pytest

from spacy_weakner.checks.check import check
from spacy_weakner.corpus import gold, overlaps, records, weak
from spacy_weakner.corpus.formats import huggingface, reading
from spacy_weakner.errors import WeaknerError

from ...util import iob
from .util import converted, ents, write_lines


def test_numbers_of_tags_need_names(tmp_path):
    rows = [{"tokens": ["Anna", "met", "Bob"], "ner_tags": [1, -100, 0]}]
    path = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(WeaknerError, match=r"line 1.*convert \S+a\.jsonl \S+ --labels O,B-PER,I-PER"):
        converted(path)
    (doc,), _ = converted(path, labels=["O", "B-PER", "I-PER"])
    assert iob(doc) == "B-O" and ents(doc) == [("Anna", "PER")]
    (doc,), _ = converted(path, labels=["O", "PER"])
    assert ents(doc) == [("Anna", "PER")]
    with pytest.raises(WeaknerError, match=r"the tag 1 has no name: there are 1"):
        converted(path, labels=["O"])


def test_autotrain(tmp_path):
    rows = [{"tokens": ["New", "York", "is"], "tags": ["B-LOC", "I-LOC", "O"]}, {"tokens": ["a"], "tags": [None]}]
    docs, _ = converted(write_lines(tmp_path / "a.jsonl", rows))
    assert [iob(doc) for doc in docs] == ["BIO", "-"]


@pytest.mark.parametrize("key", ["ner_tags", "tags"])
def test_m_is_inside_and_w_is_a_whole_entity(tmp_path, key):
    rows = [
        {"tokens": list("张三丰来"), key: ["B-NAME", "M-NAME", "E-NAME", "O"]},
        {"tokens": list("京沪"), key: ["W-LOC", "W-LOC"]},
    ]
    docs, report = converted(write_lines(tmp_path / "a.jsonl", rows))
    assert [iob(doc) for doc in docs] == ["BIIO", "BB"] and report.entities == {"NAME": 1, "LOC": 2}


@pytest.mark.parametrize(
    "tags", [["PERSON", "O"], ["b-per", "o"], ["B_PER", "O"], ["B-PER"], ["O", "O", "O"], ["no", "idea"]]
)
@pytest.mark.parametrize("format", [None, "huggingface"])
def test_what_is_no_tag_names_its_line(tmp_path, format, tags):
    rows = [{"tokens": ["Bo", "ran"], "ner_tags": ["B-PER", "O"]}, {"tokens": ["Bo", "ran"], "ner_tags": tags}]
    for n in (0, 1):
        with pytest.raises(WeaknerError, match=rf"WK103.*a\.jsonl, line {2 - n}.*tag"):
            converted(write_lines(tmp_path / "a.jsonl", rows[n:]), format=format)


@pytest.mark.parametrize(
    "row, expected",
    [
        ({"tokens": ["Anna", "left"], "ner_tags": [1.0, 0.0]}, "whole number"),
        ({"tokens": ["Anna", "left"], "tags": [0, 1.0]}, "whole number"),
        ({"text": "Anna left", "ner_tags": ["B-PER", "O"]}, "no tokens"),
        ({"text": "Anna left", "ner_tags": [1, 0]}, "no tokens"),
    ],
)
def test_tags_that_cannot_be_read_are_not_lost(tmp_path, row, expected):
    with pytest.raises(WeaknerError, match=rf"WK103.*line 1.*{expected}"):
        converted(write_lines(tmp_path / "a.jsonl", [row]), labels=["O", "B-PER"])


@pytest.mark.parametrize("key", ["ner", "ner_tags"])
def test_tags_of_entities_come_before_other_tags(tmp_path, key):
    row = {"tokens": ["O", "Anna"], "tags": ["O", "O"], key: ["O", "B-PER"]}
    (doc,), _ = converted(write_lines(tmp_path / "a.jsonl", [row]))
    assert ents(doc) == [("Anna", "PER")]


@pytest.mark.parametrize(
    "tokens, n",
    [(["An", "##na"], 1), (["[CLS]", "Anna"], 1), (["▁Anna", "</s>"], 1), (["##", "#a"], 0), (["[", "CLS"], 0)],
)
def test_word_pieces_are_named(tmp_path, tokens, n):
    _, report = converted(write_lines(tmp_path / "a.jsonl", [{"tokens": tokens, "ner_tags": ["O", "O"]}]))
    assert report.notes.get(huggingface.PIECES, 0) == n


def write_parquet(path, names=(), features=None, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    features = features or {"ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(pyarrow.table(columns).replace_schema_metadata(metadata), path)
    return path


@pytest.mark.parametrize("names", [["O", "B", "I"], ["O", "B-", "I-"]])
@pytest.mark.parametrize("kind", ["numbers", "tags", "labels", "parquet"])
def test_tags_without_a_type(tmp_path, kind, names):
    tokens, numbers = list("abcdef"), [0, 1, 1, 2, 0, 0]
    labels = None
    if kind == "parquet":
        path = write_parquet(tmp_path / "a.parquet", names, tokens=[tokens], ner_tags=[numbers])
    else:
        key, values = ("ner_tags", numbers) if kind == "numbers" else (kind, [names[i] for i in numbers])
        path = write_lines(tmp_path / "a.jsonl", [{"tokens": tokens, key: values}])
        labels = names if kind == "numbers" else None
    with pytest.raises(WeaknerError, match=r"a\.(jsonl|parquet), (line|row) 1: .*the tag .* has no type") as error:
        converted(path, labels=labels)
    # What it advises.
    _, _, _, given, *_, option, value = shlex.split(re.search(r"spacy weakner convert .*", str(error.value))[0])
    assert given == str(path) and option == "--labels"
    (doc,), _ = converted(path, labels=value.split(","))
    assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == [(1, 2, "TYPE"), (2, 4, "TYPE")]


def test_names_that_are_given_come_before_those_of_the_file(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", ["O", "B-X", "I-X"], tokens=[["a", "b"]], ner_tags=[[1, 2]])
    (doc,), _ = converted(path, labels=["O", "B-PER", "I-PER"])
    assert ents(doc) == [("a b", "PER")]
    # Such names have no other way.
    path = write_parquet(tmp_path / "b.parquet", ["O", "B-X", "Y"], tokens=[["a", "b"]], ner_tags=[[1, 2]])
    with pytest.raises(WeaknerError, match=r"WK206.*b\.parquet.*'Y' is not a tag"):
        converted(path)
    (doc,), _ = converted(path, labels=["O", "B-X", "I-X"])
    assert ents(doc) == [("a b", "X")]


@pytest.mark.parametrize("between", [",", " | "])
@pytest.mark.parametrize("key", ["tags", "parquet"])
def test_several_tags_in_one_cell(tmp_path, between, key):
    tags = ["O", between.join(["B-creative-work", "B-location"]), "I-location", "B-PER"]
    if key == "parquet":
        path = write_parquet(tmp_path / "a.parquet", tags, tokens=[list("abcd")], ner_tags=[[0, 1, 2, 3]])
    else:
        path = write_lines(tmp_path / "a.jsonl", [{"tokens": list("abcd"), key: tags}])
    (doc,), report = converted(path)
    assert ents(doc) == [("d", "PER")] and iob(doc) == "O--B" and report.notes == {overlaps.OVERLAPS: 2}


@pytest.mark.parametrize("blank", ["\n", "\u00a0", ""])
def test_tokens_of_white_space(tmp_path, blank):
    tokens, empty = ["Anna", blank, "Lee", "left"], [blank] * 2
    tags = {"tokens": tokens, "ner_tags": ["B-PER", "O", "I-PER", "O"]}, {"tokens": empty, "ner_tags": ["O", "O"]}
    spans = {"tokenized_text": tokens, "ner": [[0, 2, "PER"]]}, {"tokenized_text": empty, "ner": []}
    for name, made in (("a", tags), ("b", spans)):
        (doc,), report = converted(write_lines(tmp_path / f"{name}.jsonl", made))
        assert [t.text for t in doc] == ["Anna", "Lee", "left"] and ents(doc) == [("Anna Lee", "PER")]
        assert report.notes[reading.NOT_TEXT] == 1 and report.notes[records.BLANK_TOKENS] >= 1
    row = {"tokens": ["Anna", blank, "left"], "ner_tags": ["B-PER", "O", "O"]}
    (doc,), report = converted(write_lines(tmp_path / "c.jsonl", [row]))
    assert weak.doc_entities(doc) == [(0, 1, "PER")] and report.notes == {records.BLANK_TOKENS: 1}
    path = write_lines(tmp_path / "d.jsonl", [{"tokens": row["tokens"], "ents": [[0, 1, "PER"]]}])
    (doc,), report = converted(path)
    assert weak.doc_entities(doc) == [(0, 1, "PER")] and report.notes == {records.BLANK_TOKENS: 1}
    messages = [finding.message for finding in check(gold=path).findings]
    assert any(f"{records.BLANK_TOKENS}: 1" in message for message in messages)


CLASSES = {"feature": {"names": ["O", "B-PER", "I-PER"], "_type": "ClassLabel"}, "_type": "Sequence"}
PARTS_OF_SPEECH = {"feature": {"names": ["DT", "VB", "NN"], "_type": "ClassLabel"}, "_type": "List"}
STRING = {"dtype": "string", "_type": "Value"}


@pytest.mark.parametrize(
    "columns, features",
    [
        ({"pos_tags": [[0, 1], [1]], "ner_tags": [[1, 2], [-1]]}, {"pos_tags": CLASSES, "ner_tags": CLASSES}),
        # The column of tags is not the first whose name could be one.
        ({"ner": ["Anna", ""], "labels": [[1, 2], [-100]]}, {"ner": STRING, "labels": CLASSES}),
        ({"tags": [[2, 2], [0]], "ner": [[1, 2], [-1]]}, {"tags": PARTS_OF_SPEECH, "ner": CLASSES}),
        # Lists are also written as [{...}].
        ({"ner_tags": [[1, 2], [-1]]}, {"ner_tags": [CLASSES["feature"]]}),
    ],
)
def test_parquet_knows_the_names(tmp_path, columns, features):
    path = write_parquet(tmp_path / "a.parquet", features=features, tokens=[["Anna", "B"], ["x"]], **columns)
    docs, _ = converted(path)
    assert [iob(doc) for doc in docs] == ["BI", "-"] and ents(docs[0]) == [("Anna B", "PER")]


def test_texts_in_parquet(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", text=["Anna ran. Bob ran.", " "], id=["a7", "b"], year=[1, 2])
    docs, report = converted(path)
    assert [(doc.text, weak.get_id(doc)) for doc in docs] == [("Anna ran.", "a7.1"), ("Bob ran.", "a7.2")]
    assert not any(map(gold.find_gold, docs)) and sum(report.notes.values()) == 1


def test_parquet_without_names(tmp_path):
    features = {"ner_tags": [STRING]}
    path = write_parquet(tmp_path / "a.parquet", features=features, tokens=[["Anna"], ["x"]], ner_tags=[[1], [-1]])
    with pytest.raises(WeaknerError, match=r"a\.parquet, row 1: .*--labels"):
        converted(path)
    docs, _ = converted(path, labels=["O", "B-PER", "I-PER"])
    assert [iob(doc) for doc in docs] == ["B", "-"]
    _, report = converted(write_parquet(path, ["O"], tokens=[["Anna"], ["x"]], my_tags=[[1], [0]]))
    assert report.ignored == {"my_tags": 2} and report.suspects == ["my_tags"]


@pytest.mark.parametrize(
    "columns, reason",
    [
        *(({"tokens": [["Anna"]], "ner_tags": [[wrong]]}, ".*tag") for wrong in (3, -7, 0.5, True)),
        ({"words": [["Anna"]]}, "no tokens"),
        ({"text": ["Anna"], "spans": [[]], "id": [b"\xff"]}, ""),
        ({"text": [datetime(2026, 1, 2)], "spans": [[]]}, ""),
        ({"text": ["Anna"], "spans": [[Decimal("1.5")]]}, ""),
    ],
)
def test_parquet_with_other_contents(tmp_path, columns, reason):
    with pytest.raises(WeaknerError, match=rf"WK103.*a\.parquet, row 1: {reason}"):
        converted(write_parquet(tmp_path / "a.parquet", ["O", "B-PER", "I-PER"], **columns))


def test_damaged_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(WeaknerError, match=r"WK206.*c\.parquet"):
        converted(tmp_path / "c.parquet")
