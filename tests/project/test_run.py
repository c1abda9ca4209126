"""Projects that are run from Python."""

import json

import pytest

from spacy_weakner.errors import WeaknerError
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
