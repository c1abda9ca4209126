"""What works around other packages: it changes no result, and is still needed."""

import subprocess
import sys
from collections import Counter

import pytest
import spacy
import srsly
from spacy.tokens import DocBin
from spacy.vocab import Vocab
from typer.testing import CliRunner

from spacy_weakner._compat import MsgpackConverters
from spacy_weakner.cli.app import app
from spacy_weakner.corpus import weak

from .util import make_doc

REGISTRIES = {"encoders": srsly.msgpack_encoders, "decoders": srsly.msgpack_decoders}


@pytest.fixture
def docs():
    nlp = spacy.blank("xx")
    docs = [make_doc(nlp, "Bob in York", [(0, 1, "PER")]), make_doc(nlp, "a b")]
    for doc in docs:
        weak.set_id(doc, "s1")
        weak.set_group(doc, "weak:terms", [(0, 1, "PER"), (1, 2, "LOC")], [0.25, None])
    return docs


@pytest.fixture
def searches(monkeypatch):
    """How often srsly has searched its registries."""
    counts = Counter()

    def counted(self):
        counts.update(name for name, registry in REGISTRIES.items() if registry is self)
        return search(self)

    kind = type(srsly.msgpack_encoders)
    search = kind.get_all
    monkeypatch.setattr(kind, "get_all", counted)
    return counts


def written(docs):
    bin_ = DocBin(store_user_data=True)
    for doc in docs:
        bin_.add(doc)
    return bin_


def read(bin_):
    return [doc.to_bytes() for doc in bin_.get_docs(Vocab())]


def test_srsly_still_searches_for_every_doc(docs, searches):
    """Once it does not, `MsgpackConverters` can go."""
    bin_ = written(docs)
    assert searches["encoders"] >= len(docs)
    searches.clear()
    list(bin_.get_docs(Vocab()))
    assert searches["decoders"] >= len(docs)


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
    assert CliRunner().invoke(app, ["init", "config", "crf_ner", str(tmp_path / "new.cfg")]).exit_code == 1
    assert vars(spacy.Language)["has_factory"] is before and "get_all" not in vars(factories)
