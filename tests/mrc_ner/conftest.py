import pytest
import spacy

from ..util import make_examples, train
from .util import mrc_pipeline


@pytest.fixture(scope="package")
def mrc_path(tmp_path_factory):
    """A pipeline that knows its sentences by heart, on disk."""
    folder = tmp_path_factory.mktemp("mrc_ner")
    nlp = mrc_pipeline()
    train(nlp, make_examples(nlp))
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def trained(mrc_path):
    return spacy.load(mrc_path)
