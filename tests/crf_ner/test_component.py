"""The component in a pipeline: what spaCy asks of it, and what each setting does."""

import copy
import json
import subprocess
import sys

import numpy
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Config, Model, NumpyOps

from spacy_weakner.annotations.tags import TagScheme
from spacy_weakner.annotations.weak import doc_entities, group_entities, group_scores
from spacy_weakner.crf_ner.component import CRFNer, make_crf_ner
from spacy_weakner.crf_ner.losses import CRFNegativeLogLikelihood, PartialCRF
from spacy_weakner.crf_ner.model import build_crf_tagger, crf_module
from spacy_weakner.errors import WeaknerError
from spacy_weakner.ty import Clocked, PathScorer, TokenDistributions

from ..util import (
    LISTENER,
    SENTENCES,
    TEXTS,
    TOK2VEC,
    all_zero,
    clear_gradients,
    crf_config,
    crf_pipeline,
    entities_of,
    gradients,
    gradients_with_and_without,
    make_doc,
    make_example,
    make_examples,
    same,
    train,
    weights,
)

GOLD = [entities for _, entities in SENTENCES]


@pytest.fixture
def nlp():
    return crf_pipeline()


@pytest.fixture
def trained(trained_path):
    return spacy.load(trained_path)


def load(path, **settings):
    return spacy.load(path, config={"components": {"crf_ner": settings}})


def emissions(nlp):
    """The emission layer of a crf_ner."""
    head = nlp.get_pipe("crf_ner").model.get_ref("head")
    return next(node for node in head.get_ref("emissions").walk() if node.name == "linear")


# Labels


def test_without_labels():
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner", config=crf_config())
    with pytest.raises(WeaknerError, match=r"\[WK001\] 'crf_ner'"):
        nlp.initialize(lambda: [make_example(nlp, "no entity")])


def test_labels_of_the_examples_are_sorted(nlp):
    ner = nlp.get_pipe("crf_ner")
    assert ner.labels == ("LOC", "PER")
    assert ner.label_data == ["LOC", "PER"]


@pytest.mark.parametrize("labels", [["PER", "LOC"], ["PER", "LOC", "ORG"], ("LOC",)])
def test_given_labels_keep_their_order(labels):
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels)
    assert ner.labels == tuple(labels)
    assert ner.distribution_labels == TagScheme("BIO", labels).tags


def test_label_data_initialises_alike(nlp):
    fix_random_seed(0)
    other = spacy.blank("xx")
    labels = json.loads(json.dumps(nlp.get_pipe("crf_ner").label_data))
    ner = other.add_pipe("crf_ner", config=crf_config())
    other.config["initialize"]["components"]["crf_ner"] = {"labels": labels}
    other.initialize(lambda: make_examples(other))
    assert ner.labels == nlp.get_pipe("crf_ner").labels
    assert same(weights(ner.model), weights(nlp.get_pipe("crf_ner").model))


def test_labels_may_be_added_before_initialisation():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    assert [ner.add_label("X"), ner.add_label("X")] == [1, 0]
    nlp.initialize()
    assert ner.labels == ("X",)


def test_labels_that_were_added_stand_before_those_of_the_corpus():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    ner.add_label("X")
    nlp.initialize(lambda: make_examples(nlp))
    assert ner.labels == ("X", *crf_pipeline().get_pipe("crf_ner").labels)


def test_a_corpus_without_any_annotation_is_warned_about():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    with pytest.warns(UserWarning, match=r"\[WK900\].*'crf_ner'"):
        ner.initialize(lambda: [make_example(nlp, "a b", annotated=False)] * 2, nlp=nlp, labels=["X"])


def test_a_learning_rate_below_zero():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*head_learn_rate"):
        crf_pipeline(head_learn_rate=-1.0)


def test_labels_cannot_be_added_afterwards(nlp):
    ner = nlp.get_pipe("crf_ner")
    assert ner.add_label("PER") == 0
    with pytest.raises(WeaknerError, match=r"\[WK002\].*LOC, PER.*'ORG'"):
        ner.add_label("ORG")


def test_a_label_is_a_string():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*label.*string"):
        spacy.blank("xx").add_pipe("crf_ner").add_label(1)


def test_an_unknown_label_in_training(nlp):
    with pytest.raises(WeaknerError, match=r"\[WK003\] 'crf_ner'.*'ORG'.*LOC, PER"):
        nlp.update([make_example(nlp, "a b", [(0, 1, "ORG")])], sgd=False)


# Initialisation


@pytest.mark.parametrize(
    "get_examples", [lambda: None, lambda: [], lambda: ["text"], lambda: [Doc(spacy.blank("xx").vocab)], []]
)
def test_get_examples_of_wrong_shapes(get_examples):
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    with pytest.raises((TypeError, ValueError), match=r"E930|E978"):
        ner.initialize(get_examples, nlp=nlp, labels=["X"])


def test_get_examples_may_be_a_generator():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    ner.initialize(lambda: (eg for eg in make_examples(nlp)), nlp=nlp)
    assert ner.is_initialized


def test_initialisation_with_empty_docs_alone():
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    ner.initialize(lambda: [make_example(nlp, "")], nlp=nlp, labels=["X"])
    assert [len(scores) for scores in ner.score_tokens([make_doc(nlp, "a b")])] == [2]


@pytest.mark.parametrize("use", ["predict", "update", "distributions", "score_paths"])
def test_not_initialised(use):
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("crf_ner", config=crf_config())
    ner.add_label("X")
    argument = [make_example(nlp, "a")] if use == "update" else [make_doc(nlp, "a")]
    with pytest.raises(WeaknerError, match=r"\[WK008\] 'crf_ner'"):
        getattr(ner, use)(argument)


def test_the_seed_decides_everything():
    runs = []
    for _ in range(2):
        nlp = crf_pipeline(seed=3)
        fix_random_seed(1)
        train(nlp, make_examples(nlp), steps=3)
        runs.append(weights(nlp.get_pipe("crf_ner").model))
    assert same(*runs)


def test_another_seed_gives_other_weights():
    assert not same(*(weights(crf_pipeline(seed=seed).get_pipe("crf_ner").model) for seed in (0, 1)))


# Training


def test_it_learns(trained):
    assert entities_of(trained, TEXTS) == GOLD


@pytest.mark.parametrize("scheme", ["IO", "BIO", "IOBES"])
def test_every_scheme_learns(scheme):
    nlp = crf_pipeline(scheme=scheme)
    before = train(nlp, make_examples(nlp), steps=1)
    after = train(nlp, make_examples(nlp))
    assert after["crf_ner"] < before["crf_ner"] / 10
    assert entities_of(nlp, TEXTS) == GOLD


def test_the_loss_is_the_mean_negative_log_likelihood(nlp):
    ner, examples = nlp.get_pipe("crf_ner"), make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    single = [ner.get_loss([eg], ner.score_tokens([eg.predicted]))[0] for eg in examples]
    assert losses["crf_ner"] == pytest.approx(sum(single) / len(single), rel=1e-5)
    assert type(losses["crf_ner"]) is float


def test_losses_are_added_to(nlp):
    losses = {"crf_ner": 10.0, "other": 1.0}
    returned = nlp.get_pipe("crf_ner").update(make_examples(nlp), losses=losses)
    assert returned is losses
    assert losses["crf_ner"] > 10.0
    assert losses["other"] == 1.0


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_the_loss_has_its_key_when_there_is_nothing_to_learn(nlp, texts):
    losses = nlp.get_pipe("crf_ner").update([make_example(nlp, text) for text in texts])
    assert losses == {"crf_ner": 0.0}


def test_the_loss_has_its_key_before_an_error(nlp):
    losses = {}
    with pytest.raises(TypeError, match="E978"):
        nlp.get_pipe("crf_ner").update(["no example"], losses=losses)
    assert losses == {"crf_ner": 0.0}


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_loss_that_is_no_number(nlp, scale):
    ner = nlp.get_pipe("crf_ner")
    scores = [numpy.full((5, 5), scale, dtype="float32")]
    with pytest.raises(WeaknerError, match=r"\[WK006\]|\[WK007\]"):
        ner.get_loss(make_examples(nlp)[:1], scores)


def test_get_loss_leaves_the_scores_alone(nlp):
    ner, examples = nlp.get_pipe("crf_ner"), make_examples(nlp)
    scores = ner.score_tokens([eg.predicted for eg in examples])
    before = [s.copy() for s in scores]
    _, gradient = ner.get_loss(examples, scores)
    assert same(scores, before)
    assert [g.shape for g in gradient] == [s.shape for s in scores]
    assert all(g.dtype == "float32" for g in gradient)


def test_update_leaves_the_examples_alone(nlp):
    examples = make_examples(nlp)
    nlp.get_pipe("crf_ner").update(examples)
    assert [doc_entities(eg.reference) for eg in examples] == GOLD
    assert not any(eg.predicted.has_annotation("ENT_IOB") for eg in examples)


def test_the_optimizer_steps_the_transitions(nlp):
    ner = nlp.get_pipe("crf_ner")
    before = crf_module(ner.model).transitions.detach().numpy().copy()
    train(nlp, make_examples(nlp), steps=1)
    assert (crf_module(ner.model).transitions.detach().numpy() != before).all()
    assert crf_module(ner.model).transitions.grad is None or all_zero([crf_module(ner.model).transitions.grad.numpy()])


def test_a_split_batch_gives_the_same_gradients(nlp):
    model, examples = nlp.get_pipe("crf_ner").model, make_examples(nlp)
    nlp.update(examples, sgd=False)
    whole = gradients(model)
    clear_gradients(model)
    nlp.update(examples[:1], sgd=False)
    nlp.update(examples[1:], sgd=False)
    assert not all_zero(whole)
    assert same(whole, gradients(model), tolerance=1e-5)


def test_the_order_of_a_batch_does_not_matter(nlp):
    model, examples = nlp.get_pipe("crf_ner").model, make_examples(nlp)
    nlp.update(examples, sgd=False)
    forwards = gradients(model)
    clear_gradients(model)
    nlp.update(examples[::-1], sgd=False)
    assert same(forwards, gradients(model), tolerance=1e-5)


def test_empty_docs_in_a_batch_change_nothing(nlp):
    model, examples = nlp.get_pipe("crf_ner").model, make_examples(nlp)
    losses = nlp.update(examples, sgd=False)
    expected = gradients(model)
    clear_gradients(model)
    empty = make_example(nlp, "")
    assert nlp.update([empty, *examples, empty], sgd=False) == losses
    assert same(expected, gradients(model))


@pytest.mark.parametrize("words", [["one"], [" "], ["\n", " "], ["a", "\n", "b"], []])
def test_small_docs_in_training(nlp, words):
    reference = Doc(nlp.vocab, words=words)
    reference.set_ents([], default="outside")
    losses = nlp.update([Example(Doc(nlp.vocab, words=words), reference)])
    assert (losses["crf_ner"] > 0) is bool(words)


# Missing annotation


class Recorder:
    """An encoder of random vectors that writes down how it is called. Some encoders give (0, 0) arrays for Docs
    without tokens: then `empty_width` is 0."""

    def __init__(self, width=4, empty_width=4):
        self.docs, self.gradients, self.width, self.empty_width = [], [], width, empty_width
        self.model = Model("recorder", self.forward, dims={"nO": width}, ops=NumpyOps())

    def forward(self, model, docs, is_train):
        def backprop(gradient):
            self.gradients.append(gradient)
            return []

        if is_train:
            self.docs.append(list(docs))
        rng = numpy.random.RandomState(0)
        sizes = [(len(doc), self.width if len(doc) else self.empty_width) for doc in docs]
        return [rng.normal(size=size).astype("float32") for size in sizes], backprop


@pytest.fixture
def recorded(nlp):
    recorder = Recorder()
    ner = CRFNer(nlp.vocab, build_crf_tagger(recorder.model), loss=CRFNegativeLogLikelihood())
    ner.initialize(lambda: make_examples(nlp))
    return ner, recorder


def test_missing_tokens_have_exactly_no_gradient(nlp):
    ner = nlp.get_pipe("crf_ner")
    eg = make_example(nlp, "Anna went to New York", [(0, 1, "PER")], missing=[1, 2, 3, 4])
    # Without transitions, tokens do not depend on each other.
    module = crf_module(ner.model)
    for tensor in (module.start_transitions, module.transitions, module.end_transitions):
        tensor.data.zero_()
    ner.constrain = False
    _, (gradient,) = ner.get_loss([eg], ner.score_tokens([eg.predicted]))
    assert numpy.abs(gradient[0]).max() > 0.1
    assert numpy.abs(gradient[1:]).max() < 1e-7


def test_a_doc_without_annotation_has_exactly_no_gradient(nlp):
    ner = nlp.get_pipe("crf_ner")
    example = make_example(nlp, "Anna went", annotated=False)
    assert nlp.update([example], sgd=False) == {"crf_ner": 0.0}
    assert all_zero(gradients(ner.model))


def test_a_doc_without_annotation_adds_no_gradient_to_a_batch(nlp):
    ner = nlp.get_pipe("crf_ner")
    examples = [make_example(nlp, "Anna went", annotated=False), *make_examples(nlp)]
    _, gradient = ner.get_loss(examples, ner.score_tokens([eg.predicted for eg in examples]))
    assert all_zero(gradient[:1])
    assert not all_zero(gradient[1:2])


def test_backpropagates_when_there_is_nothing_to_learn(nlp, recorded):
    ner, recorder = recorded
    ner.update([make_example(nlp, "Anna went", annotated=False)])
    assert len(recorder.gradients) == 1
    assert all_zero(recorder.gradients[0])


def test_one_forward_and_backward_pass_over_all_docs_in_order(nlp, recorded):
    ner, recorder = recorded
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    ner.update(examples)
    assert recorder.docs == [[eg.predicted for eg in examples]]
    assert [[g.shape for g in call] for call in recorder.gradients] == [[(len(eg.predicted), 4) for eg in examples]]


@pytest.mark.parametrize("texts", [["", "a b"], ["a", "", "b c", ""]])
def test_encoders_with_another_width_for_empty_docs(nlp, texts):
    recorder = Recorder(empty_width=0)
    ner = CRFNer(nlp.vocab, build_crf_tagger(recorder.model), loss=CRFNegativeLogLikelihood())
    ner.initialize(lambda: make_examples(nlp))
    lengths = [len(text.split()) for text in texts]
    assert [s.shape for s in ner.score_tokens([make_doc(nlp, text) for text in texts])] == [(n, 5) for n in lengths]
    ner.update([make_example(nlp, text) for text in texts])
    assert [g.shape for g in recorder.gradients[0]] == [(n, 4 if n else 0) for n in lengths]


def test_two_tokenisations_in_training(nlp):
    predicted = Doc(nlp.vocab, words=["New", "Yor", "k", "ishere"], spaces=[True, False, True, False])
    reference = Doc(nlp.vocab, words=["New", "York", "is", "here"], spaces=[True, True, False, False])
    reference.set_ents([Span(reference, 0, 2, "LOC")], default="outside")
    train(nlp, [Example(predicted, reference)])
    assert doc_entities(nlp.get_pipe("crf_ner")(predicted.copy())) == [(0, 3, "LOC")]


# A shared encoder


def shared_pipeline(order):
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    nlp.add_pipe("tok2vec", config={"model": {**TOK2VEC}})
    for name in order:
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}
        nlp.add_pipe(name, config=crf_config(LISTENER) if name == "crf_ner" else {"model": model})
    nlp.initialize(lambda: shared_examples(nlp, annotated=True))
    return nlp


def shared_examples(nlp, annotated):
    examples = []
    for text, entities in SENTENCES:
        reference = make_doc(nlp, text, entities, annotated=annotated)
        for token in reference:
            token.tag_ = "NN" if token.text.istitle() else "VB"
        examples.append(Example(Doc(nlp.vocab, words=text.split()), reference))
    return examples


@pytest.mark.parametrize("order", [("tagger", "crf_ner"), ("crf_ner", "tagger")])
def test_an_idle_listener_leaves_the_encoder_to_the_others(order):
    nlp = shared_pipeline(order)
    encoder, examples = nlp.get_pipe("tok2vec").model, shared_examples(nlp, annotated=False)
    train(nlp, shared_examples(nlp, annotated=True), steps=2)  # the tagger begins with zeros
    together, alone = gradients_with_and_without(nlp, "crf_ner", encoder, examples)
    assert not all_zero(together)
    assert same(together, alone, tolerance=1e-6)


@pytest.mark.parametrize("order", [("tagger", "crf_ner"), ("crf_ner", "tagger")])
def test_a_listener_that_learns_adds_to_the_encoder(order):
    nlp = shared_pipeline(order)
    encoder = nlp.get_pipe("tok2vec").model
    found = []
    for annotated in (False, True):
        clear_gradients(encoder)
        nlp.update(shared_examples(nlp, annotated), sgd=False)
        found.append(gradients(encoder))
    assert not same(*found, tolerance=1e-6)


def test_a_listener_trains_and_returns_from_disk(tmp_path):
    nlp = shared_pipeline(("tagger", "crf_ner"))
    train(nlp, shared_examples(nlp, annotated=True))
    nlp.to_disk(tmp_path)
    assert entities_of(nlp, TEXTS) == GOLD
    assert entities_of(spacy.load(tmp_path), ["", *TEXTS]) == [[], *GOLD]


@pytest.mark.parametrize("texts", [[""], ["", ""], ["", "Bob", ""]])
def test_empty_docs_with_a_listener(texts):
    nlp = shared_pipeline(("tagger", "crf_ner"))
    losses = nlp.update([make_example(nlp, text) for text in texts])
    assert numpy.isfinite(losses["crf_ner"])
    assert len(list(nlp.pipe(texts))) == len(texts)


def test_listeners_can_be_replaced():
    nlp = shared_pipeline(("crf_ner",))
    train(nlp, make_examples(nlp))
    nlp.replace_listeners("tok2vec", "crf_ner", ["model.tok2vec"])
    nlp.remove_pipe("tok2vec")
    assert entities_of(nlp, TEXTS) == GOLD
    assert train(nlp, make_examples(nlp), steps=1)["crf_ner"] < 1


# Settings


def test_the_factory_passes_every_setting_on(nlp):
    settings = {
        "loss": PartialCRF(0.5),
        "scheme": "IO",
        "constrain": False,
        "scores": True,
        "n_best": 3,
        "head_learn_rate": 5.0,
        "overwrite": True,
        "scorer": print,
    }
    ner = make_crf_ner(nlp, "mine", nlp.get_pipe("crf_ner").model, **settings)
    settings["tag_scheme"] = settings.pop("scheme")
    assert {key: getattr(ner, key) for key in settings} == settings
    assert ner.name == "mine"


def test_scheme_decides_the_tags():
    counts = {s: len(crf_pipeline(scheme=s).get_pipe("crf_ner").distribution_labels) for s in ("IO", "BIO", "IOBES")}
    assert counts == {"IO": 3, "BIO": 5, "IOBES": 9}


def test_unknown_scheme():
    with pytest.raises(WeaknerError, match=r"\[WK009\]"):
        spacy.blank("xx").add_pipe("crf_ner", config={"scheme": "BILOU"})


def test_constrain_forbids_transitions_in_training_and_decoding():
    found = {}
    for constrain in (True, False):
        nlp = crf_pipeline(constrain=constrain)
        emissions(nlp).set_param("b", numpy.asarray([-9, -9, 9, -9, -9], dtype="float32"))  # I-LOC everywhere
        ner, examples = nlp.get_pipe("crf_ner"), make_examples(nlp)
        (distribution,) = ner.distributions([make_doc(nlp, "a b")])
        loss = ner.update(examples)["crf_ner"]
        found[constrain] = (ner.score_paths([make_doc(nlp, "a b")])[0].tags[0], distribution[0, 2] > 0.5, loss)
    assert found[True][0] != "I-LOC"
    assert found[False][0] == "I-LOC"
    assert (found[True][1], found[False][1]) == (False, True)
    assert found[True][2] < found[False][2]


def test_scores_are_off_by_default(trained):
    doc = trained(make_doc(trained, TEXTS[0], annotated=False))
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


def test_scores_are_probabilities(trained_path):
    nlp = load(trained_path, scores=True)
    doc = nlp(make_doc(nlp, TEXTS[0], annotated=False))
    assert len(doc.ents) == 2
    assert all(0.5 < ent._.weakner_score <= 1.0 for ent in doc.ents)


def test_a_score_is_the_sum_over_all_sequences_with_the_entity(trained_path):
    nlp = load(trained_path, scores=True, n_best=100)
    ner = nlp.get_pipe("crf_ner")
    ner.cfg["temperature"] = 4.0
    doc = nlp(make_doc(nlp, "Bob", annotated=False))
    (distribution,) = ner.distributions([doc])
    (score,) = (ent._.weakner_score for ent in doc.ents)
    assert score == pytest.approx(distribution[0, ner.distribution_labels.index("B-PER")], rel=1e-5)


def test_settings_of_the_loading_config_win(trained_path):
    settings = {"scores": True, "n_best": 2, "constrain": False, "head_learn_rate": 7.0, "overwrite": True}
    ner = load(trained_path, **settings).get_pipe("crf_ner")
    assert {key: getattr(ner, key) for key in settings} == settings


def test_a_score_of_an_earlier_run_does_not_stay(trained):
    ner = trained.get_pipe("crf_ner")
    ner.overwrite, ner.scores = True, True
    doc = trained(make_doc(trained, TEXTS[0], annotated=False))
    ner.scores = False
    assert [ent._.weakner_score for ent in ner(doc).ents] == [None, None]


def test_candidates_are_off_by_default(trained):
    assert dict(trained(make_doc(trained, TEXTS[0])).spans) == {}


def test_n_best_writes_the_candidates(trained_path):
    nlp = load(trained_path, n_best=8)
    nlp.get_pipe("crf_ner").cfg["temperature"] = 3.0
    doc = nlp(make_doc(nlp, TEXTS[0], annotated=False))
    candidates = group_entities(doc, "pred:crf_ner")
    scores = dict(zip(candidates, group_scores(doc, "pred:crf_ner"), strict=True))
    assert len(candidates) > 2
    assert {*GOLD[0]} < {*candidates}
    assert all(0.0 <= score <= 1.0 for score in scores.values())
    assert max(scores, key=scores.get) in GOLD[0]
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


@pytest.mark.parametrize("n, more", [(1, False), (20, True)])
def test_more_sequences_give_more_candidates(trained_path, n, more):
    nlp = load(trained_path, n_best=n)
    doc = nlp(make_doc(nlp, TEXTS[0], annotated=False))
    assert (len(group_entities(doc, "pred:crf_ner")) > 2) is more


def test_candidates_of_an_empty_doc(trained_path):
    assert "pred:crf_ner" in load(trained_path, n_best=2)("").spans


def test_negative_n_best():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*n_best"):
        spacy.blank("xx").add_pipe("crf_ner", config={"n_best": -1})


@pytest.mark.parametrize("rate", [0.0, 1.0, 10.0])
def test_head_learn_rate_scales_the_steps_of_the_head(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = crf_pipeline(head_learn_rate=factor)
        model = nlp.get_pipe("crf_ner").model
        before = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        optimizer = nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(make_examples(nlp), sgd=optimizer)
        after = [weights(model.get_ref(part)) for part in ("tok2vec", "head")]
        steps[factor] = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    assert same(steps[rate][0], steps[1.0][0], tolerance=1e-6)
    assert same(steps[rate][1], [rate * step for step in steps[1.0][1]], tolerance=1e-5)
    assert not all_zero(steps[1.0][0])


@pytest.mark.parametrize(
    "loss",
    [
        {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 1.0},
        {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.0, "entity_ratio": 0.9},
    ],
)
def test_the_loss_decides_what_missing_means(loss):
    found = []
    for setting in (None, loss):
        nlp = crf_pipeline(**({"loss": setting} if setting else {}))
        found.append(nlp.update([make_example(nlp, "Anna went", annotated=False)], sgd=False)["crf_ner"])
    assert found[0] == 0.0
    assert found[1] > 0.1


def test_dropout_of_the_training_takes_effect(nlp):
    ner, examples = nlp.get_pipe("crf_ner"), make_examples(nlp)
    found = {}
    for drop in (0.0, 0.5):
        runs = []
        for _ in range(2):
            clear_gradients(ner.model)
            ner.update(examples, drop=drop)
            runs.append(gradients(ner.model.get_ref("head")))
        found[drop] = same(*runs, tolerance=1e-6)
    assert found == {0.0: True, 0.5: False}


def test_dropout_is_off_in_prediction(nlp):
    ner, docs = nlp.get_pipe("crf_ner"), [make_doc(nlp, text) for text in TEXTS]
    before = ner.score_tokens(docs)
    ner.update(make_examples(nlp), drop=0.9)
    assert same(before, ner.score_tokens(docs))


def test_the_scorer_is_used(trained):
    scores = trained.evaluate(make_examples(trained))
    assert scores["ents_f"] == 1.0
    assert {*scores["ents_per_type"]} == {"LOC", "PER"}


def test_false_entities_of_sentences_without_any_count(trained):
    scores = trained.evaluate([make_example(trained, "Bob"), make_example(trained, "Paris likes Bob Smith", GOLD[1])])
    assert (scores["ents_p"], scores["ents_r"]) == (pytest.approx(2 / 3), 1.0)


def test_without_a_scorer():
    assert crf_pipeline(scorer=None).get_pipe("crf_ner").score([]) == {}


def test_what_it_assigns(nlp):
    assert nlp.analyze_pipes()["summary"]["crf_ner"]["assigns"] == ["doc.ents", "token.ent_iob", "token.ent_type"]


def test_only_what_training_creates_is_in_cfg(nlp):
    assert nlp.get_pipe("crf_ner").cfg == {"labels": ["LOC", "PER"], "temperature": 1.0}


def test_unknown_settings_are_refused():
    with pytest.raises(ValueError, match="treshold"):
        spacy.blank("xx").add_pipe("crf_ner", config={"treshold": 1})


# Entities that are there already


def test_preset_entities_stay_and_predictions_fill_the_rest(trained):
    doc = make_doc(trained, TEXTS[0], annotated=False)
    doc.ents = [Span(doc, 4, 5, "ORG", kb_id="Q1")]
    found = trained(doc)
    assert (4, 5, "ORG") in doc_entities(found)
    assert (0, 1, "PER") in doc_entities(found)
    assert found.ents[-1].kb_id_ == "Q1"


def test_overwrite_replaces_them(trained_path):
    nlp = load(trained_path, overwrite=True)
    doc = make_doc(nlp, TEXTS[0], [(1, 5, "ORG")])
    assert doc_entities(nlp(doc)) == GOLD[0]


def test_blocked_tokens_stay_and_get_no_entity(trained):
    doc = make_doc(trained, TEXTS[0])
    free = trained(make_doc(trained, TEXTS[0]))
    token = free.ents[0].start
    doc.set_ents([], blocked=[doc[token : token + 1]], default="missing")
    doc = trained(doc)
    assert not any(ent.start <= token < ent.end for ent in doc.ents)
    assert (doc[token].ent_iob_, doc[token].ent_type_) == ("B", "")
    assert len(doc.ents) == len(free.ents) - 1


@pytest.mark.parametrize("scheme", ["IO", "BIO", "IOBES"])
def test_preset_entities_everywhere_leave_nothing_to_predict(scheme):
    nlp = crf_pipeline(scheme=scheme, scores=True, n_best=3)
    preset = [(0, 2, "X"), (2, 3, "Y")]
    doc = nlp(make_doc(nlp, "a b c", preset))
    assert doc_entities(doc) == preset
    assert [ent._.weakner_score for ent in doc.ents] == [None, None]


def test_annotating_twice_changes_nothing(trained_path):
    nlp = load(trained_path, scores=True)
    doc = nlp(make_doc(nlp, TEXTS[1], annotated=False))
    before = [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents]
    nlp.get_pipe("crf_ner")(doc)
    assert [(ent.start, ent.end, ent.label_, ent._.weakner_score) for ent in doc.ents] == before


def test_tokens_outside_entities_are_outside(trained):
    doc = trained(make_doc(trained, TEXTS[0], annotated=False))
    assert "".join(token.ent_iob_ for token in doc) == "BOOBI"


def test_predict_does_not_touch_the_docs(trained):
    docs = [make_doc(trained, text, annotated=False) for text in TEXTS]
    predictions = trained.get_pipe("crf_ner").predict(iter(docs))
    assert [prediction.entities for prediction in predictions] == GOLD
    assert not any(doc.has_annotation("ENT_IOB") or doc.spans for doc in docs)


@pytest.mark.parametrize(
    "words, tags, expected",
    [
        ([" ", "a", "b"], "B-PER I-PER O", [(1, 2, "PER")]),
        (["a", "\n", " "], "B-PER I-PER I-PER", [(0, 1, "PER")]),
        ([" ", "\n", "a"], "B-PER I-PER O", []),
        (["a", " ", "b"], "B-PER I-PER I-PER", [(0, 3, "PER")]),
    ],
)
def test_white_space_is_trimmed_off_entities(nlp, words, tags, expected):
    ner = nlp.get_pipe("crf_ner")
    doc = Doc(nlp.vocab, words=words)
    ids = ner.scheme.tag_ids(tags.split())
    scores = numpy.eye(5, dtype="float32")[ids] * 1000
    ner.set_annotations([doc], ner.decode([doc], [scores]))
    assert doc_entities(doc) == expected


# Prediction


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["", "Bob", ""], [" "], ["\n\n", "Bob"], ["Bob"]])
@pytest.mark.parametrize("settings", [{}, {"scores": True, "n_best": 2}])
def test_small_docs(trained_path, texts, settings):
    nlp = load(trained_path, **settings)
    docs = list(nlp.pipe(texts))
    assert [doc_entities(doc) for doc in docs] == [[(0, 1, "PER")] if text == "Bob" else [] for text in texts]


@pytest.mark.parametrize("texts", [[], [""], ["", "Bob"]])
def test_small_docs_in_distributions_and_paths(trained, texts):
    ner, docs = trained.get_pipe("crf_ner"), [trained.make_doc(text) for text in texts]
    assert [d.shape for d in ner.distributions(iter(docs))] == [(len(doc), 5) for doc in docs]
    assert [len(path.tags) for path in ner.score_paths(iter(docs))] == [len(doc) for doc in docs]


def test_pipe_is_one_by_one_in_any_order_and_batch_size(trained_path):
    nlp = load(trained_path, scores=True, n_best=3)
    texts = [*TEXTS, "", "Anna likes Paris", "York", " "]

    def run(texts, size):
        result = {}
        for doc in nlp.pipe(texts, batch_size=size):
            found = group_entities(doc, "pred:crf_ner")
            scores = [ent._.weakner_score for ent in doc.ents] + group_scores(doc, "pred:crf_ner")
            result[doc.text] = (doc_entities(doc), found, [round(score, 5) for score in scores])
        return result

    expected = {text: run([text], 1)[text] for text in texts}
    assert run(texts, 100) == run(texts, 2) == run(texts[::-1], 3) == expected


def test_protocols(nlp):
    ner = nlp.get_pipe("crf_ner")
    assert isinstance(ner, TokenDistributions)
    assert isinstance(ner, PathScorer)
    assert isinstance(ner, Clocked)


def test_distributions_are_distributions(nlp):
    ner, docs = nlp.get_pipe("crf_ner"), [make_doc(nlp, text) for text in TEXTS]
    for doc, distribution in zip(docs, ner.distributions(docs), strict=True):
        assert distribution.shape == (len(doc), len(ner.distribution_labels))
        assert distribution.dtype == "float32"
        assert (distribution >= 0).all()
        assert numpy.allclose(distribution.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_paths_agree_with_entities_and_distributions(trained, temperature):
    ner = trained.get_pipe("crf_ner")
    ner.cfg["temperature"] = temperature
    docs = [make_doc(trained, text, annotated=False) for text in TEXTS]
    for doc, path, distribution in zip(docs, ner.score_paths(docs), ner.distributions(docs), strict=True):
        ids = ner.scheme.tag_ids(path.tags)
        probability = numpy.exp(path.log_probability)
        assert path.log_probability <= 0
        # A sequence is no more probable than any of its tags, and no less than what the union bound leaves.
        own = distribution[numpy.arange(len(doc)), ids]
        assert max(0.0, 1 - (1 - own).sum()) - 1e-5 <= probability <= own.min() + 1e-5
        assert ner.scheme.decode(ids) == doc_entities(ner(doc))


def test_the_path_of_one_token_has_the_probability_of_its_tag(nlp):
    ner, docs = nlp.get_pipe("crf_ner"), [make_doc(nlp, "Bob")]
    (path,), (distribution,) = ner.score_paths(docs), ner.distributions(docs)
    expected = distribution[0, ner.distribution_labels.index(path.tags[0])]
    assert numpy.exp(path.log_probability) == pytest.approx(expected, rel=1e-5)


def test_temperature_changes_distributions_but_not_entities(trained):
    ner, docs = trained.get_pipe("crf_ner"), [make_doc(trained, text, annotated=False) for text in TEXTS]
    before = ner.distributions(docs)
    ner.cfg["temperature"] = 10.0
    after = ner.distributions(docs)
    assert after[0].max() < before[0].max()
    assert entities_of(trained, TEXTS) == GOLD


# Storage


def reload_bytes(nlp, tmp_path):
    return load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())


def reload_disk(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    return spacy.load(tmp_path)


def reload_copy(nlp, tmp_path):
    return copy.deepcopy(nlp)


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
@pytest.mark.parametrize("scheme", ["BIO", "IOBES"])
def test_a_reloaded_pipeline_is_the_same(tmp_path, reload, scheme):
    nlp = crf_pipeline(scheme=scheme)
    train(nlp, make_examples(nlp), steps=10)
    nlp.get_pipe("crf_ner").cfg["temperature"] = 2.0
    other = reload(nlp, tmp_path)
    docs = [make_doc(nlp, text, annotated=False) for text in TEXTS]
    ours, theirs = nlp.get_pipe("crf_ner"), other.get_pipe("crf_ner")
    assert theirs.cfg == ours.cfg
    assert same(weights(ours.model), weights(theirs.model))
    assert same(ours.distributions(docs), theirs.distributions(docs))
    assert entities_of(other, TEXTS) == entities_of(nlp, TEXTS)


def test_a_copy_is_independent(trained):
    other = copy.deepcopy(trained)
    train(other, [make_example(other, text) for text in TEXTS])
    assert entities_of(other, TEXTS) == [[]] * 4
    assert entities_of(trained, TEXTS) == GOLD


def test_a_reloaded_pipeline_trains_on(trained):
    assert train(trained, make_examples(trained), steps=1)["crf_ner"] < 0.5


def test_a_pipeline_that_is_not_initialised_is_stored(tmp_path):
    nlp = spacy.blank("xx")
    nlp.add_pipe("crf_ner", config=crf_config()).add_label("X")
    ner = reload_disk(nlp, tmp_path).get_pipe("crf_ner")
    assert ner.labels == ("X",)
    assert not ner.is_initialized


def test_config_round_trip(nlp):
    nlp = crf_pipeline(scheme="IO", scores=True, n_best=2, head_learn_rate=3.0, overwrite=True, constrain=False)
    text = nlp.config.to_str()
    again = load_model_from_config(Config().from_str(text, interpolate=False))
    assert again.config["components"] == nlp.config["components"]
    for key in ("tag_scheme", "scores", "n_best", "head_learn_rate", "overwrite", "constrain", "loss"):
        assert getattr(again.get_pipe("crf_ner"), key) == getattr(nlp.get_pipe("crf_ner"), key)


SCRIPT = """
import json, sys
import torch
torch.set_num_threads(1)
import spacy
from spacy.tokens import Doc
nlp = spacy.load(sys.argv[1])
for n_process in (1, 2):
    docs = nlp.pipe(json.loads(sys.argv[2]), n_process=n_process, batch_size=2)
    print(json.dumps([[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs]))
"""


def test_in_a_new_process_and_in_two(trained_path):
    command = [sys.executable, "-c", SCRIPT, str(trained_path), json.dumps(["", *TEXTS])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    for line in result.stdout.splitlines()[-2:]:
        assert [[tuple(entity) for entity in entities] for entities in json.loads(line)] == [[], *GOLD]
