"""`--code`: a file of the user's own, for every command and for what it starts."""

import os
import re

import pytest

from spacy_weakner.code_version import code_version
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.own_code import OWN_CODE
from spacy_weakner.runtime.pool import processes

from ..token_ner.util import token_pipeline
from ..util import SENTENCES, make_doc
from .util import invoke

CODE = """
from __future__ import annotations

from dataclasses import dataclass

from spacy import registry


@registry.losses("{name}")
@dataclass
class Own:
    size: float = 1.0

    def __call__(self, log_probabilities, truths):
        return -self.size * (truths * log_probabilities).sum(axis=1), -self.size * truths
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A file that nothing has imported."""
    monkeypatch.setenv(OWN_CODE, "")
    path = tmp_path / "own.py"
    path.write_text(CODE.format(name=f"{tmp_path.name}.v1"))
    return path


@pytest.mark.parametrize("place", ["first", "last", "joined"])
def test_a_pipeline_with_a_loss_of_ones_own(code, tmp_path, place):
    model, test = tmp_path / "model", tmp_path / "test.spacy"
    objective = {"@misc": "spacy_weakner.SoftLabels.v1", "loss": {"@losses": "spacy_weakner.KLDivergence.v1"}}
    nlp = token_pipeline(objective)
    nlp.to_disk(model)
    config = (model / "config.cfg").read_text()
    (model / "config.cfg").write_text(config.replace("spacy_weakner.KLDivergence.v1", f"{tmp_path.name}.v1"))
    write_docs(test, [make_doc(nlp, text, entities) for text, entities in SENTENCES])
    command = ["evaluate", test, f"own={model}", "--bootstrap", 0]
    result = invoke(*command)
    assert result.exit_code == 1 and "WK108" in result.stderr and "--code FILE" in result.stderr
    placed = {"first": ["--code", code, *command], "last": [*command, "--code", code]}
    result = invoke(*placed.get(place, [*command, f"--code={code}"]))
    assert result.exit_code == 0, result.stderr
    assert not os.environ[OWN_CODE]


@pytest.mark.parametrize(
    "text, message", [(None, "WK100.*own.py"), ("import nothing_here", "WK108.*own.py.*No module named 'nothing_here'")]
)
def test_a_file_that_cannot_be_imported(code, tmp_path, text, message):
    code.unlink()
    if text is not None:
        code.write_text(text)
    result = invoke("init", "config", "crf_ner", tmp_path / "new.cfg", "--code", code)
    assert result.exit_code == 1
    assert re.search(message, " ".join(result.stderr.split()))
    assert not (tmp_path / "new.cfg").exists()


def test_what_is_made_with_it_depends_on_it(code, monkeypatch):
    versions = [code_version()]
    monkeypatch.setenv(OWN_CODE, str(code))
    versions.append(code_version())
    code.write_text(code.read_text() + "# another\n")
    versions.append(code_version())
    assert len(set(versions)) == 3


@pytest.mark.slow
def test_processes_import_it(code, tmp_path, monkeypatch):
    code.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'there')!r}).touch()\n")
    monkeypatch.setenv(OWN_CODE, str(code))
    with processes(1) as pool:
        list(pool.each(os.getenv, [OWN_CODE], [""]))
    assert (tmp_path / "there").exists()
