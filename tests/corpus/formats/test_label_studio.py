"""Exports of Label Studio, made by hand from their documented shape."""

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.formats import label_studio
from spacy_weakner.corpus.records import ANSWERED, EMPTY
from spacy_weakner.errors import WeaknerError

from ...util import iob
from .util import ANNA, PARIS, TEXT, answer, converted, ents, group, result, task, write_array


def test_predictions_are_suggestions(tmp_path):
    found = [
        {"model_version": "list", "score": 0.5, "result": [result(*ANNA, score=0.9), result(*PARIS)]},
        {"model_version": "", "result": [result(9, 12, "PER"), result(*PARIS)]},
    ]
    (doc,), report = converted(write_array(tmp_path / "a.json", [task(predictions=[12, *found])]))
    assert iob(doc) == "------" and report.notes == {label_studio.NUMBERS: 1}
    assert group(doc, "suggested") == [("Anna", "PER"), ("Paris", "LOC"), ("Bob", "PER")]
    assert weak.group_scores(doc, "suggested") == [0.9, 0.5, None] and not weak.weak_sources(doc)
    # Once annotated, they are no longer suggestions.
    (doc,), report = converted(write_array(tmp_path / "a.json", [task([answer(ANNA)], predictions=found)]))
    assert ents(doc) == [("Anna", "PER")] and not doc.spans and report.notes == {ANSWERED: 3}


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
@pytest.mark.parametrize("form", ["json", "json-min"])
def test_several_annotations_of_one_task(tmp_path, form, answers, tags, notes):
    rows = [task(answers)]
    if form == "json-min":
        if any(each.get("was_cancelled") for each in answers):
            pytest.skip("not in this export")
        rows = list(as_rows(answers))
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


def test_tasks_that_cannot_be_read(tmp_path):
    rows = [task(), {**task(), "data": {"one": "a", "two": "b"}}]
    with pytest.raises(WeaknerError, match=r"item 2: the text cannot be found"):
        converted(write_array(tmp_path / "a.json", rows))
    html = {"type": "hypertextlabels", "value": {"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]"}}
    with pytest.raises(WeaknerError, match=r"item 1: spans of HTML"):
        converted(write_array(tmp_path / "a.json", [task([{"result": [html]}])]))
