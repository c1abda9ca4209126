"""Projects that are run from Python."""

import json
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.project import run
from spacy_weakner.project.selection import SELECTION

from .util import make_selection, write_ruler

PROJECT = {
    "title": "A project",
    "vars": {"code": 0},
    "workflows": {"all": ["write"]},
    "commands": [
        {
            "name": "write",
            "script": ["python -c \"open('given', 'w').write('${vars.code}'); raise SystemExit(${vars.code})\""],
            "no_skip": True,
        }
    ],
}


@pytest.mark.slow
def test_it_returns_what_was_packaged(tmp_path):
    with pytest.raises(WeaknerError, match=r"WK100.*project\.yml"):
        run.run_project(tmp_path)
    (tmp_path / "project.yml").write_text(json.dumps(PROJECT), encoding="utf-8")
    (tmp_path / "training").mkdir()
    selection = make_selection(write_ruler(tmp_path / "training" / "one", {"PER": ["Anna"]}), "one")
    selection.model_copy(update={"abbreviations": "wg."}).save(tmp_path / "training" / SELECTION)
    doc = run.run_project(tmp_path)("Anna came wg. Ott. Good")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Anna", "PER")]
    assert [sent.text for sent in doc.sents] == ["Anna came wg. Ott.", "Good"]
    with pytest.raises(WeaknerError, match=r"WK688.*code 3"):
        run.run_project(tmp_path, code=3)
    assert (tmp_path / "given").read_text() == "3"
    with pytest.raises(WeaknerError, match=r"WK005.*cod.*code"):
        run.run_project(tmp_path, cod=3)


def test_data_in_memory_become_files_of_a_project(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "run_project", lambda folder: folder)
    nlp = spacy.blank("de")
    gold = [nlp.make_doc("Anna kam ."), nlp.make_doc("Otto ging .")]
    gold[0].ents, gold[1].ents = [Span(gold[0], 0, 1, "PER")], []
    data = {"text": ["Anna lacht .", "Wer ist das ?"], "terms": [("PER", "Anna")], "gold": iter(gold)}
    made = run.fit_docs(tmp_path / "new", **data, size="linear", name="mine")
    yaml = (made / "project.yml").read_text(encoding="utf-8")
    assert "assets/text.jsonl" in yaml and "assets/gold.spacy" in yaml
    assert "assets/terms.jsonl" in (made / "sources.cfg").read_text(encoding="utf-8")
    assert 'lang: "de"' in yaml
    read = list(read_docs(made / "assets" / "gold.spacy", nlp.vocab))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in read] == [[("Anna", "PER")], []]
    rows = [json.loads(line) for line in (made / "assets" / "text.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == data["text"]
    with pytest.raises(WeaknerError, match="WK300"):
        run.fit_docs(made, **data)


def test_data_that_make_no_project_leave_nothing(tmp_path):
    def interrupted():
        yield "Anna ."
        raise KeyboardInterrupt

    for error, expected, data in (
        (WeaknerError, "WK680", {"text": ["Anna ."], "terms": []}),
        (WeaknerError, r"WK005.*size", {"text": ["Anna ."], "terms": [("PER", "Anna")], "size": "x"}),
        (KeyboardInterrupt, None, {"text": interrupted()}),
    ):
        with pytest.raises(error, match=expected):
            run.fit_docs(tmp_path / "some" / "new", **data)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name, items",
    [
        ("text", "Otto kam."),
        ("text", Path("text.txt")),
        ("text", ["Otto", Doc(Vocab(), ["Otto"])]),
        ("text", [Doc(Vocab(), ["Otto"]), "Otto"]),
        ("text", ["\ud800"]),
        ("gold", Doc(Vocab(), ["Otto"])),
        ("gold", [("Otto", [(0, 4, "PER")])]),
        ("gold", ["Otto"]),
        ("terms", {"PER": "Otto"}),
        ("terms", [{"label": "PER", "term": "Otto"}]),
        ("terms", ["AB"]),
    ],
)
def test_data_of_a_wrong_type(tmp_path, name, items):
    data = {"text": ["Anna ."], "terms": [("PER", "Anna")]}
    with pytest.raises(WeaknerError, match=rf"WK005.*'{name}'"):
        run.fit_docs(tmp_path / "new", **{**data, name: items})
    assert not list(tmp_path.iterdir())


def test_the_language_of_docs(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "run_project", lambda folder: srsly.read_yaml(folder / "project.yml")["vars"]["lang"])
    gold = [spacy.blank("de")("Anna")]
    gold[0].ents = [Span(gold[0], 0, 1, "PER")]
    assert run.fit_docs(tmp_path / "1", text=[Doc(Vocab(), ["Otto"])], gold=gold) == "de"
    assert run.fit_docs(tmp_path / "2", text=["Otto"], gold=gold, lang=None) == "de"
    assert run.fit_docs(tmp_path / "3", text=["Otto"], gold=gold, lang="xx") == "xx"
    with pytest.raises(WeaknerError, match=r"WK005.*de, en"):
        run.fit_docs(tmp_path / "4", text=[spacy.blank("en")("Otto")], gold=gold)
