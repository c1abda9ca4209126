"""What works around other packages: it changes no result."""

import subprocess
import sys

import pytest
import spacy
import srsly
from typer.testing import CliRunner

from spacy_weakner._compat import MsgpackConverters
from spacy_weakner.cli.app import app

REGISTRIES = {"encoders": srsly.msgpack_encoders, "decoders": srsly.msgpack_decoders}


def test_nothing_stays_when_it_is_left():
    with pytest.raises(RuntimeError), MsgpackConverters():
        assert all("get_all" in vars(registry) for registry in REGISTRIES.values())
        raise RuntimeError("no more")
    assert not any("get_all" in vars(registry) for registry in REGISTRIES.values())


BY_NAME = """
import sys
import spacy
from spacy_weakner._compat import import_factories_by_name

before = vars(spacy.Language)["has_factory"], spacy.registry._entry_point_factories.get_all
undo = import_factories_by_name()
import_factories_by_name()()  # done already: undoes nothing
nlp = spacy.blank("xx")
assert "spacy_weakner.crf_ner.component" not in sys.modules and "spacy_transformers" not in sys.modules
nlp.add_pipe("gazetteer_ruler")
assert nlp.has_factory("crf_ner") and nlp.has_factory("ner") and not nlp.has_factory("nosuch")
try:
    nlp.add_pipe("nosuch")
except ValueError as error:
    assert "E002" in str(error)
else:
    raise AssertionError
undo()
assert before == (vars(spacy.Language)["has_factory"], spacy.registry._entry_point_factories.get_all)
"""


@pytest.mark.slow
def test_factories_are_imported_when_a_pipeline_names_them():
    result = subprocess.run([sys.executable, "-W", "error", "-c", BY_NAME], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_a_command_leaves_spacy_as_it_was(tmp_path):
    factories = spacy.registry._entry_point_factories
    before = vars(spacy.Language)["has_factory"]
    assert CliRunner().invoke(app, ["init", "config", "crf_ner", str(tmp_path / "new.cfg")]).exit_code == 0
    assert CliRunner().invoke(app, ["init", "config", "nothing", str(tmp_path)]).exit_code == 1
    assert vars(spacy.Language)["has_factory"] is before and "get_all" not in vars(factories)
