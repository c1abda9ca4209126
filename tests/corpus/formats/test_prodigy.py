"""Answers of Prodigy: gold, known spans, known wrong spans, and what says nothing."""

import random

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.formats import prodigy
from spacy_weakner.corpus.formats.items import read_items
from spacy_weakner.corpus.records import ANSWERED
from spacy_weakner.errors import WeaknerError

from ...util import iob
from .util import converted, ents, group, write_lines

TEXT = "Anna met Bob in Paris"


def tokens(text=TEXT):
    found, start = [], 0
    for i, word in enumerate(text.split(" ")):
        found.append({"text": word, "start": start, "end": start + len(word), "id": i, "ws": True})
        start += len(word) + 1
    return found


def span(word, label, **more):
    start = TEXT.index(word)
    number = TEXT.split(" ").index(word)
    return {
        "start": start,
        "end": start + len(word),
        "token_start": number,
        "token_end": number,
        "label": label,
        **more,
    }


def manual(*spans, answer="accept", key=1, **more):
    row = {"text": TEXT, "_input_hash": key, "_task_hash": 2, "tokens": tokens(), "_view_id": "ner_manual"}
    return {**row, "spans": list(spans), "answer": answer, **more}


def binary(word, label, answer, key=1):
    return {
        "text": TEXT,
        "spans": [span(word, label, text=word, rank=0, score=0.5, source="en_core", input_hash=key)],
        "meta": {"score": 0.5},
        "_input_hash": key,
        "_task_hash": hash((word, label)) % 1000,
        "answer": answer,
    }


def read(tmp_path, *rows):
    return converted(write_lines(tmp_path / "a.jsonl", rows))


def test_accepted_is_complete(tmp_path):
    empty = manual(key=2)
    del empty["spans"]
    (doc, other), report = read(tmp_path, manual(span("Anna", "PER"), span("Paris", "LOC")), empty)
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")] and iob(doc) == "BOOOB" and iob(other) == "OOOOO"
    assert not report.notes and not report.ignored


@pytest.mark.parametrize("view", [None, "ner"])
def test_binary_answers_about_one_text_become_one_sentence(tmp_path, view):
    rows = [binary("Anna", "PER", "accept"), binary("Paris", "PER", "reject"), binary("Bob", "PER", "ignore")]
    rows = [row if view is None else {**row, "_view_id": view} for row in rows]
    (doc,), report = read(tmp_path, *rows)
    assert ents(doc) == [("Anna", "PER")] and iob(doc) == "B----"
    assert group(doc, weak.WRONG_GROUP) == [("Paris", "PER")]
    assert report.notes == {prodigy.IGNORED: 1, prodigy.MERGED: 1}


def test_rows_that_say_nothing_are_dropped_and_counted(tmp_path):
    rows = [manual(key=1, answer="ignore"), manual(span("Bob", "PER"), key=2, answer="reject"), manual(key=3)]
    docs, report = read(tmp_path, *rows)
    assert len(docs) == 1 and report.notes == {prodigy.IGNORED: 1, prodigy.REJECTED: 1}


def test_of_answers_that_differ_the_last_counts(tmp_path):
    rows = [manual(span("Anna", "PER")), manual(span("Bob", "PER")), binary("Bob", "PER", "reject")]
    (doc,), report = read(tmp_path, *rows)
    assert ents(doc) == [("Bob", "PER")] and report.notes[prodigy.CONFLICTS] == 1 and "wrong" not in doc.spans
    rows = [manual(span("Anna", "PER"), _timestamp=20), manual(span("Anna", "LOC"), _timestamp=10)]
    (doc,), report = read(tmp_path, *rows)
    assert ents(doc) == [("Anna", "PER")] and report.notes[prodigy.CONFLICTS] == 1
    (doc,), report = read(tmp_path, binary("Bob", "PER", "accept"), binary("Bob", "PER", "reject"))
    assert (ents(doc), group(doc, "wrong"), report.notes[prodigy.CONFLICTS]) == ([], [("Bob", "PER")], 1)
    assert (iob(doc), report.unknown) == ("-----", 1)


def test_one_label_after_the_other_makes_no_wrong_gold(tmp_path):
    """The second pass, about places, has no persons."""
    rows = [manual(span("Anna", "PER"), span("Bob", "PER")), manual(span("Paris", "LOC")), manual(span("Bob", "PER"))]
    (doc,), report = read(tmp_path, *rows[:2])
    assert ents(doc) == [("Paris", "LOC")] and iob(doc) == "-O-OB"
    assert report.notes == {prodigy.MERGED: 1, prodigy.OLDER: 2}
    (doc,), _ = read(tmp_path, *rows)
    assert ents(doc) == [("Bob", "PER")] and iob(doc) == "-OBO-"


def test_blocks_and_reviews_are_what_they_show(tmp_path):
    note = {"text": TEXT, "_view_id": "blocks", "_input_hash": 1, "comment": "fine", "answer": "accept"}
    (doc,), report = read(tmp_path, note)
    assert iob(doc) == "-----" and report.notes == {prodigy.OTHER_VIEWS: 1}
    review = {**manual(span("Anna", "PER"), _view_id="review"), "versions": []}
    for view, tags in (("ner", "B----"), ("ner_manual", "BOOOO"), (None, "BOOOO")):
        (doc,), _ = read(tmp_path, review if view is None else {**review, "view_id": view})
        assert iob(doc) == tags


def test_what_is_rejected_must_be_one_span(tmp_path):
    old = manual(span("Anna", "PER"), key=2, answer="reject")
    del old["_view_id"]  # marked by hand: perhaps Bob was forgotten
    several = manual(span("Anna", "PER"), span("Bob", "PER"), key=3, answer="reject", _view_id="ner")
    (doc,), report = read(tmp_path, old, several, manual(key=4))
    assert "wrong" not in doc.spans and report.notes == {prodigy.REJECTED: 2}


def test_what_nobody_has_answered_is_a_suggestion(tmp_path):
    row = {"text": TEXT, "_input_hash": 1, "spans": [span("Bob", "PER", source="list", score=0.25)]}
    (doc,), _ = read(tmp_path, row)
    assert iob(doc) == "-----" and group(doc, "suggested") == [("Bob", "PER")]
    assert weak.group_scores(doc, "suggested") == [0.25] and not weak.weak_sources(doc)
    (doc,), report = read(tmp_path, row, manual(span("Anna", "PER"), key=1))
    assert ents(doc) == [("Anna", "PER")] and not doc.spans and report.notes[ANSWERED] == 1


def test_any_row_about_a_text_may_have_its_tokens(tmp_path):
    """Without them, the span would not end at a token border."""
    cut = [{"text": "An", "start": 0, "end": 2, "id": 0}, {"text": "na", "start": 2, "end": 4, "id": 1}]
    row = {"text": "Anna", "tokens": cut, "spans": [{"start": 0, "end": 2, "label": "X"}], "answer": "accept"}
    topic = {"text": "Anna", "_view_id": "classification", "label": "NAMES", "answer": "accept"}
    for rows in ([row], [{**row, "_input_hash": 1}, {**topic, "_input_hash": 1}]):
        (doc,), _ = read(tmp_path, *rows)
        assert ents(doc) == [("An", "X")] and iob(doc) == "BO"


def test_questions_about_something_else_hold_no_entities(tmp_path):
    row = {"text": TEXT, "label": "SPORTS", "_view_id": "classification", "answer": "accept", "_input_hash": 4}
    (doc,), report = read(tmp_path, row)
    assert iob(doc) == "-----" and report.notes == {prodigy.OTHER_VIEWS: 1}


def test_rows_need_not_stand_together():
    """Against a dictionary of everything."""
    rng = random.Random(0)
    rows = [
        {"text": str(key), "_input_hash": key, "n": n} if key else {"text": "none", "_task_hash": 1, "n": n}
        for n, key in enumerate(rng.randrange(8) for _ in range(60))
    ]
    expected = {}
    for row in rows:
        expected.setdefault(row.get("_input_hash") or -row["n"], []).append(row)
    items = list(enumerate(rows))
    found = list(prodigy.gather(items))
    assert sorted((r for _, r in found), key=str) == sorted(expected.values(), key=str)
    # Each where its last row stands.
    assert [place for place, _ in found] == sorted(rows[-1]["n"] for rows in expected.values())


def test_equal_hashes_of_different_texts_stay_apart(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [manual(), {**manual(), "text": "Other", "tokens": tokens("Other")}])
    assert [len(rows) for _, rows in prodigy.gather(read_items(path))] == [1, 1]


@pytest.mark.parametrize("key", ["entities", "ents"])
@pytest.mark.parametrize("change", [{}, {"_view_id": "spans_manual"}, {"_view_id": None, "tokens": None}])
def test_accepted_with_another_key_for_spans_is_refused(tmp_path, key, change):
    row = {name: value for name, value in {**manual(), **change}.items() if value is not None and name != "spans"}
    path = write_lines(tmp_path / "a.jsonl", [{**row, key: [[0, 4, "PER"]]}])
    with pytest.raises(WeaknerError, match=f"WK103.*line 1.*'{key}'.*rename the key to 'spans'"):
        converted(path, format="prodigy")
    path.write_text(path.read_text().replace(f'"{key}"', '"spans"'))
    (doc,), _ = converted(path, format="prodigy")
    assert ents(doc) == [("Anna", "PER")]
    for known in ({"meta": {"a": 1}}, {"spans": [], key: [[0, 4, "PER"]]}, {"relations": [{}]}):
        (doc,), _ = converted(write_lines(path, [{**row, **known}]), format="prodigy")
        assert ents(doc) == []


def test_malformed_rows_name_their_line(tmp_path):
    with pytest.raises(WeaknerError, match=r"WK103.*a\.jsonl, line 2.*whole numbers"):
        read(tmp_path, manual(key=1), manual({"label": "X"}, key=2))
