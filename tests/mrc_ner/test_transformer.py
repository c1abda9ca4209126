"""Question and text read together, or apart, by a Transformer."""

import shutil

import pytest
import spacy

from spacy_weakner.encoder_tools.quantize import quantize
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.weights import LoadWeights

from ..crf_ner.test_transformer import encoder
from ..util import (
    GOLD,
    TEXTS,
    entities_of,
    make_examples,
    needs_transformers,
    raw,
    reload_bytes,
    reload_copy,
    said_in_processes,
    same,
    train,
    weights,
)
from .util import QUERIES, conditioned, mrc_pipeline, together

pytestmark = [pytest.mark.slow, needs_transformers]
READERS = {"together": together, "apart": lambda path: conditioned(encoder(path))}


@pytest.fixture(scope="module", params=READERS)
def path(request, tiny_bert, tmp_path_factory):
    """A trained pipeline with its own Transformer, whose folder is gone."""
    folder = tmp_path_factory.mktemp("mrc_bert")
    shutil.copytree(tiny_bert, folder / "encoder")
    nlp = mrc_pipeline(READERS[request.param](folder / "encoder"))
    train(nlp, make_examples(nlp), steps=80, learn_rate=0.01)
    nlp.to_disk(folder / "pipeline")
    shutil.rmtree(folder / "encoder")
    return folder / "pipeline"


def test_it_learns_and_returns_from_disk_bytes_and_copies(path, tmp_path):
    nlp = spacy.load(path)
    assert entities_of(nlp, ["", *TEXTS, "\n"]) == [[], *GOLD, []]
    for reload in (reload_bytes, reload_copy):
        other = reload(nlp, tmp_path)
        assert same(*(weights(x.get_pipe("mrc_ner").model) for x in (nlp, other)))
        assert entities_of(other, TEXTS) == GOLD


def test_in_a_new_process_and_in_two(path):
    found = said_in_processes([path], ["", *TEXTS])
    assert [entities for entities, _ in found] == [[[], *GOLD]] * 2


def test_int8_needs_questions_apart_from_texts(path, tmp_path, request):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    if "apart" in request.node.callspec.id:
        assert not quantize(path, tmp_path / "out").kept
        return
    with pytest.raises(WeaknerError, match=r"WK358.*question beside each text \(mrc_ner\)"):
        quantize(path, tmp_path / "out")


def test_batches_give_what_single_docs_give_and_other_questions_other_answers(path):
    nlp = spacy.load(path)
    ner = nlp.get_pipe("mrc_ner")
    ner.nested, ner.threshold = True, 0.01
    docs = [raw(nlp, text) for text in ["", *TEXTS, "\n", "Anna went to New York " * 9]]
    alone = [ner.predict([doc])[0] for doc in docs]
    batch = ner.predict(docs[::-1])[::-1]
    assert [p.candidates for p in batch] == [p.candidates for p in alone]
    assert sum(len(p.candidates) for p in alone) > 5
    ner.set_question("LOC", QUERIES["PER"])
    assert entities_of(nlp, TEXTS) != GOLD


def test_weights_of_an_earlier_stage(path, request, tiny_bert):
    reader = READERS[request.node.callspec.params["path"]]
    nlp = LoadWeights(path)(mrc_pipeline(reader(tiny_bert), seed=3, queries={"X": QUERIES["PER"]}))
    expected = [[(start, end, "X") for start, end, label in gold if label == "PER"] for gold in GOLD]
    assert entities_of(nlp, TEXTS) == expected
