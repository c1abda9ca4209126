import gc
import json
import os
import shutil
import signal

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest

# The process that hands out the tests reads this file too; fixtures import what it can do without.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell has started the tests in the background, where Ctrl-C is not meant for them; some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Files with slow tests come first, so that several processes end together."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_configure():
    """Registries remember their entry points, and compare whole namespaces: spaCy goes through those of all packages at
    each lookup, and many small pipelines do that a quarter of a million times."""
    import catalogue

    find, found = catalogue.Registry._get_entry_points, {}

    def remember(self):
        if self.entry_point_namespace not in found:
            found[self.entry_point_namespace] = find(self)
        return found[self.entry_point_namespace]

    def get_all(self):
        found = self.get_entry_points() if self.entry_points else {}
        found.update((names[-1], value) for names, value in catalogue.REGISTRY.items() if names[:-1] == self.namespace)
        return found

    catalogue.Registry._get_entry_points = remember
    catalogue.Registry.get_all = get_all


def pytest_collection_finish():
    """What is imported by now stays: it need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seed():
    """Tests do not depend on what ran before them."""
    from .util import fix_seed

    fix_seed()


@pytest.fixture(scope="session", autouse=True)
def light_processes(tmp_path_factory):
    """Hides spacy-transformers from the processes that tests start: spaCy would load it, and with it Transformers, in
    every one of them, which takes longer than all else that they do."""
    folder = tmp_path_factory.mktemp("light")
    hiding = folder / "spacy_transformers-0.dist-info"
    hiding.mkdir()
    (hiding / "METADATA").write_text("Metadata-Version: 2.1\nName: spacy-transformers\nVersion: 0\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


def hide_torch(folder, monkeypatch):
    """Hides torch from the processes that are started from now on."""
    (folder / "sitecustomize.py").write_text("import sys\n\nsys.modules['torch'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)


@pytest.fixture
def without_torch(tmp_path_factory, monkeypatch):
    """Hides torch from the processes that a test starts: it takes most of the rest, and not all need it."""
    hide_torch(tmp_path_factory.mktemp("site"), monkeypatch)


@pytest.fixture
def trained_here(monkeypatch):
    """Trainings run in this process, one after the other, since each of their own would import everything anew."""
    from .command_line import train_here, trainings_by

    trainings_by(train_here, monkeypatch)


@pytest.fixture(scope="session")
def trained_path(tmp_path_factory):
    """A small crf_ner that knows its sentences by heart, on disk. Load it; never write there."""
    from .util import crf_pipeline, make_examples, train

    path = tmp_path_factory.mktemp("trained") / "pipeline"
    nlp = crf_pipeline()
    train(nlp, make_examples(nlp))
    nlp.to_disk(path)
    return path


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """Folder of a random BERT with a vocabulary of pieces and letters."""
    from .util import make_tiny_bert

    pytest.importorskip("transformers")
    return make_tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def still_bert(tiny_bert, tmp_path_factory):
    """The tiny BERT without its own dropout, so that training and prediction give the same vectors."""
    folder = tmp_path_factory.mktemp("still") / "bert"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config.update(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    (folder / "config.json").write_text(json.dumps(config))
    return folder
