import pytest
import spacy

from ..util import HEADS, train
from .util import examples, pipeline


@pytest.fixture(scope="module", params=HEADS)
def head(request):
    """Name of a head."""
    return request.param


@pytest.fixture
def nlp(head):
    """A pipeline with an untrained head."""
    return pipeline(head)


@pytest.fixture
def ner(nlp, head):
    """An untrained head."""
    return nlp.get_pipe(head)


@pytest.fixture(scope="package")
def paths(tmp_path_factory):
    """Of every head a pipeline that knows its sentences by heart, on disk."""
    folder = tmp_path_factory.mktemp("heads")
    for name in HEADS:
        trained = pipeline(name)
        train(trained, examples(trained))
        trained.to_disk(folder / name)
    return folder


@pytest.fixture
def load(paths, head):
    """Loads a trained pipeline, perhaps with other settings."""
    return lambda **settings: spacy.load(paths / head, config={"components": {head: settings}})


@pytest.fixture
def trained(load):
    return load()
