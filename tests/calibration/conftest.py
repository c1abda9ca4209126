import pytest

from spacy_weakner.corpus.docbin import write_docs

from ..util import ENTITY_HEADS, head_pipeline, make_doc, make_examples, train


@pytest.fixture(scope="package", params=ENTITY_HEADS)
def trained(request, tmp_path_factory):
    """A head that knows its sentences by heart, on disk. Load it; never write there."""
    nlp = head_pipeline(request.param)
    train(nlp, make_examples(nlp), steps=40)
    path = tmp_path_factory.mktemp("trained") / request.param
    nlp.to_disk(path)
    return path


@pytest.fixture
def write_gold(tmp_path):
    """Writes sentences with their entities to a file."""

    def write(nlp, sentences):
        write_docs(tmp_path / "gold.spacy", [make_doc(nlp, text, entities) for text, entities in sentences])
        return tmp_path / "gold.spacy"

    return write
