"""Question and text read together, or apart, by a Transformer."""

import copy
import shutil

import numpy
import pytest
import spacy

from spacy_weakner.training.weights import LoadWeights

from ..crf_ner.test_transformer import encoder
from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    make_example,
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

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bert_path(tiny_bert, tmp_path_factory):
    """A trained pipeline with its own Transformer, whose folder is gone."""
    folder = tmp_path_factory.mktemp("mrc_bert")
    shutil.copytree(tiny_bert, folder / "encoder")
    nlp = mrc_pipeline(together(folder / "encoder"))
    train(nlp, make_examples(nlp), steps=60, learn_rate=0.01)
    nlp.to_disk(folder / "pipeline")
    shutil.rmtree(folder / "encoder")
    return folder / "pipeline"


@needs_transformers
class TestTransformer:
    def test_it_learns_and_returns_from_disk_bytes_and_copies(self, bert_path, tmp_path):
        nlp = spacy.load(bert_path)
        assert entities_of(nlp, ["", *TEXTS, "\n"]) == [[], *GOLD, []]
        for reload in (reload_bytes, reload_copy):
            other = reload(nlp, tmp_path)
            assert same(*(weights(x.get_pipe("mrc_ner").model) for x in (nlp, other)))
            assert entities_of(other, TEXTS) == GOLD

    def test_in_a_new_process_and_in_two(self, bert_path):
        found = said_in_processes([bert_path], ["", *TEXTS])
        assert [entities for entities, _ in found] == [[[], *GOLD]] * 2

    def test_another_question_changes_the_answers(self, bert_path):
        nlp = spacy.load(bert_path)
        nlp.get_pipe("mrc_ner").ask("LOC", QUERIES["PER"])
        assert entities_of(nlp, TEXTS) != GOLD

    def test_batches_give_what_single_docs_give(self, bert_path):
        nlp = spacy.load(bert_path)
        ner = nlp.get_pipe("mrc_ner")
        ner.nested, ner.threshold = True, 0.01
        docs = [raw(nlp, text) for text in ["", *TEXTS, "\n", "Anna went to New York " * 9]]
        alone = [ner.predict([doc])[0] for doc in docs]
        batch = ner.predict(docs[::-1])[::-1]
        assert [p.candidates for p in batch] == [p.candidates for p in alone]
        assert sum(len(p.candidates) for p in alone) > 5
        for one, other in zip(alone, batch, strict=True):
            assert one.candidate_scores == pytest.approx(other.candidate_scores, rel=1e-4)

    def test_it_trains_on(self, bert_path):
        nlp = spacy.load(bert_path)
        before = weights(nlp.get_pipe("mrc_ner").model.get_ref("tok2vec"))
        assert train(nlp, make_examples(nlp), steps=1)["mrc_ner"] < 1
        assert not same(before, weights(nlp.get_pipe("mrc_ner").model.get_ref("tok2vec")))

    def test_it_reads_long_texts_in_windows(self, bert_path):
        nlp = spacy.load(bert_path)
        example = make_example(nlp, "Anna went to New York " * 30, [(0, 1, "PER"), (148, 150, "LOC")])
        assert numpy.isfinite(nlp.update([example], sgd=nlp.create_optimizer())["mrc_ner"])

    def test_a_split_batch_gives_the_same_gradients(self, bert_path):
        nlp = spacy.load(bert_path)
        ner, examples = nlp.get_pipe("mrc_ner"), make_examples(nlp)
        for shim in (shim for node in ner.model.walk() for shim in node.shims):
            for module in shim._model.modules():
                for name in ("p", "dropout_prob"):
                    if hasattr(module, name):
                        setattr(module, name, 0.0)
        nlp.update([make_example(nlp, ""), *examples, make_example(nlp, "", annotated=False)], sgd=False)
        whole = gradients(ner.model)
        clear_gradients(ner.model)
        for example in examples[::-1]:
            nlp.update([example], sgd=False)
        assert not all_zero(whole)
        assert same(whole, gradients(ner.model), tolerance=1e-5)

    def test_weights_of_an_earlier_stage(self, bert_path, tiny_bert):
        nlp = LoadWeights(bert_path)(mrc_pipeline(together(tiny_bert), seed=3, queries={"X": QUERIES["PER"]}))
        expected = [[(start, end, "X") for start, end, label in gold if label == "PER"] for gold in GOLD]
        assert entities_of(nlp, TEXTS) == expected

    def test_teachers_are_independent(self, bert_path):
        nlp = spacy.load(bert_path)
        model = nlp.get_pipe("mrc_ner").model
        teacher, before = copy.deepcopy(model), weights(model)
        train(nlp, make_examples(nlp), steps=2)
        assert same(weights(teacher), before) and not same(weights(model), before)


@pytest.fixture(scope="module")
def apart_path(tiny_bert, tmp_path_factory):
    """A trained pipeline that reads the text once for all questions."""
    folder = tmp_path_factory.mktemp("mrc_apart")
    nlp = mrc_pipeline(conditioned(encoder(tiny_bert)))
    train(nlp, make_examples(nlp), steps=80, learn_rate=0.01)
    nlp.to_disk(folder)
    return folder


class TestApart:
    pytestmark = needs_transformers

    def test_it_learns_and_returns_from_disk_bytes_and_copies(self, apart_path, tmp_path):
        nlp = spacy.load(apart_path)
        assert entities_of(nlp, ["", *TEXTS, "\n"]) == [[], *GOLD, []]
        for reload in (reload_bytes, reload_copy):
            assert entities_of(reload(nlp, tmp_path), TEXTS) == GOLD

    def test_another_question_changes_the_answers(self, apart_path):
        nlp = spacy.load(apart_path)
        nlp.get_pipe("mrc_ner").ask("LOC", QUERIES["PER"])
        assert entities_of(nlp, TEXTS) != GOLD

    def test_batches_give_what_single_docs_give(self, apart_path):
        nlp = spacy.load(apart_path)
        texts = ["", *TEXTS, "\n", "Anna went to New York " * 9]
        docs = list(nlp.pipe([raw(nlp, text) for text in texts[::-1]]))[::-1]
        assert [[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs] == entities_of(nlp, texts)

    def test_empty_docs_in_training(self, apart_path):
        nlp = spacy.load(apart_path)
        texts = ["", "\n", "Bob"]
        losses = nlp.update([make_example(nlp, text.strip()) for text in texts], sgd=nlp.create_optimizer())
        assert numpy.isfinite(losses["mrc_ner"])
