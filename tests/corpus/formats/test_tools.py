"""Files made by hand from the documented shape of each tool."""

import json
from functools import partial

import pytest
import spacy

from spacy_weakner.checks.check import check
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import overlaps, records, weak
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.formats import brat, items, tools
from spacy_weakner.corpus.formats.reading import Reading, file_format, read_corpus
from spacy_weakner.corpus.records import EMPTY
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runtime.blocks import corpus_inputs

from ...util import iob
from .util import ANNA, NLP, PARIS, TEXT, answer, converted, ents, result, task, write_array, write_lines

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


def test_null_is_no_annotation_in_doccano(tmp_path):
    rows = [{"text": TEXT, "label": [ANNA]}, {"text": "No.", "label": None}, {"text": "No.", "label": []}]
    docs, report = converted(write_lines(tmp_path / "a.jsonl", rows))
    assert [iob(doc) for doc in docs] == ["BOOOOO", "--", "OO"] and report.notes == {EMPTY: 1}


def test_the_tags_of_word_pieces_are_no_labels(tmp_path):
    piece = {"entity": "B-PER", "score": 0.9, "index": 1, "word": "Anna", "start": 0, "end": 4}
    with pytest.raises(WeaknerError, match=r"line 1.*label"):
        converted(write_lines(tmp_path / "a.jsonl", [{"text": TEXT, "entities": [piece]}]))


@pytest.mark.parametrize("settings", [{}, {"indent": 1}])
def test_rasa(tmp_path, settings):
    entity = {"start": 16, "end": 21, "value": "Paris", "entity": "LOC", "confidence": 1}
    rows = [{"text": TEXT, "intent": "tell", "entities": [entity]}, {"text": "No.", "intent": "no", "entities": []}]
    data = {"rasa_nlu_data": {"common_examples": rows, "entity_synonyms": [{"value": "x", "synonyms": ["y"]}]}}
    path = write_array(tmp_path / "a.json", data, **settings)
    docs, report = converted(path)
    assert [ents(doc) for doc in docs] == [[("Paris", "LOC")], []] and not report.unknown


def test_gliner_ends_are_part_of_the_span(tmp_path):
    row = {"tokenized_text": ["New", "York", "and", "Rome"], "ner": [[0, 1, "city"], [3, 3, "city"]]}
    rows = [row, {"tokenized_text": ["No", "é😊", "\u2028x", '"'], "ner": []}]
    path = write_array(tmp_path / "a.json", rows, indent=1)
    (doc, other), _ = converted(path)
    assert ents(doc) == [("New York", "city"), ("Rome", "city")] and iob(doc) == "BIOB" and iob(other) == "OOOO"
    assert [t.text for t in other] == rows[1]["tokenized_text"]
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xe9"))
    with pytest.raises(WeaknerError, match=r"WK104.*line"):
        converted(path, format="gliner")


@pytest.mark.parametrize("write", [write_lines, write_array, partial(write_array, indent=1)])
def test_spacy_docs(tmp_path, write):
    text = "Anna isn't in New York."
    doc, other, bare = map(spacy.blank("en"), (text, "No.", "Yes."))
    doc.set_ents([doc.char_span(0, 4, "PER"), doc.char_span(14, 22, "LOC")])
    doc.spans["sc"] = [doc[0:1]]
    doc.cats = {"X": 1.0}
    other.set_ents([])
    (found, no, yes), report = converted(write(tmp_path / "a.json", [d.to_json() for d in (doc, other, bare)]))
    assert [t.text for t in found] == [t.text for t in doc] and found.cats == {"X": 1.0}  # with the tokens of the file
    assert ents(found) == [("Anna", "PER"), ("New York", "LOC")]
    assert iob(no) == "OO" and iob(yes) == "--" and report.groups == {"sc": 1}


GROUP = {"sc": [{"start": 0, "end": 4, "label": "PER", "kb_id": "Q1"}], "other": [{"start": 5, "end": 9, "label": "X"}]}


@pytest.mark.parametrize(
    "row",
    [
        {"text": "Anna left", "ents": [], "spans": GROUP, "tokens": [{"start": 0, "end": 4}, {"start": 5, "end": 9}]},
        {"text": "Anna left", "spans": GROUP, "tokens": [{"start": 0, "end": 4}, {"start": 5, "end": 9}]},
        ["Anna left", {"entities": [], "spans": {"sc": [[0, 4, "PER"]], "other": [[5, 9, "X"]]}}],
    ],
)
def test_span_groups_of_spacy(tmp_path, row):
    path = write_lines(tmp_path / "a.jsonl", [row])
    (doc,), report = converted(path, spans_key="sc")
    assert ents(doc) == [("Anna", "PER")] and iob(doc) == "BO" and report.groups == {"other": 1}
    assert doc.ents[0].kb_id_ == ("Q1" if isinstance(row, dict) else "")
    (doc,), report = converted(path)
    assert not doc.ents and report.groups == {"sc": 1, "other": 1}
    assert any("--spans-key sc" in remark for remark in report.remarks)
    with pytest.raises(WeaknerError, match=r"WK372"):
        converted(path, spans_key="ruler")
    for key, n in ((None, 0), ("sc", 1)):
        found = check(gold=path, lang="xx", spans_key=key)
        assert found.labels[0].counts.get("PER", 0) == n if found.labels else n == 0
        assert any("--spans-key sc" in finding.message for finding in found.findings) == (key is None)


def test_answers_whose_tokens_have_no_text(tmp_path):
    tokens = [{"id": 0, "start": 0, "end": 4}, {"id": 1, "start": 5, "end": 9}]
    row = {"text": "Anna left", "spans": [{"start": 0, "end": 4, "label": "PER"}], "tokens": tokens, "answer": "accept"}
    (doc,), _ = converted(write_lines(tmp_path / "a.jsonl", [row]))
    assert ents(doc) == [("Anna", "PER")] and iob(doc) == "BO"


@pytest.mark.parametrize("ent", [[0, 9, "PER"], {"start": 0, "label": "PER"}, {"start": 0, "end": 4}, 7])
def test_spacy_docs_with_faults(tmp_path, ent):
    row = {"text": "Anna", "tokens": [{"id": 0, "start": 0, "end": 4}], "ents": [ent]}
    with pytest.raises(WeaknerError, match=r"line 1"):
        converted(write_lines(tmp_path / "a.jsonl", [row]))


@pytest.mark.parametrize("write", [write_lines, write_array])
def test_spacy_pairs(tmp_path, write):
    rows = [[TEXT, {"entities": [ANNA, PARIS]}], ["No. Yes.", {"cats": {"X": 1.0}}]]
    (doc, other), _ = converted(write(tmp_path / "a.json", rows))
    assert ents(doc) == [("Anna", "PER"), ("Paris", "LOC")]
    assert other.cats == {"X": 1.0} and set(iob(other)) == {"-"}


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
    # Windows puts a byte order mark first, which brat counts.
    (folder / "d2.txt").write_bytes("\ufeffSmith left.".encode())
    (folder / "d2.ann").write_text("T1\tPER 1 6\tSmith\n")
    doc = converted(folder)[0][1]
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Smith", "PER")] and "\ufeff" not in doc.text
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
        ("spacy-json", [TEXT, {"entities": [], "tags": ["X"], "mine": [ANNA]}], "mine"),
        ("jsonl", {"text": TEXT, "label": {"name": {"a": 1}}}, "label"),
    ],
)
def test_unknown_keys_with_lists_or_objects_are_named(tmp_path, format, row, unknown):
    _, report = converted(write_lines(tmp_path / "a.jsonl", [row]), format=format)
    assert {key for key in report.ignored if key in report.lists} == {unknown}
    assert any("unknown keys" in remark and unknown in remark for remark in report.remarks)
    known = format not in ("jsonl", "doccano") or ("label" in row and unknown != "label")
    assert report.suspects == ([] if known else [unknown])


# Records that do not stand one a line

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


def test_an_object_around_records_on_each_line(tmp_path):
    objects = [{"id": i, "data": [{"text": TEXT, "label": [ANNA]}, {"text": TEXT, "label": [label]}]}
               for i, label in enumerate([PARIS, [0, 99, "X"]])]  # fmt: skip
    docs, _ = converted(write_lines(tmp_path / "a.jsonl", [objects[0]] * 2))
    assert [ents(doc) for doc in docs] == [[("Anna", "PER")], [("Paris", "LOC")]] * 2
    with pytest.raises(WeaknerError, match=r"WK742.*line 2, item 2"):
        converted(write_lines(tmp_path / "a.jsonl", objects))
    with pytest.raises(WeaknerError, match="line 1: the row has neither 'tokens' nor 'text', only: id, sentences"):
        converted(write_lines(tmp_path / "a.jsonl", [{"id": "d", "sentences": [{"tokens": ["Anna"], "ents": []}]}] * 2))


def test_an_object_over_several_lines(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"text": TEXT, "label": [ANNA]}, indent=1))
    (doc,), _ = converted(path)
    assert ents(doc) == [("Anna", "PER")]


# All of them


@pytest.mark.parametrize(
    "spans, found, tags, notes",
    [
        ([[0, 12, "X"], ANNA, PARIS, PARIS], [("Paris", "LOC")], "---OBO", {overlaps.OVERLAPS: 2}),
        ([[0, 5, "PER"], [12, 13, "PER"]], [("Anna", "PER")], "BOOOOO", {records.BLANK: 1}),
    ],
)
def test_overlaps_are_not_guessed_at_and_white_space_is_no_part(tmp_path, spans, found, tags, notes):
    (doc,), report = converted(write_lines(tmp_path / "a.jsonl", [{"text": TEXT, "label": spans}]))
    assert (ents(doc), iob(doc), report.notes) == (found, tags, notes)


@pytest.mark.parametrize(
    "text, expected",
    [
        ('[{"tokenized_text": ["a"], "ner": []}, {"tokenized_text": ["a"]', r"its JSON: not JSON.*column 64"),
        ('[{"tokenized_text": ["a"]} {"tokenized_text": ["b"]}]', r"its JSON: not JSON: .*','.*column 28"),
        ('[{"tokenized_text": ["a"]}] []', r"its JSON: not JSON: Extra data.*jq -c \."),
        ('[{"tokenized_text": ["a"], "n": NaN}]', r"its JSON: not JSON"),
        ('[{"tokenized_text": ["a"], "n": ' + "[" * 100_000 + "]", r"its JSON: not JSON: nested too deeply"),
        ('[{"tokenized_text": ["a"], "ner": [[0, 0, 1]]}]', r"item 1: the label"),
        ('[{"tokenized_text": ["a"], "ner": [[0, 5, "X"]]}]', r"item 1.*\[0, 6"),
        ('[{"tokenized_text": ["\\ud800"], "ner": [[0, 0, "X"]]}]', r"its JSON: not JSON: .*half of a surrogate"),
        ('{"text": "a",\n "label": [[0, 1, "X"]', "its JSON: not JSON.*line 2, column 23"),
        ('{"text": "a", "label": [}\n{"text": "b"}', "line 1: not JSON"),
        ('{"text":\n"a"}\n{"text":\n"b"}', r"its JSON: not JSON: Extra data \(line 3, column 1\).*jq -c \."),
    ],
)
def test_malformed_json(tmp_path, text, expected):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(WeaknerError, match=expected) as error:
        converted(tmp_path / "a.json")
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


def test_an_array_is_parsed_for_its_format_its_offsets_and_its_docs(tmp_path, monkeypatch):
    parsed, parse = [], items._parse
    monkeypatch.setattr(items, "_parse", lambda *args: parsed.append(args) or parse(*args))
    converted(write_array(tmp_path / "a.json", [task([answer(ANNA)])]))
    assert len(parsed) == 3


def test_the_first_rows_tell_the_format(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [{"text": "a", "label": []}, {"text": TEXT, "label": [ANNA]}])
    assert file_format(path) == "doccano"
    assert file_format(write_lines(tmp_path / "b.jsonl", [{"text": "a"}])) == "jsonl"
    rows = [{"tokens": ["a"], "ents": []}] * 300 + [{"text": TEXT, "label": [ANNA]}]
    with pytest.raises(WeaknerError, match=r"line 301.*'doccano'.*--format doccano"):
        converted(write_lines(tmp_path / "c.jsonl", rows))


def test_what_shards_are_made_from(tmp_path):
    def found(path):
        blocks = corpus_inputs(path, NLP, Reading(), shard_size=2)
        return [[doc.text for doc in block.read(NLP.vocab)[0]] for block in blocks]

    write_lines(tmp_path / "rows.jsonl", [{"text": name} for name in "abc"])
    assert found(tmp_path / "rows.jsonl") == [["a", "b"], ["c"]]
    wholes = {
        "tags.jsonl": [{"tokens": ["a", "b"], "ner_tags": ["B-PER", "O"]}] * 3,
        "tool.json": [task()],
        "array.json": [{"tokens": ["a"]}],
        # What its offsets count may stand in the last line.
        "offsets.jsonl": [{"text": "a b", "label": []}] * 2 + [{"text": "\U0001f60a a b c", "label": [[5, 7, "X"]]}],
    }
    for name, rows in wholes.items():
        path = (write_lines if name.endswith(".jsonl") else write_array)(tmp_path / name, rows)
        (docs,) = found(path)
        assert docs == [doc.text for doc in read_corpus(path, NLP, Reading())] and len(docs) == len(rows)
    (everything,) = found(tmp_path)
    assert len(everything) == 3 + sum(map(len, wholes.values()))
    write_docs(tmp_path / "a.spacy", [NLP("d")])
    assert found(tmp_path / "a.spacy") == [["d"]]
    with pytest.raises(WeaknerError, match=r"WK206.*\.spacy files and files of other formats, such as .*array\.json"):
        found(tmp_path)


def test_the_text_beside_annotations_tells_a_shard_of_brat(tmp_path):
    (tmp_path / "a.ann").write_text("T1\tPER 0 4\tAnna\n")
    keys = set()
    for text in ("Anna ran", "Anna left"):
        (tmp_path / "a.txt").write_text(text)
        for path in (tmp_path, tmp_path / "a.ann"):
            keys |= {shard.key() for shard in corpus_inputs(path, NLP, Reading())}
    assert len(keys) == 4


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
