import pytest

from ..util import train
from .util import category_examples, category_pipeline


@pytest.fixture
def nlp():
    return category_pipeline()


@pytest.fixture(scope="package")
def category_path(tmp_path_factory):
    """A pipeline that knows its titles by heart, on disk."""
    folder = tmp_path_factory.mktemp("categories") / "pipeline"
    nlp = category_pipeline()
    train(nlp, category_examples(nlp))
    nlp.to_disk(folder)
    return folder
