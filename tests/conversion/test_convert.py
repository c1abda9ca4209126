import gzip
import json
import os
from functools import partial

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_weakner.conversion import convert as conversion
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.formats.reading import MARKS, file_format
from spacy_weakner.corpus.language import corpus_language
from spacy_weakner.errors import WeaknerError

from ..util import iob

NLP = spacy.blank("xx")
convert = partial(conversion.convert, lang="xx")  # whose tokenizer is made fastest
ROWS = [
    {"id": "a", "tokens": ["New", "York", "rocks"], "ents": [[0, 2, "CITY"]], "missing": [[2, 3]]},
    {"id": "b", "tokens": ["Yes"], "ents": None, "weak_ents": [[0, 1, "X"]], "cats": {"T": 1.0}},
]


def write_rows(path, rows):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return list(read_docs(path, NLP.vocab))


def test_jsonl_to_spacy_and_back(tmp_path):
    source = write_rows(tmp_path / "a.jsonl", ROWS)
    report = convert(source, tmp_path / "a.spacy", source="llm")
    assert (report.docs, report.tokens, report.unknown, report.files) == (2, 4, 1, 1)
    assert (report.entities, report.weak, report.ignored, report.suspects) == ({"CITY": 1}, {"llm": 1}, {}, [])
    assert (report.empty, report.misaligned, report.moved) == (0, 0, 0)
    assert [iob(doc) for doc in read(tmp_path / "a.spacy")] == ["BI-", "-"]
    convert(tmp_path / "a.spacy", tmp_path / "b.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert rows == [ROWS[0], {**ROWS[1], "weak_ents": {"llm": [[0, 1, "X"]]}}]


def test_raw_text_is_split_into_sentences(tmp_path):
    (tmp_path / "a.txt").write_text("One is  here.\tTwo is here!\n\n \nThree.\n")
    report = convert(tmp_path / "a.txt", tmp_path / "a.spacy")
    docs = read(tmp_path / "a.spacy")
    assert [doc.text for doc in docs] == ["One is here.", "Two is here!", "Three."]
    assert (report.docs, report.empty, report.unknown) == (3, 2, 3)
    convert(tmp_path / "a.txt", tmp_path / "b.spacy", sentences="none")
    assert [doc.text for doc in read(tmp_path / "b.spacy")] == ["One is here. Two is here!", "Three."]


def test_annotated_texts_keep_text_and_offsets(tmp_path):
    """Rows do not depend on the tokens of a language; `.spacy` files and unannotated text do."""
    text = "Gabe  z.B. von\nAspirin (wg. Husten 😊)."
    start = text.index("Husten")
    ents = [[16 - 1, 22, "DRUG", "N02"], [start, start + 6, "DIS"]]
    rows = [
        {"id": "a", "text": text, "ents": ents, "missing": [[0, 4]], "wrong": [[6, 10, "DIS"]]},
        {"text": "Anna left", "ents": [], "weak_ents": {"list": [[0, 4, "PER", 0.5]]}, "cats": {"T": 1.0}},
        {"text": "Anna left", "ents": None, "suggested": [[0, 4, "PER"]]},
        ROWS[0],
    ]
    given = write_rows(tmp_path / "a.jsonl", rows)
    for lang in ("en", "de", "xx"):
        convert(given, tmp_path / "b.jsonl", lang=lang, overwrite=True)
        assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == rows
    task = {"data": {"text": text}, "annotations": [{"result": []}]}
    (tmp_path / "a.json").write_text(json.dumps([task]))
    convert(tmp_path / "a.json", tmp_path / "c.jsonl")
    assert json.loads((tmp_path / "c.jsonl").read_text()) == {"text": text, "ents": []}
    convert(given, tmp_path / "a.spacy")
    convert(tmp_path / "a.spacy", tmp_path / "d.jsonl")
    assert "tokens" in json.loads((tmp_path / "d.jsonl").read_text().splitlines()[0])


@pytest.mark.parametrize("name, to", [("b.json", "label-studio"), ("b.jsonl", "prodigy")])
def test_weak_labels_come_back_as_suggestions(tmp_path, name, to):
    """And are counted, so that nobody takes them for weak labels."""
    ents = {"list": [[0, 4, "PER"]], "other": [[10, 14, "LOC"], [15, 19, "LOC"]]}
    given = write_rows(tmp_path / "a.jsonl", [{"text": "Anna left Rome Bonn", "weak_ents": ents}])
    assert convert(given, tmp_path / name, to=to).suggested == 0
    report = convert(tmp_path / name, tmp_path / "c.jsonl", to="jsonl")
    assert (report.suggested, report.weak) == (3, {})


def test_spans_within_tokens_name_the_language(tmp_path):
    given = write_rows(tmp_path / "a.jsonl", [{"text": "am 3.Mai", "ents": [[5, 8, "DATE"]]}])
    with pytest.raises(WeaknerError, match=r"line 1.*'en'.*--lang.*--tokenizer"):
        convert(given, tmp_path / "b.jsonl", lang="en")
    convert(given, tmp_path / "b.jsonl", lang="en", misaligned="drop")
    row = {"text": "am 3.Mai", "ents": [], "missing": [[3, 8]]}
    assert json.loads((tmp_path / "b.jsonl").read_text()) == row


def test_a_device_is_no_output(tmp_path):
    given = write_rows(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(WeaknerError, match=r"WK305.*/dev/null.*device"):
        convert(given, "/dev/null")


def test_how_texts_are_split(tmp_path):
    """As chosen, which is recorded with the corpus, and as packaged pipelines split."""
    text = "Pat. wg. A.\nkam. Er ging"
    write_rows(tmp_path / "a.jsonl", [{"text": text}])
    senter = spacy.blank("xx")
    example = Example.from_dict(senter.make_doc("a b . c"), {"sent_starts": [1, 0, 0, 1]})
    senter.add_pipe("senter")
    senter.initialize(lambda: [example])
    senter.to_disk(tmp_path / "senter")
    spacy.blank("xx").to_disk(tmp_path / "blank")
    whole = " ".join(text.split())
    for how, abbreviations, expected in (
        (None, None, ["Pat.", "wg.", "A. kam.", "Er ging"]),
        ("rule", "wg.,Pat.", ["Pat. wg. A. kam.", "Er ging"]),
        ("sentencizer", "wg.,Pat.", ["Pat.", "wg.", "A. kam.", "Er ging"]),
        ("lines", None, ["Pat. wg. A.", "kam. Er ging"]),
        ("none", None, [text]),
        (str(tmp_path / "senter"), None, [sentence.text for sentence in senter(whole).sents]),
    ):
        given = {"sentences": how, "abbreviations": abbreviations, "overwrite": True}
        convert(tmp_path / "a.jsonl", tmp_path / "a.spacy", **given)
        assert [doc.text for doc in read(tmp_path / "a.spacy")] == expected
        known = corpus_language(tmp_path / "a.spacy")
        assert known[2:] == (how or "rule", abbreviations or "")
        nlp = known.blank()
        known.add_sentences(nlp)
        if how != "none":
            assert [sentence.text.strip() for sentence in nlp(whole if how != "lines" else text).sents] == expected
    for wrong, code in (("rules", "WK005.*rule"), (str(tmp_path / "blank"), "WK353.*senter")):
        with pytest.raises(WeaknerError, match=code):
            convert(tmp_path / "a.jsonl", tmp_path / "b.spacy", sentences=wrong)


@pytest.mark.parametrize(
    "name, parts",
    [
        ("a.txt", ["Anna ran.\n", "Bob ran.\n"]),
        ("a.conll", ["Anna\tB-PER\nran\tO\n.\tO\n\n", "Bob\tB-PER\nran\tO\n.\tO\n"]),
        ("a.jsonl", [json.dumps({"text": f"{name} ran.", "ents": []}) + "\n" for name in ("Anna", "Bob")]),
        ("b.jsonl", [json.dumps({"text": f"{name} ran.", "label": []}) + "\n" for name in ("Anna", "Bob")]),
    ],
)
def test_byte_order_marks_of_joined_files(tmp_path, name, parts):
    (tmp_path / name).write_text("".join(f"\ufeff{part}" for part in parts), encoding="utf-8")
    report = convert(tmp_path / name, tmp_path / "out.spacy")
    assert [[t.text for t in doc] for doc in read(tmp_path / "out.spacy")] == [
        ["Anna", "ran", "."],
        ["Bob", "ran", "."],
    ]
    assert all("mark" not in note for note in report.notes)


def test_a_byte_order_mark_within_a_line_is_counted(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeffAnna ran.\ufeffBob ran.\n", encoding="utf-8")
    assert convert(tmp_path / "a.txt", tmp_path / "a.spacy").notes == {MARKS: 1}


def test_columns_in_raw_text_are_counted(tmp_path):
    (tmp_path / "a.txt").write_text("Anna\tperson\nran\tO\n\nBob NNP B-PER\nslept VB O\nTHE LETTER O.\nHELLO\n")
    (remark,) = convert(tmp_path / "a.txt", tmp_path / "a.spacy").remarks
    assert ".conll" in remark and remark.endswith(": 2")


def test_only_text_without_annotations_is_split(tmp_path):
    text = "One here. Two here."
    rows = [
        {"id": "a", "text": text, "meta": {"why": "x"}},
        {"text": text, "ents": []},
        {"text": text, "weak_ents": []},
        {"text": text, "cats": {"X": 1}},
        {"tokens": text.split()},
    ]
    convert(write_rows(tmp_path / "a.jsonl", rows), tmp_path / "a.spacy")
    docs = read(tmp_path / "a.spacy")
    assert [doc.text.strip() for doc in docs] == ["One here.", "Two here."] + [text] * 4
    assert [weak.get_id(doc) for doc in docs[:2]] == ["a.1", "a.2"]
    assert [weak.get_meta(doc) for doc in docs[:3]] == [{"why": "x"}, {"why": "x"}, None]


def test_tokenizer_and_language(tmp_path):
    (tmp_path / "a.txt").write_text("L-dopa我\n")
    convert(tmp_path / "a.txt", tmp_path / "a.spacy", tokenizer="spacy_weakner.WordTokenizer.v1")
    assert [t.text for t in read(tmp_path / "a.spacy")[0]] == ["L", "-", "dopa我"]
    (tmp_path / "b.txt").write_text("我在北京。你呢？\n")
    convert(tmp_path / "b.txt", tmp_path / "b.spacy", lang="zh")
    assert [[t.text for t in doc] for doc in read(tmp_path / "b.spacy")] == [list("我在北京。"), list("你呢？")]


def test_folder_of_shards_is_replaced_as_a_whole(tmp_path):
    source = write_rows(tmp_path / "a.jsonl", [{"tokens": [str(i)]} for i in range(5)])
    report = convert(source, tmp_path / "out", shard_size=2)
    assert report.files == 3
    assert [doc[0].text for doc in read(tmp_path / "out")] == list("01234")
    convert(source, tmp_path / "out", shard_size=4, overwrite=True)
    assert sorted(f.name for f in (tmp_path / "out").glob("*.spacy")) == ["part-00000.spacy", "part-00001.spacy"]
    with source.open("a") as file_:
        file_.write("{broken")
    before = {f: f.read_bytes() for f in (tmp_path / "out").iterdir()}
    with pytest.raises(WeaknerError, match="line 6"):
        convert(source, tmp_path / "out", shard_size=1, overwrite=True)
    assert {f: f.read_bytes() for f in (tmp_path / "out").iterdir()} == before
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.jsonl", "out"]


@pytest.mark.parametrize("name", ["out", "out.spacy", "out.jsonl", "out.conll"])
def test_nothing_is_replaced_unasked(tmp_path, name):
    rows = [{"tokens": ["a"], "ents": []}, {"tokens": ["b"], "ents": []}]
    source, output = write_rows(tmp_path / "a.jsonl", rows), tmp_path / name
    convert(source, output, shard_size=1)
    mine = output / "part-00000.spacy" if name == "out" else output
    mine.write_bytes(mine.read_bytes() + b"\n")
    before = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()}
    with pytest.raises(WeaknerError, match=rf"WK314.*{name} .*--overwrite"):
        convert(source, output, limit=1)
    assert {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file()} == before
    convert(source, output, limit=1, overwrite=True)
    convert(output, tmp_path / "again.jsonl")
    assert len((tmp_path / "again.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["gold.spacy", "part-00000.spacy.json"])
def test_folders_of_others_are_refused(tmp_path, name, overwrite):
    source = write_rows(tmp_path / "a.jsonl", ROWS)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert convert(source, tmp_path / "out").files == 1
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WeaknerError, match="WK305" if overwrite else "WK314"):
        convert(source, tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "out" / name).write_bytes(b"")
    with pytest.raises(WeaknerError, match="WK300"):
        convert(source, tmp_path / "out", overwrite=overwrite)


def test_folder_as_input(tmp_path):
    folder = tmp_path / "in"
    write_rows(folder / "b.jsonl", [{"tokens": ["b"]}])
    (folder / "c.txt").write_text("c\n")
    (folder / "a.conll").write_text("a\tO\n")
    (folder / "README.md").write_text("no corpus\n")
    (folder / ".hidden.txt").write_text("no\n")
    report = convert(folder, tmp_path / "all.spacy")
    assert [doc[0].text for doc in read(tmp_path / "all.spacy")] == ["a", "b", "c"]
    assert report.docs == 3
    for name in ("d.csv", "e.parquet.gz"):
        (folder / name).write_bytes(b"no")
    with pytest.warns(UserWarning, match=r"WK912.* 2 files.*: d\.csv, e\.parquet\.gz"):
        convert(folder, tmp_path / "again.spacy")
    (tmp_path / "a.data").write_text("One. Two. Three.\n")
    assert convert(tmp_path / "a.data", tmp_path / "a.spacy", format="text", limit=2).docs == 2


@pytest.mark.parametrize("output", ["a.spacy", "a.jsonl", "a.conll", "folder"])
@pytest.mark.parametrize("name", ["empty.jsonl", "empty.txt", "empty.conll"])
def test_empty_corpus(tmp_path, output, name):
    (tmp_path / name).write_text("\n \n")
    with pytest.raises(WeaknerError, match=r"WK101.*empty\."):
        convert(tmp_path / name, tmp_path / output)
    assert [f.name for f in tmp_path.iterdir() if f.name != name and list(tmp_path.glob(f"{f.name}/*"))] == []
    assert not (tmp_path / output).is_file()


@pytest.mark.parametrize(
    "source, settings, message",
    [
        ("none.jsonl", {}, "WK100"),
        ("a.pdf", {}, "WK105"),
        ("empty_folder", {}, "WK101"),
        ("bad.spacy", {}, "WK206"),
        ("latin.txt", {}, "WK104"),
        ("a.txt", {"format": "xml"}, "WK005.*format"),
        ("a.txt", {"limit": 0}, "WK005.*limit"),
        ("a.txt", {"shard_size": 0}, "WK005.*shard_size"),
        ("a.txt", {"tokenizer": "nope"}, "WK005.*spacy_weakner.WordTokenizer.v1"),
        ("a.txt", {"lang": "qqq"}, "WK005.*lang"),
        ("a.jsonl", {"misaligned": "guess"}, "WK005.*misaligned"),
    ],
)
def test_errors(tmp_path, source, settings, message):
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "a.pdf").write_text("a\n")
    (tmp_path / "empty_folder").mkdir()
    (tmp_path / "bad.spacy").write_bytes(b"bad")
    (tmp_path / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    write_rows(tmp_path / "a.jsonl", ROWS)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(WeaknerError, match=message):
        convert(tmp_path / source, tmp_path / "out.spacy", **settings)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "source, target", [("d/c.jsonl", "d/c.jsonl"), ("d", "d/all.spacy"), ("d", "d"), ("d/c.jsonl", "d")]
)
def test_input_is_never_overwritten(tmp_path, source, target):
    path = write_rows(tmp_path / "d" / "c.jsonl", ROWS)
    before = path.read_bytes()
    with pytest.raises(WeaknerError, match="WK304"):
        convert(tmp_path / source, tmp_path / target, limit=1)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "rows, ignored, suspects",
    [
        (ROWS, {}, []),
        ([{"tokens": ["a"], "mentions": [[0, 1, "X"]], "url": "u"}] * 2, {"mentions": 2, "url": 2}, ["mentions"]),
        ([{"tokens": ["a"], "entities": []}, {"tokens": ["a"], "ents": []}], {"entities": 1}, []),
    ],
)
def test_unknown_keys_are_reported(tmp_path, rows, ignored, suspects):
    report = convert(write_rows(tmp_path / "a.jsonl", rows), tmp_path / "a.spacy")
    assert (report.ignored, report.suspects) == (ignored, suspects)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("a.jsonl", "jsonl"),
        ("a.JSONL.gz", "jsonl"),
        ("a.tsv", "conll"),
        ("a.iob.gz", "conll"),
        ("a.txt.gz", "text"),
        ("a.spacy", "spacy"),
        ("a.spacy.gz", None),
        ("a.gz", None),
        ("a", None),
    ],
)
def test_formats(tmp_path, name, expected):
    assert file_format(tmp_path / name) == expected


@pytest.mark.parametrize("name", ["a.jsonl", "a.conll", "a.txt"])
def test_offsets_are_those_of_other_tools(tmp_path, name):
    (tmp_path / name).write_text("Anna\tO\n" if name == "a.conll" else '{"text": "Anna", "ents": []}\n')
    with pytest.raises(WeaknerError, match=r"WK331.*offsets = utf16"):
        convert(tmp_path / name, tmp_path / "b.spacy", offsets="utf16")


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(WeaknerError, match="WK786"):
        convert(tmp_path / "a.jsonl", tmp_path / "a.spacy", format="jsonl")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.json", "a.ann"])
def test_texts_without_end_are_refused(tmp_path, name):
    """A packed file of 16 KB may hold a text of 16 MB: that takes minutes, and all memory."""
    text = b"Anna met Bob. " * 800_000
    if name.endswith("json"):
        text = b'[\n{"text": "%s"}\n]' % text
    elif name.endswith("jsonl"):
        text = b'{"text": "%s"}\n' % text
    elif name.endswith("ann"):
        (tmp_path / name).write_text("T1\tPER 0 4\tAnna\n")
    path = tmp_path / ("a.txt" if name == "a.ann" else name)
    path.write_bytes(gzip.compress(text, 1) if name.endswith("gz") else text)
    with pytest.raises(WeaknerError, match=r"a\..*(line 1|item 1|document 1).*11,200,000 characters"):
        convert(tmp_path / name, tmp_path / "out.spacy")


def test_what_a_conversion_replaces_stays_private(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "Anna"}\n')
    for output in ("b.jsonl", "b.spacy", "folder"):
        convert(source, tmp_path / output)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != source]
    for path in files:
        path.chmod(0o600)
    source.write_text('{"text": "Bob"}\n')
    for output in ("b.jsonl", "b.spacy", "folder"):
        convert(source, tmp_path / output)
    assert len(files) == 8 and {path.stat().st_mode & 0o777 for path in files} == {0o600}


@pytest.mark.parametrize("suffix", ["jsonl", "spacy"])
def test_labels_get_other_names(tmp_path, suffix):
    """Everywhere: entities beside missing tokens, weak spans with their scores, and groups of others."""
    row = {"tokens": ["Ann", "Lee", "met", "Bo", "X"], "ents": [[0, 2, "PERSON"], [3, 4, "per"]], "missing": [[4, 5]]}
    row["weak_ents"] = {"llm": [[0, 2, "PERSON", 0.5], [0, 2, "PER", 0.4], [2, 3, "X", 0.3]]}
    source = write_rows(tmp_path / "a.jsonl", [row, ROWS[1]])
    convert(source, tmp_path / "a.spacy")
    docs = read(tmp_path / "a.spacy")
    docs[0].spans["sc"] = [Span(docs[0], 0, 2, "PERSON")]
    write_docs(tmp_path / "a.spacy", docs)
    names = {"PERSON": "PER", "per": "PER"}
    report = convert(tmp_path / f"a.{suffix}", tmp_path / "b.spacy", label_names=names)
    doc, other = read(tmp_path / "b.spacy")
    assert weak.doc_entities(doc) == [(0, 2, "PER"), (3, 4, "PER")] and iob(doc) == "BIOB-" and iob(other) == "-"
    assert weak.group_entities(doc, "weak:llm") == [(0, 2, "PER"), (2, 3, "X")]
    assert weak.group_scores(doc, "weak:llm") == [0.5, 0.3]
    assert (report.entities, report.weak) == ({"PER": 2}, {"llm": 2, "imported": 1})
    assert [span.label_ for span in doc.spans.get("sc", ())] == ["PER"] * (suffix == "spacy")
    assert len(report.remarks) == (suffix == "spacy")  # that the group is not read as gold


def test_labels_to_rename_that_do_not_occur(tmp_path):
    write_rows(tmp_path / "a.jsonl", ROWS)
    names = {"CITY": "LOC", "PERSN": "PER", "X": "Y"}
    report = convert(tmp_path / "a.jsonl", tmp_path / "a.spacy", label_names=names)
    (remark,) = report.remarks
    assert "PERSN" in remark and "CITY" not in remark and report.entities == {"LOC": 1}
    doc = read(tmp_path / "a.spacy")[0]
    weak.set_tags(doc, ["B-LOC", "I-LOC", "O"])
    write_docs(tmp_path / "a.spacy", [doc])
    with pytest.raises(WeaknerError, match="WK331"):
        convert(tmp_path / "a.spacy", tmp_path / "b.spacy", label_names=names)
    assert not (tmp_path / "b.spacy").exists()
