"""Projects that are run from Python."""

import json

import pytest
import spacy
from spacy.tokens import Span

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.project import run
from spacy_weakner.project.run import run_project
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
        run_project(tmp_path)
    (tmp_path / "project.yml").write_text(json.dumps(PROJECT), encoding="utf-8")
    (tmp_path / "training").mkdir()
    selection = make_selection(write_ruler(tmp_path / "training" / "one", {"PER": ["Anna"]}), "one")
    selection.model_copy(update={"abbreviations": "wg."}).save(tmp_path / "training" / SELECTION)
    doc = run_project(tmp_path)("Anna came wg. Ott. Good")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Anna", "PER")]
    assert [sent.text for sent in doc.sents] == ["Anna came wg. Ott.", "Good"]
    with pytest.raises(WeaknerError, match=r"WK688.*code 3"):
        run_project(tmp_path, code=3)
    assert (tmp_path / "given").read_text() == "3"
    with pytest.raises(WeaknerError, match=r"WK005.*cod.*code"):
        run_project(tmp_path, cod=3)


def test_data_in_memory_become_files_of_a_project(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "run_project", lambda folder: folder)
    nlp = spacy.blank("de")
    gold = [nlp.make_doc("Anna kam ."), nlp.make_doc("Otto ging .")]
    gold[0].ents = [Span(gold[0], 0, 1, "PER")]
    data = {"text": ["Anna lacht .", "Wer ist das ?"], "terms": [("PER", "Anna")], "gold": iter(gold)}
    made = run.fit_docs(tmp_path / "new", **data, size="linear", name="mine")
    yaml = (made / "project.yml").read_text(encoding="utf-8")
    assert "assets/text.jsonl" in yaml and "assets/gold.spacy" in yaml and "assets/terms.jsonl" in yaml
    assert 'lang: "de"' in yaml
    read = list(read_docs(made / "assets" / "gold.spacy", nlp.vocab))
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in read] == [[("Anna", "PER")], []]
    rows = [json.loads(line) for line in (made / "assets" / "text.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == data["text"]
    with pytest.raises(WeaknerError, match="WK300"):
        run.fit_docs(made, **data)


def test_data_that_make_no_project_leave_nothing(tmp_path):
    with pytest.raises(WeaknerError, match="WK680"):
        run.fit_docs(tmp_path / "new", text=["Anna ."], terms=[])
    with pytest.raises(WeaknerError, match=r"WK005.*size"):
        run.fit_docs(tmp_path / "new", text=["Anna ."], terms=[("PER", "Anna")], size="x")
    assert not list((tmp_path / "new").glob("*"))
