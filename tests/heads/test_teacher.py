"""Snapshots of models."""

import numpy
import pytest
import spacy
from spacy import registry
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Linear, chain

from spacy_weakner.corpus.weak import set_weak
from spacy_weakner.errors import WeaknerError
from spacy_weakner.heads import teacher as module
from spacy_weakner.heads.teacher import Teacher, require_own_encoder
from spacy_weakner.ty import TrainingProgress

from ..crf_ner.test_transformer import encoder
from ..joint.test_bilstm import CONFIG as BILSTM
from ..util import (
    LISTENER,
    TEXTS,
    TOK2VEC,
    head_config,
    head_pipeline,
    make_doc,
    make_examples,
    needs_transformers,
    same,
    shared_pipeline,
    train,
    weights,
)

DOCS = [make_doc(spacy.blank("xx"), text) for text in TEXTS]
# Weights of Thinc; with those of a CRF or a BiLSTM, which are torch modules, too.
MODELS = {
    "token_ner": ("token_ner", TOK2VEC),
    "crf": ("crf_ner", TOK2VEC),
    "bilstm": ("token_ner", BILSTM),
}


@pytest.fixture(params=[*MODELS, pytest.param("transformer", marks=needs_transformers)])
def pipeline(request):
    """Makes a pipeline with one head, from a seed."""
    if request.param in MODELS:
        name, tok2vec = MODELS[request.param]
    else:
        name, tok2vec = "token_ner", encoder(request.getfixturevalue("still_bert"))

    def make(seed=0):
        nlp = head_pipeline(name, tok2vec, seed)
        return nlp, nlp.get_pipe(name).model

    return make


def linear(seed):
    model = chain(Linear(2, 3), Linear(1, 2))
    model.initialize()
    for node in model.walk():
        for name in node.param_names:
            node.set_param(name, numpy.random.RandomState(seed).normal(size=node.get_param(name).shape).astype("f"))
    return model


def test_a_teacher_is_the_model_as_it_was(pipeline):
    nlp, model = pipeline()
    teacher = Teacher()
    teacher.renew(model)
    before, said = weights(model), model.predict(DOCS)
    assert same(weights(teacher.model), before)
    train(nlp, make_examples(nlp), steps=3)
    assert same(weights(teacher.model), before)
    assert same(teacher.model.predict(DOCS), said, tolerance=1e-6)
    assert not same(weights(model), before)
    teacher.renew(model)
    assert same(weights(teacher.model), weights(model))
    assert same(teacher.model.predict(DOCS), model.predict(DOCS), tolerance=1e-6)


def test_the_model_does_not_change_with_the_teacher(pipeline):
    _, model = pipeline()
    before = weights(model)
    teacher = Teacher()
    teacher.renew(model)
    teacher.renew(pipeline(seed=1)[1])
    assert same(weights(model), before)


@pytest.mark.parametrize(
    "tick, due",
    [(None, False), (TrainingProgress(0, 0, 0.0, 10), False), (TrainingProgress(10, 0, 0.5, 10), True)],
    ids=["no clock", "before the first update", "later"],
)
@pytest.mark.parametrize("at_start", [False, True])
def test_a_renewal_before_the_first_update_makes_a_teacher_where_one_is_needed(tick, due, at_start):
    assert Teacher(at_start=at_start).is_due(tick) is (due or at_start)


def test_who_teaches_an_update():
    teacher, tick, model = Teacher(), TrainingProgress(3, 0, 0.1, 10), linear(0)
    assert teacher.of_update(tick, "x") is None
    for own, told in ((Teacher(at_start=True), tick), (teacher, None), (teacher, tick._replace(interval=0))):
        with pytest.raises(ValueError, match=r"'x'"):
            own.of_update(told, "x")
    teacher.renew(model, tick)
    assert same(weights(teacher.of_update(None, "x")), weights(model)) and teacher.step == 3
    teacher.reset()
    assert teacher.model is None and teacher.step == 0


def test_models_that_listen_are_refused_until_the_listener_is_replaced_by_its_encoder():
    require_own_encoder("x", linear(0), "reads")
    with pytest.raises(ValueError, match="'x'"):
        require_own_encoder("x", registry.resolve({"it": LISTENER})["it"], "reads")
    nlp = shared_pipeline(("crf_ner",))
    model = nlp.get_pipe("crf_ner").model
    with pytest.raises(ValueError, match="'x'"):
        require_own_encoder("x", model, "reads")
    nlp.replace_listeners("tok2vec", "crf_ner", ["model.tok2vec"])
    require_own_encoder("x", nlp.get_pipe("crf_ner").model, "reads")


@pytest.mark.parametrize(
    "name, settings, section",
    [
        ("mrc_ner", {}, "encoder.tok2vec"),
        ("token_ner", {"objective": {"@misc": "spacy_weakner.SelfTraining.v1"}}, "tok2vec"),
    ],
)
def test_a_head_that_cannot_listen_names_the_section_to_change(name, settings, section):
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec")
    with pytest.raises(WeaknerError, match=rf"WK011.*\[components\.own\.model\.{section}\]"):
        nlp.add_pipe(name, name="own", config=head_config(name, LISTENER, **settings))


class Reader:
    """Says of every Doc how many have been read until then, in a batch as the models do."""

    def __init__(self):
        self.read = []

    def __call__(self, docs):
        before = len(self.read)
        self.read += [doc.text for doc in docs]
        rows = numpy.repeat(numpy.arange(before, len(self.read)), [len(doc) for doc in docs])
        batch = numpy.stack([rows, rows], axis=1).astype("float32")
        return numpy.split(batch, numpy.cumsum([len(doc) for doc in docs])[:-1])


def said(teacher, docs, reader):
    return [own.tolist() for own in teacher.predict(docs, reader)]


def test_what_it_has_said_holds_until_the_next_renewal():
    teacher, reader = Teacher(), Reader()
    first = said(teacher, DOCS, reader)
    assert said(teacher, DOCS[::-1], reader) == first[::-1]
    assert said(teacher, [], reader) == []
    assert reader.read == [doc.text for doc in DOCS]
    for forget in (lambda: teacher.renew(linear(0)), teacher.reset):
        forget()
        assert said(teacher, DOCS, reader) != first
    assert len(reader.read) == 3 * len(DOCS)


def changed(change):
    doc = Doc(Vocab(), words=["a", "b"])
    change(doc)
    return doc


@pytest.mark.parametrize(
    "change",
    [
        lambda doc: setattr(doc[0], "norm_", "x"),
        lambda doc: setattr(doc[0], "tag_", "x"),
        lambda doc: setattr(doc[0], "pos_", "NOUN"),
        lambda doc: setattr(doc[0], "lemma_", "x"),
        lambda doc: doc[0].set_morph("A=B"),
        lambda doc: setattr(doc[0], "dep_", "x"),
        lambda doc: setattr(doc[0], "head", doc[1]),
        lambda doc: setattr(doc[1], "is_sent_start", True),
        lambda doc: setattr(doc[1], "is_sent_start", False),
        lambda doc: setattr(doc[0], "ent_id_", "x"),
        lambda doc: setattr(doc[0], "ent_kb_id_", "x"),
        lambda doc: doc.set_ents([], default="outside"),
        lambda doc: doc.set_ents([doc[:1]], default="missing") or setattr(doc[0], "ent_type_", "X"),
    ],
)
def test_a_doc_that_differs_in_any_token_is_read(change):
    teacher, reader = Teacher(), Reader()
    plain = Doc(Vocab(), words=["a", "b"])
    said(teacher, [plain, changed(change), Doc(Vocab(), words=["a", "b"], spaces=[False, False])], reader)
    assert len(reader.read) == 3
    said(teacher, [plain, changed(change)], reader)
    assert len(reader.read) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda doc: doc.spans.update({"weak:s": [doc[:1]]}),
        lambda doc: doc.user_data.update(x=1),
        lambda doc: setattr(doc, "tensor", numpy.zeros((2, 1))),
        lambda doc: doc.cats.update(x=1.0),
    ],
)
def test_a_doc_with_more_than_tokens_is_read_each_time(change):
    teacher, reader, doc = Teacher(), Reader(), changed(change)
    assert said(teacher, [doc], reader) != said(teacher, [doc], reader)
    assert len(reader.read) == 2


def test_the_mark_of_weak_labels_tells_a_model_nothing():
    teacher, reader = Teacher(), Reader()
    assert said(teacher, [Doc(Vocab(), words=["a", "b"])], reader) == said(teacher, [changed(set_weak)], reader)
    assert len(reader.read) == 1


def test_what_there_is_no_room_for_is_read_each_time(monkeypatch):
    monkeypatch.setattr(module, "_OVERHEAD", 10)
    monkeypatch.setattr(module, "KEPT", 54)  # 24 + 10 bytes, and 8 + 10
    teacher, reader = Teacher(), Reader()
    docs = [Doc(Vocab(), words=words) for words in (["a", "b", "c"], ["d", "e"], ["f"])]
    said(teacher, docs, reader)
    said(teacher, docs, reader)
    assert reader.read[3:] == ["d e "]


def test_what_is_kept_does_not_keep_its_batch():
    teacher, reader = Teacher(), Reader()
    docs = [Doc(Vocab(), words=["a"]), Doc(Vocab(), words=["b"] * 100)]
    teacher.predict(docs, reader)
    assert all(own.base is None for own in teacher.predict(docs, reader))
