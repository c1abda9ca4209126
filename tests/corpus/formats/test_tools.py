"""Files made by hand from the documented shape of each tool."""

import json
import re
import shlex
from datetime import datetime
from decimal import Decimal

import pytest

from spacy_weakner.checks.check import CheckedFiles, examine
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import overlaps, records, weak
from spacy_weakner.corpus.formats import brat, label_studio, reading, tools
from spacy_weakner.corpus.formats.reading import file_format
from spacy_weakner.corpus.formats.records import EMPTY
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runtime.blocks import corpus_inputs

from .util import NLP, converted, ents, group, iob, write_array, write_lines

TEXT = "Anna met Bob in Paris."
ANNA, PARIS = [0, 4, "PER"], [16, 21, "LOC"]


# Label Studio


def result(start, end, label, **more):
    value = {"start": start, "end": end, "text": TEXT[start:end], "labels": [label]}
    return {"id": "x1", "from_name": "label", "to_name": "text", "type": "labels", "value": value, **more}


def task(annotations=(), predictions=(), text=TEXT, **more):
    return {"id": 7, "data": {"text": text}, "annotations": list(annotations), "predictions": list(predictions), **more}


def test_predictions_are_weak_labels(tmp_path):
    found = [
        {"model_version": "list", "score": 0.5, "result": [result(*ANNA, score=0.9), result(*PARIS)]},
        {"model_version": "", "result": [result(9, 12, "PER")]},
    ]
    (doc,), report = converted(write_array(tmp_path / "a.json", [task(predictions=[12, *found])]))
    assert iob(doc) == "------" and report.notes == {label_studio.NUMBERS: 1}
    assert group(doc, "weak:list") == [("Anna", "PER"), ("Paris", "LOC")]
    assert weak.group_scores(doc, "weak:list") == [0.9, 0.5]
    assert group(doc, "weak:predictions") == [("Bob", "PER")]


def test_line_ends_within_a_span_are_spelled(tmp_path):
    text = "In New\r\nYork."
    value = {"start": 3, "end": 12, "text": "New\\n\\nYork", "labels": ["LOC"]}
    (doc,), _ = converted(write_array(tmp_path / "a.json", [task([{"result": [{"value": value}]}], text=text)]))
    assert ents(doc) == [("New\r\nYork", "LOC")]


def test_completions_and_results_of_other_kinds(tmp_path):
    choice = {"from_name": "c", "type": "choices", "value": {"choices": ["good"]}}
    row = {"id": 1, "data": {"review": TEXT}, "completions": [{"result": [result(*ANNA), choice]}]}
    docs, report = converted(write_array(tmp_path / "a.json", [row, task([{"result": [choice]}])]))
    assert [ents(doc) for doc in docs] == [[("Anna", "PER")], []]
    assert report.notes == {label_studio.OTHERS: 2, EMPTY: 1}


def test_rows_of_json_min(tmp_path):
    row = {"text": TEXT, "id": 1, "ner": [result(*ANNA)["value"]], "annotator": 1, "updated_at": "2024-01-02"}
    older = {**row, "ner": [result(*PARIS)["value"]], "updated_at": "2024-01-01"}
    other = {"text": "Bob left.", "id": 2, "annotator": 1, "updated_at": "2024-01-01"}
    docs, report = converted(write_array(tmp_path / "a.json", [row, older, other]))
    assert [ents(doc) for doc in docs] == [[("Anna", "PER")], []] and iob(docs[1]) == "OOO"
    assert report.notes == {label_studio.OLDER: 1, EMPTY: 1}


def answer(*spans, by=1, at="2024-01-01T10:00:00Z", **more):
    return {"completed_by": by, "created_at": at, "result": [result(*span) for span in spans], **more}


def as_rows(answers):
    """The same as rows of JSON_MIN."""
    for each in answers:
        found = [item["value"] for item in each["result"]]
        about = {"annotator": each["completed_by"], "created_at": each["created_at"]}
        truth = {"ground_truth": True} if each.get("ground_truth") else {}
        yield {"text": TEXT, "id": 7, **({"ner": found} if found else {}), **about, **truth}


LATE = "2024-01-02T10:00:00Z"
BOB = [9, 12, "PER"]


@pytest.mark.parametrize(
    "answers, tags, notes",
    [
        # What is marked as true wins over anything newer.
        (
            [answer(ANNA, PARIS, ground_truth=True), answer(BOB, at=LATE)],
            "BOOOBO",
            {label_studio.OVERRULED: 1},
        ),
        ([answer(BOB), answer(ANNA, by=2, at=LATE, ground_truth=True)], "BOOOOO", {label_studio.OVERRULED: 1}),
        # An annotator may correct himself, and nobody else.
        ([answer(BOB), answer(ANNA, at=LATE)], "BOOOOO", {label_studio.OLDER: 1}),
        ([answer(ANNA, PARIS), answer(by=2, at=LATE)], "-OOO-O", {label_studio.DISPUTED: 2}),
        ([answer(ANNA, PARIS, by={"id": 1}), answer(PARIS, by={"id": 2})], "-OOOBO", {label_studio.DISPUTED: 1}),
        ([answer(ANNA), answer([0, 4, "LOC"], by=2)], "-OOOOO", {label_studio.DISPUTED: 2}),
        ([answer([0, 12, "X"], ANNA), answer(ANNA, by=2, at=LATE)], "B--OOO", {label_studio.DISPUTED: 1}),
        ([answer(ANNA), answer(ANNA, by=2), answer([0, 5, "PER"], by=3)], "BOOOOO", {}),
        ([answer(ANNA), answer(by=1, at=LATE), answer(by=2)], "OOOOOO", {label_studio.OLDER: 1}),
        ([answer(ANNA), answer(by=2, at=LATE, was_cancelled=True)], "BOOOOO", {label_studio.CANCELLED: 1}),
    ],
)
@pytest.mark.parametrize("form", ["json", "json-min", "cloud"])
def test_several_annotations_of_one_task(tmp_path, form, answers, tags, notes):
    rows = [task(answers)]
    if form == "json-min":
        if any(each.get("was_cancelled") for each in answers):
            pytest.skip("not in this export")
        rows = list(as_rows(answers))
    elif form == "cloud":
        rows = [{"id": n, "task": {"id": 7, "data": {"text": TEXT}}, **each} for n, each in enumerate(answers)]
    path = write_array(tmp_path / "a.json", rows)
    (doc,), report = converted(path, format="label-studio")
    found = {what: n for what, n in report.notes.items() if what != EMPTY}
    assert (iob(doc), found, report.suspects, weak.get_id(doc)) == (tags, notes, [], "7")


def test_all_controls_of_json_min_are_read(tmp_path):
    row = {
        "text": TEXT,
        "id": 1,
        "ner": [result(*ANNA)["value"]],
        "places": [result(*PARIS)["value"]],
        "mood": {"a": 1},
    }
    (doc,), report = converted(write_array(tmp_path / "a.json", [row]))
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")] and report.ignored == {"mood": 1}


def test_rows_without_number_belong_together_by_their_text(tmp_path):
    rows = [{key: value for key, value in row.items() if key != "id"} for row in as_rows([answer(ANNA), answer(by=2)])]
    docs, report = converted(write_array(tmp_path / "a.json", [*rows, {**rows[0], "text": "Bob ran.", "ner": []}]))
    assert [iob(doc) for doc in docs] == ["-OOOOO", "OOO"] and report.notes[label_studio.DISPUTED] == 1


def test_a_task_inside_its_annotation(tmp_path):
    """One file each, as they stand in cloud storage."""
    row = {"id": 5, "task": {"id": 7, "data": {"text": TEXT}}, **answer(ANNA)}
    path = write_array(tmp_path / "5.json", row, indent=2)
    assert file_format(path) == "label-studio"
    (doc,), report = converted(path)
    assert ents(doc) == [("Anna", "PER")] and not report.ignored


def test_tasks_that_cannot_be_read(tmp_path):
    rows = [task(), {**task(), "data": {"one": "a", "two": "b"}}]
    with pytest.raises(WeaknerError, match=r"item 2: the text cannot be found"):
        converted(write_array(tmp_path / "a.json", rows))
    html = {"type": "hypertextlabels", "value": {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]"}}
    with pytest.raises(WeaknerError, match=r"item 1: spans of HTML"):
        converted(write_array(tmp_path / "a.json", [task([{"result": [html]}])]))


# doccano, GLiNER, spaCy


@pytest.mark.parametrize(
    "row",
    [
        {"id": 3, "text": TEXT, "label": [ANNA, PARIS], "Comments": []},
        {"id": 3, "data": TEXT, "labels": [PARIS, ANNA]},
        {"id": 3, "text": TEXT, "annotation": [ANNA, PARIS]},
        {
            "id": 3,
            "text": TEXT,
            "entities": [
                {"id": 1, "label": "PER", "start_offset": 0, "end_offset": 4},
                {"id": 2, "label": "LOC", "start_offset": 16, "end_offset": 21},
            ],
            "relations": [],
        },
    ],
)
def test_doccano(tmp_path, row):
    (doc, _), report = converted(write_lines(tmp_path / "a.jsonl", [row, {"text": "No.", "label": []}]))
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")] and weak.get_id(doc) == "3"
    assert report.notes == ({EMPTY: 1})


def test_gliner_ends_are_part_of_the_span(tmp_path):
    row = {"tokenized_text": ["New", "York", "and", "Rome"], "ner": [[0, 1, "city"], [3, 3, "city"]]}
    (doc, other), _ = converted(write_array(tmp_path / "a.json", [row, {"tokenized_text": ["No"], "ner": []}]))
    assert ents(doc) == [("New York", "city"), ("Rome", "city")] and iob(doc) == "BIOB" and iob(other) == "O"


@pytest.mark.parametrize("write", [write_lines, write_array])
def test_spacy_pairs(tmp_path, write):
    rows = [[TEXT, {"entities": [ANNA, PARIS]}], ["No. Yes.", {"cats": {"X": 1.0}}]]
    (doc, other), _ = converted(write(tmp_path / "a.json", rows))
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")]
    assert other.cats == {"X": 1.0} and set(iob(other)) == {"-"}


# Hugging Face


def test_numbers_of_tags_need_names(tmp_path):
    rows = [{"tokens": ["Anna", "met", "Bob"], "ner_tags": [1, -100, 0]}]
    path = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(WeaknerError, match=r"line 1.*--labels O,B-PER,I-PER"):
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


def write_parquet(path, names, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    features = {"ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}}
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
    with pytest.raises(WeaknerError, match=r"a\.(jsonl|parquet), (line|row) 1: .*no tag without a type") as error:
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
    with pytest.raises(WeaknerError, match=r"WK206.*b\.parquet.*'Y' is no tag"):
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
    said = [finding.message for finding in examine(CheckedFiles(gold=path)).findings]
    assert any(f"{records.BLANK_TOKENS}: 1" in message for message in said)


def test_parquet_knows_the_names(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = ["O", "B-PER", "I-PER"]
    features = {
        "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
        "pos_tags": {"feature": {"names": ["DT", "NN"], "_type": "ClassLabel"}, "_type": "Sequence"},
        "ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"},
    }
    table = pyarrow.table({"tokens": [["Anna", "B"], ["x"]], "pos_tags": [[0, 1], [1]], "ner_tags": [[1, 2], [-1]]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(table, tmp_path / "a.parquet")
    docs, _ = converted(tmp_path / "a.parquet")
    assert [iob(doc) for doc in docs] == ["BI", "-"] and ents(docs[0]) == [("Anna B", "PER")]
    for wrong in (3, -7, 0.5, True):
        odd = pyarrow.table({"tokens": [["Anna"]], "ner_tags": [[wrong]]}).replace_schema_metadata(
            table.schema.metadata
        )
        parquet.write_table(odd, tmp_path / "c.parquet")
        with pytest.raises(WeaknerError, match=r"WK103.*c\.parquet, row 1: .*tag"):
            converted(tmp_path / "c.parquet")
    # Lists are also written as [{...}]: the names are given then.
    metadata = {"huggingface": json.dumps({"info": {"features": {"ner_tags": [features["ner_tags"]["feature"]]}}})}
    parquet.write_table(table.replace_schema_metadata(metadata), tmp_path / "d.parquet")
    with pytest.raises(WeaknerError, match=r"d\.parquet, row 1: .*--labels"):
        converted(tmp_path / "d.parquet")
    docs, _ = converted(tmp_path / "d.parquet", labels=names)
    assert [iob(doc) for doc in docs] == ["BI", "-"]
    table = table.drop(["pos_tags"])
    parquet.write_table(table.rename_columns(["tokens", "my_tags"]), tmp_path / "b.parquet")
    _, report = converted(tmp_path / "b.parquet")
    assert report.ignored == {"my_tags": 2} and report.suspects == ["my_tags"]
    parquet.write_table(table.rename_columns(["words", "ner_tags"]).drop(["ner_tags"]), tmp_path / "b.parquet")
    with pytest.raises(WeaknerError, match=r"row 1: no tokens"):
        converted(tmp_path / "b.parquet")
    for name, value in (("id", b"\xff"), ("text", datetime(2026, 1, 2)), ("spans", [Decimal("1.5")])):
        odd = {"text": ["Anna"], "spans": [[]], name: [value]}
        parquet.write_table(pyarrow.table(odd), tmp_path / "c.parquet")
        with pytest.raises(WeaknerError, match=r"WK103.*c\.parquet, row 1"):
            converted(tmp_path / "c.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(WeaknerError, match=r"WK206.*c\.parquet"):
        converted(tmp_path / "c.parquet")


# brat


def test_brat_folders(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    text = "Aches of arms\r\nand legs 😊 in New\nYork"
    start = text.index("New")
    (folder / "d1.txt").write_bytes(text.encode())
    (folder / "d1.ann").write_text(
        "T1\tSign 0 8;19 23\tAches of legs\n"
        f"T2\tPlace name {start} {start + 3};{start + 4} {start + 8}\tNew York\n"
        "T3\tPart 9 13\tarms\n"
        "A1\tNegation T1\n#1\tAnnotatorNotes T1\twhy\n"
        "N1\tReference T2 Wikidata:Q60\tNew York\nN2\tReference T2 GeoNames:5128581\tNew York\n"
        "N3\tReference T1 X:1\ta\n"
    )
    (folder / "d2.txt").write_text("No.")
    (folder / "d2.ann").write_text("")
    (folder / "annotation.conf").write_text("[entities]\nSign\n")
    (doc, other), report = converted(folder)
    assert [ent.label_ for ent in doc.ents] == ["Part", "Place name"] and doc.ents[1].text == "New\nYork"
    # What lies between the ends of a discontinuous entity is not known, unless something else is known of it.
    assert [t.text for t in doc if t.ent_iob == 0 and not t.is_space] == ["Aches", "of", "and", "legs"]
    assert [ent.kb_id_ for ent in doc.ents] == ["", "Wikidata:Q60|GeoNames:5128581"]
    assert iob(other) == "OO" and weak.get_id(doc) == "d1"
    assert report.notes == {brat.DISCONTINUOUS: 1, brat.OTHERS: 3}
    for line in (f"T1\tA 0 {'9' * 5000}\tNo\n", "N1\tReference T1\n", "N1\n"):
        (folder / "d2.ann").write_text(line)
        with pytest.raises(WeaknerError, match=r"d2\.ann, line 1"):
            converted(folder)
    (folder / "d2.txt").unlink()
    with pytest.raises(WeaknerError, match=r"WK100.*d2\.txt"):
        converted(folder)


def test_brat_offsets_into_another_text(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.ann").write_text("T1\tPER 1 5\tAnna\n")
    with pytest.raises(WeaknerError, match=r"WK742.*a\.ann.*\"Anna\""):
        converted(tmp_path / "a.ann")


# Unknown keys


@pytest.mark.parametrize(
    "format, row, unknown",
    [
        (
            "doccano",
            {"text": TEXT, "label": [ANNA], "Comments": ["a"], "meta": {"a": 1}, "n": 1, "mine": [PARIS]},
            "mine",
        ),
        ("doccano", {"text": TEXT, "label": [ANNA], "entities": [PARIS]}, "entities"),
        ("doccano", {"text": TEXT, "mine": {"name": {"a": 1}}}, "mine"),
        ("label-studio", {**task([answer(ANNA)]), "drafts": [{}], "mine": {"a": 1}}, "mine"),
        (
            "prodigy",
            {"text": TEXT, "_input_hash": 1, "spans": [], "tokens": [], "mine": [1], "answer": "accept"},
            "mine",
        ),
        ("gliner", {"tokenized_text": ["a"], "ner": [], "ner_labels": ["X"], "mine": [1]}, "mine"),
        ("huggingface", {"tokens": ["a"], "ner_tags": ["O"], "pos_tags": [1], "fine_tags": ["O"]}, "fine_tags"),
        ("spacy-json", [TEXT, {"entities": [], "spans": {"sc": [ANNA]}, "tags": ["X"]}], "spans"),
        ("dataturks", {"content": TEXT, "annotation": [], "extras": {"a": 1}, "mine": [1]}, "mine"),
        ("jsonl", {"text": TEXT, "label": {"name": {"a": 1}}}, "label"),
    ],
)
def test_unknown_keys_with_lists_or_objects_are_named(tmp_path, format, row, unknown):
    _, report = converted(write_lines(tmp_path / "a.jsonl", [row]), format=format)
    assert {key for key in report.ignored if key in report.lists} == {unknown}
    assert any("unknown keys" in remark and unknown in remark for remark in report.remarks)
    known = format not in ("jsonl", "doccano") or ("label" in row and unknown != "label")
    assert report.suspects == ([] if known else [unknown])


# Dataturks, and records that do not stand one a line


def test_dataturks(tmp_path):
    point = {"start": 0, "end": 3, "text": "Anna"}
    row = {"content": TEXT, "annotation": [{"label": ["PER"], "points": [point]}], "extras": None, "metadata": {"a": 1}}
    twice = {"content": TEXT, "annotation": [{"label": ["PER", "X"], "points": [point]}]}
    rows = [row, {"content": "Bob ran", "annotation": None}, {"content": "Bob ran", "annotation": []}, twice]
    path = write_lines(tmp_path / "a.json", rows)
    assert file_format(path) == "dataturks"
    docs, report = converted(path)
    assert [iob(doc) for doc in docs] == ["BOOOOO", "--", "OO", "-OOOOO"]
    assert report.notes == {EMPTY: 1, overlaps.OVERLAPS: 2} and not report.ignored


PAIR = [TEXT, {"entities": [ANNA, PARIS]}]


@pytest.mark.parametrize(
    "content, format, nulls",
    [
        ({"classes": ["PER", "LOC"], "annotations": [PAIR, None, None]}, "spacy-json", 2),
        ({"classes": [], "annotations": [None, PAIR]}, "spacy-json", 1),
        ([PAIR, None], "spacy-json", 1),
        ({"data": [{"text": TEXT, "label": [ANNA, PARIS]}]}, "doccano", 0),
        ({"version": 1, "tasks": [task([answer(ANNA, PARIS)])]}, "label-studio", 0),
        ({"text": TEXT, "label": [ANNA, PARIS]}, "doccano", 0),
        (task([answer(ANNA, PARIS)]), "label-studio", 0),
        ({"review": TEXT, "id": 1, "ner": [result(*ANNA)["value"], result(*PARIS)["value"]]}, "label-studio", 0),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_wrappers_and_objects_over_several_lines(tmp_path, content, format, nulls, indent):
    path = write_array(tmp_path / "a.json", content, indent=indent)
    assert file_format(path) == format
    (doc,), report = converted(path)
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")]
    assert report.notes == ({tools.NULLS: nulls} if nulls else {}) and not report.ignored


def test_objects_over_several_lines_may_follow_each_other(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("".join(json.dumps({"text": TEXT, "label": [span]}, indent=1) + "\n" for span in (ANNA, PARIS)))
    docs, _ = converted(path)
    assert [ents(doc) for doc in docs] == [[("Anna", "PER")], [("Paris", "LOC")]]


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"text": "a",\n "label": [[0, 1, "X"]', "its JSON: not JSON.*line 2, column 23"),
        ('{"text": "a", "label": [}\n{"text": "b"}', "line 1: not JSON"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(WeaknerError, match=message):
        converted(tmp_path / "a.json")


# All of them


def test_spans_that_overlap_are_not_guessed_at(tmp_path):
    row = {"text": TEXT, "label": [[0, 12, "X"], ANNA, PARIS, PARIS]}
    (doc,), report = converted(write_lines(tmp_path / "a.jsonl", [row]))
    assert ents(doc) == [("Paris", "LOC")] and iob(doc) == "---OBO"
    assert report.notes == {overlaps.OVERLAPS: 2}


def test_white_space_is_no_part_of_a_span(tmp_path):
    row = {"text": TEXT, "label": [[0, 5, "PER"], [12, 13, "PER"]]}
    (doc,), report = converted(write_lines(tmp_path / "a.jsonl", [row]))
    assert ents(doc) == [("Anna", "PER")] and report.notes == {records.BLANK: 1}


@pytest.mark.parametrize(
    "text, expected",
    [
        ('[{"tokenized_text": ["a"], "ner": []}, {"tokenized_text": ["a"]', r"its JSON: not JSON.*column 64"),
        ('[{"tokenized_text": ["a"]} {"tokenized_text": ["b"]}]', r"its JSON: not JSON: .*','.*column 28"),
        ('[{"tokens": ["a"]}]', r"WK370.*a JSON array.*--format.*jq"),
        ('[{"tokenized_text": ["a"]}] []', r"its JSON: something follows"),
        ('[{"tokenized_text": ["a"], "n": NaN}]', r"its JSON: not JSON"),
        ('[{"tokenized_text": ["a"], "n": ' + "[" * 100_000 + "]", r"its JSON: nested too deeply"),
        ('[{"tokenized_text": ["a"], "ner": [[0, 0, 1]]}]', r"item 1: the label"),
        ('[{"tokenized_text": ["a"], "ner": [[0, 5, "X"]]}]', r"item 1.*\[0, 6"),
        ('[{"tokenized_text": ["\\ud800"], "ner": [[0, 0, "X"]]}]', r"item 1: half of a surrogate"),
    ],
)
def test_malformed_arrays(tmp_path, text, expected):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(WeaknerError, match=expected) as error:
        converted(tmp_path / "a.json")
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


def test_text_of_arrays(tmp_path):
    rows = [{"tokenized_text": ["é😊", "\u2028x", '"']}, {"tokenized_text": ["b"] * 9, "ner": [[0, 1, "X"]]}]
    path = write_array(tmp_path / "a.json", rows, indent=1)
    docs, _ = converted(path, format="gliner")
    assert [[t.text for t in doc] for doc in docs] == [row["tokenized_text"] for row in rows]
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xe9"))
    with pytest.raises(WeaknerError, match=r"WK104.*line 4"):
        converted(path, format="gliner")


def test_the_first_rows_tell_the_format(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"text": "a", "label": []}, {"text": TEXT, "label": [ANNA]}])
    assert file_format(path) == "doccano"
    assert file_format(write_lines(tmp_path / "b.jsonl", [{"text": "a"}])) == "jsonl"
    rows = [{"tokens": ["a"], "ents": []}] * 300 + [{"text": TEXT, "label": [ANNA]}]
    with pytest.raises(WeaknerError, match=r"line 301.*'doccano'.*--format doccano"):
        converted(write_lines(tmp_path / "c.jsonl", rows))


def test_label_reads_lines_and_refuses_wholes(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"tokens": ["Anna", "ran"], "ner_tags": ["B-PER", "O"]}] * 3)
    blocks = corpus_inputs(path, NLP, shard_size=2)
    assert [[ents(doc) for doc in block.read(NLP.vocab)[0]] for block in blocks] == [
        [[("Anna", "PER")]] * 2,
        [[("Anna", "PER")]],
    ]
    for path in (
        write_array(tmp_path / "a.json", [task()]),
        write_array(tmp_path / "b.json", [{"tokenized_text": ["a"]}]),
        # What its offsets count may stand in the last line.
        write_lines(tmp_path / "d.jsonl", [{"text": "\U0001f60a a b c", "label": [[5, 6, "X"]]}]),
        write_lines(tmp_path / "p.jsonl", [{"text": TEXT, "_input_hash": 1, "answer": "accept"}]),
    ):
        with pytest.raises(WeaknerError, match=r"WK740.*spacy weakner convert .*json"):
            corpus_inputs(path, NLP)


def test_formats_of_the_output_are_checked(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"tokens": ["a"]}])
    for name, to, expected in (
        ("b.json", None, r"WK105.*label-studio.*gliner"),
        ("b.jsonl", "label-studio", r"WK305.*\.json"),
        ("b.jsonl", "brat", r"WK005.*'to'"),
        ("b", "doccano", r"WK305.*\.jsonl"),
        ("b.csv", None, r"WK105"),
    ):
        with pytest.raises(WeaknerError, match=expected):
            convert(path, tmp_path / name, to=to)
    assert [file_.name for file_ in tmp_path.iterdir()] == ["a.jsonl"]
