"""Files that are read and written: formats, shards, errors."""

import bz2
import gzip
import importlib.util
import json

import pytest
import spacy
from spacy.vocab import Vocab

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.anchors.anchors import anchors

from .util import NLP, SENTENCE, dump, entities, page, run


def test_rows(tmp_path):
    rows = [
        {"wikitext": "[[New]] one.", "id": "x"},
        {"wikitext": SENTENCE, "id": 7, "url": "u"},
        {"wikitext": "#REDIRECT [[x]]"},
    ]
    report, docs = run(tmp_path, {"a.jsonl.gz": gzip.compress("\n".join(map(json.dumps, rows)).encode())})
    assert [weak.get_id(doc) for doc in docs] == ["x.1", "7.1"]
    assert [len(doc.ents) for doc in docs] == [1, 4]
    assert (report.pages, report.redirects) == (2, 1)


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"html": "a"}', "'wikitext' must be a string, got null"),
        ('{"wikitext": 1}', "'wikitext' must be a string, got 1"),
        ('{"wikitext": "\\ud800"}', "surrogate"),
        ('{"wikitext": "a", "id": []}', "'id'"),
        ("[", "not JSON"),
    ],
)
def test_malformed_rows(tmp_path, line, message):
    with pytest.raises(WeaknerError, match=rf"WK103.*a\.jsonl, line 2: .*{message}"):
        run(tmp_path, {"a.jsonl": json.dumps({"wikitext": SENTENCE}) + f"\n{line}\n"})


def test_folders_and_formats(tmp_path):
    files = {
        "b.WIKI": SENTENCE.replace("Anna", "Eve"),
        "a.txt": SENTENCE,
        "c.pdf": "no",
        ".hidden.wiki": "[[No]]",
        "bz2": "no",
    }
    with pytest.warns(UserWarning, match="WK912.* 2 files.*: bz2, c.pdf"):
        _, docs = run(tmp_path, files)
    assert [doc[0].text for doc in docs] == ["Anna", "Eve"]
    (tmp_path / "page.data").write_text(SENTENCE)
    assert anchors([tmp_path / "page.data"], tmp_path / "b.spacy", format="wikitext", min_anchors=3).docs == 1


def test_shards_and_determinism(tmp_path, monkeypatch):
    monkeypatch.setattr("spacy_weakner.labeling.anchors.anchors._ZONE", 2)
    files = {"a.xml": dump(*[page(f"P{i}", f"[[Number{i}]] is. [[Other{i}]] is.") for i in range(7)])}
    report, docs = run(tmp_path, files, "out", shard_size=4)
    assert (report.docs, report.files) == (14, 4)
    assert [entities(doc) for doc in docs] == [[f"{x}{i}"] for i in range(7) for x in ("Number", "Other")]
    names = sorted(path.name for path in (tmp_path / "out").glob("*.spacy"))
    assert names == [f"part-0000{i}.spacy" for i in range(4)]
    again, _ = run(tmp_path, files, "again", shard_size=4)
    assert again == report
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_vocabulary_does_not_grow_and_new_words_are_written(tmp_path, monkeypatch):
    made = []

    def blank(*args):
        made.append(spacy.blank("xx"))
        return made[-1]

    monkeypatch.setattr("spacy_weakner.corpus.language.blank_pipeline", blank)
    run(tmp_path, {"a.wiki": "".join(f"Zqx{i} met [[Bob|Bobqx{i}]] there.\n\n" for i in range(3))})
    assert "Zqx0" not in made[-1].vocab.strings
    assert [doc[0].text for doc in read_docs(tmp_path / "out.spacy", Vocab())] == ["Zqx0", "Zqx1", "Zqx2"]


def test_nothing_is_replaced_unasked(tmp_path):
    for output in ("out", "out.spacy"):
        run(tmp_path, {"a.wiki": SENTENCE}, output)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.spacy")}
        run(tmp_path, {"a.wiki": SENTENCE}, output)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.spacy")} == before
        for path in before:
            path.write_bytes(b"mine")
        with pytest.raises(WeaknerError, match=r"WK314.*--overwrite"):
            run(tmp_path, {"a.wiki": "[[New]]."}, output)
        _, docs = run(tmp_path, {"a.wiki": "[[New]]."}, output, overwrite=True)
        assert [doc.text for doc in docs] == ["New."]
        with pytest.raises(WeaknerError, match="WK206"):
            run(tmp_path, {"a.wiki": SENTENCE, "b.xml": "<broken"}, output, overwrite=True)
        (tmp_path / "in" / "b.xml").unlink()
        assert [doc.text for doc in read_docs(tmp_path / output, NLP.vocab)] == ["New."]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in",
        "out",
        "out.spacy",
        "out.spacy.json",
        "out.weakner.json",
    ]


@pytest.mark.parametrize("overwrite", [False, True])
def test_outputs_that_are_refused(tmp_path, overwrite):
    options = {"overwrite": overwrite, "min_anchors": 1}
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.wiki").write_text(SENTENCE)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "mine.spacy").write_bytes(b"")
    for output, code in [
        ("in", "WK304"),
        ("in/x.spacy", "WK304"),
        ("x.jsonl", "WK305"),
        ("file", "WK305" if overwrite else "WK314"),
        ("gold", "WK300"),
    ]:
        with pytest.raises(WeaknerError, match=code):
            anchors([folder], tmp_path / output, **options)
    assert (folder / "a.wiki").read_text() == SENTENCE and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name, data, options, message",
    [
        ("a.pdf", b"", {}, "WK101"),
        ("a.wiki", b"caf\xe9", {}, "WK104.*a.wiki"),
        ("a.xml.bz2", bz2.compress(dump(page("A", SENTENCE)).encode())[:-12], {}, "WK206.*a.xml.bz2"),
        ("a.wiki", b"[[x]]", {"format": "text"}, "WK005.*format.*wikitext, dump, jsonl"),
        ("a.wiki", b"[[x]]", {"min_anchors": -1}, "WK005.*min_anchors"),
        ("a.wiki", b"[[x]]", {"label": " "}, "WK005.*label"),
        ("a.wiki", b"[[x]]", {"lang": "qqq"}, "WK005.*lang"),
        ("a.wiki", b"", {}, r"WK441.*pages: 1.*anchors: 0, .*length: 0"),
        ("a.wiki", b"[[x]] y.", {"max_length": 1}, "WK441.*length: 1"),
    ],
)
def test_errors(tmp_path, name, data, options, message):
    with pytest.raises(WeaknerError, match=message):
        run(tmp_path, {name: data}, "out" if options else "out.spacy", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_missing_input(tmp_path):
    with pytest.raises(WeaknerError, match="WK100"):
        anchors([tmp_path / "no.xml"], tmp_path / "out")
    (tmp_path / "a.pdf").write_text("x")
    with pytest.raises(WeaknerError, match=r"WK105.*\.wiki"):
        anchors([tmp_path / "a.pdf"], tmp_path / "out")


def test_without_the_package(tmp_path, monkeypatch):
    package = "mwparserfromhell"
    find_spec = importlib.util.find_spec
    missing = lambda name, *rest: None if name == package else find_spec(name, *rest)  # noqa: E731
    monkeypatch.setattr("spacy_weakner.errors.find_spec", missing)
    with pytest.raises(WeaknerError, match=rf"WK350.*{package}.*spacy_weakner\[wiki\]"):
        run(tmp_path, {"a.wiki": SENTENCE})
