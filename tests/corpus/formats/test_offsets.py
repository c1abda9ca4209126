"""Code points, UTF-16 units and bytes."""

import pytest

from spacy_weakner.corpus.formats import offsets as units
from spacy_weakner.corpus.formats.offsets import UNITS, Offsets
from spacy_weakner.errors import WeaknerError

from .util import converted, ents, write_array, write_lines

HELLO = "Hello 😊, my name is John."
JOINED = "👩🏽‍💻 met Zoe\u0308 in Łódź."  # four code points, seven units; e with a mark


@pytest.mark.parametrize(
    "text, word, unit, start",
    [
        (HELLO, "John", "codepoints", 20),
        (HELLO, "John", "utf16", 21),
        (JOINED, "Łódź", "codepoints", 17),
        (JOINED, "Łódź", "utf16", 20),
        (HELLO, "John", "bytes", 23),
        ("Zoë Müller met Anna", "Anna", "bytes", 17),
    ],
)
def test_table(text, word, unit, start):
    offsets = Offsets(text, unit)
    assert offsets.code_point(start) == text.index(word)
    assert offsets.offset(text.index(word)) == start


@pytest.mark.parametrize("unit", UNITS)
def test_there_and_back(unit):
    for text in (HELLO, JOINED, "", "plain"):
        in_unit = Offsets(text, unit)
        offsets = [in_unit.offset(i) for i in range(len(text) + 1)]
        assert [in_unit.code_point(offset) for offset in offsets] == list(range(len(text) + 1))
        assert in_unit.code_point(max(offsets) + 1) is None and in_unit.code_point(-1) is None
    assert Offsets(HELLO, "utf16").code_point(7) is None


def task(start, end, text="John", whole=HELLO):
    value = {"start": start, "end": end, "text": text, "labels": ["PER"]}
    return {"data": {"text": whole}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}


@pytest.mark.parametrize("unit, start", [("utf16", 21), ("codepoints", 20), ("bytes", 23)])
def test_what_fits_the_texts_is_taken_and_said(tmp_path, unit, start):
    rows = [task(0, 5, "Hello"), task(start, start + 4)]
    docs, report = converted(write_array(tmp_path / "a.json", rows))
    assert [ents(doc) for doc in docs] == [[("Hello", "PER")], [("John", "PER")]]
    assert report.offsets == {unit: 1} and not report.notes
    _, report = converted(write_array(tmp_path / "a.json", [task(0, 4, whole="John ran.")]))
    assert not report.offsets and not report.notes


def test_units_are_never_mixed(tmp_path):
    path = write_array(tmp_path / "a.json", [task(21, 25), task(20, 24)])
    with pytest.raises(WeaknerError, match=r"WK742.*item 2.*\"John\".*of 2.*utf16 1, codepoints 1") as error:
        converted(path)
    assert len(str(error.value)) < 600
    docs, report = converted(path, offsets="utf16")
    assert [ents(doc) for doc in docs] == [[("John", "PER")], []]
    # What covers another text is not known, and the rest is.
    assert [token.text for token in docs[1] if token.ent_iob == 0] == ["John"]
    assert sum(report.notes.values()) == 1


def test_bytes_are_taken_only_if_texts_tell(tmp_path):
    path = write_lines(
        tmp_path / "a.jsonl", [{"text": "Zoë Müller met Anna", "label": [[0, 12, "PER"], [17, 21, "PER"]]}]
    )
    with pytest.raises(WeaknerError, match=r"WK742.*line 1.*bytes 0, codepoints 1, utf16 1.*--offsets bytes"):
        converted(path)
    (doc,), _ = converted(path, offsets="bytes")
    assert ents(doc) == [("Zoë Müller", "PER"), ("Anna", "PER")]


@pytest.mark.parametrize("whole", ["John ran, or John did.", "John rän, or John did."])
def test_a_wrong_span_is_named_as_one(tmp_path, whole):
    start = len(whole) - 9
    path = write_array(tmp_path / "a.json", [task(start, start + 4, whole=whole)] * 20 + [task(1, 4, whole=whole)])
    with pytest.raises(
        WeaknerError, match=r'WK742.*item 21: the span \[1, 4, "PER"\].*"John".*"ohn".*of 21,.*utf16 1,'
    ):
        converted(path)
    docs, report = converted(path, offsets="utf16")
    assert [len(doc.ents) for doc in docs] == [1] * 20 + [0] and report.notes == {units.OTHER_TEXT: 1}


@pytest.mark.parametrize("text, named", [("Zoë Müller met Anna", True), ("Zoe Muller met Anna", False)])
@pytest.mark.parametrize("span", [[0, 12, "PER"], [17, 23, "PER"]])
def test_offsets_of_own_rows_count_code_points(tmp_path, text, named, span):
    with pytest.raises(WeaknerError, match=r"WK103.*line 1") as error:
        converted(write_lines(tmp_path / "a.jsonl", [{"text": text, "ents": [span]}]))
    assert ("bytes" in str(error.value)) is named


@pytest.mark.parametrize(
    "text, span, unknown",
    [
        ("Yours,\nBob Lee", [7, 18], ["Bob", "Lee"]),
        ("Yours, Bob Lee", [14, 18], []),
        ("Yours, Bob Lee", [99, 100], []),
        ("Hi 😊 Bob", [3, 99], ["😊", "Bob"]),
    ],
)
@pytest.mark.parametrize("unit", UNITS)
def test_what_lies_beyond_the_text_is_not_known(tmp_path, text, span, unknown, unit):
    rows = [{"text": "Anna lives in Kiel.", "label": [[0, 4, "PER"]]}, {"text": text, "label": [[*span, "PER"]]}]
    path = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(WeaknerError, match=r"WK742.*--offsets codepoints"):
        converted(path)
    docs, report = converted(path, offsets=unit)
    assert [ents(doc) for doc in docs] == [[("Anna", "PER")], []]
    assert [[token.text for token in doc if token.ent_iob == 0 and not token.is_space] for doc in docs] == [[], unknown]
    assert {what: n for what, n in report.notes.items() if "--offsets" not in what} == {units.BEYOND: 1}


def test_what_cuts_a_character_is_not_known(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"text": "Hi 😊 Bob", "label": [[4, 5, "X"]]}])
    docs, report = converted(path, offsets="utf16")
    assert [token.text for token in docs[0] if token.ent_iob == 0] == ["😊"] and report.notes[units.BEYOND] == 1


def test_without_texts_the_end_tells_or_nobody(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"text": HELLO, "label": [[20, 24, "PER"]]}])
    docs, report = converted(path)
    assert ents(docs[0]) == [("John", "PER")]
    assert [what for what in report.notes if "--offsets" in what] and not report.offsets
    row = {"text": "😊😊 John", "label": [[5, 9, "PER"]]}
    docs, report = converted(write_lines(tmp_path / "b.jsonl", [row]))
    assert ents(docs[0]) == [("John", "PER")] and report.offsets == {"utf16": 1}
