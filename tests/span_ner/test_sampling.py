"""How the component uses its sampler: what it tells it, the clock, and the oracle."""

import tracemalloc
from unittest.mock import patch

import numpy
import pytest
import spacy

from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import log_softmax
from spacy_weakner.span_ner.candidates import enumerate_spans
from spacy_weakner.span_ner.oracle import Oracle
from spacy_weakner.span_ner.samplers import START, AllNegatives, UniformNegativeSampler, WeightedNegativeSampler
from spacy_weakner.training.clock import TrainingClock
from spacy_weakner.ty import TrainingProgress

from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    loss_with,
    make_doc,
    make_example,
    make_examples,
    same,
    train,
)
from .util import (
    UNIFORM,
    WEIGHTED,
    all_spans,
    force_scores,
    recorded_ner,
    span_config,
    span_pipeline,
)

TEXT, ENTITIES = "Anna went to New York", [(0, 1, "PER"), (3, 5, "LOC")]
LONG_TEXT = "Anna went to New York today and left again " * 57


class SpySampler:
    """Takes the first candidate, and writes down what it is told."""

    weighted = True
    exclude = 0.0

    def __init__(self):
        self.calls = []

    def __call__(self, n_candidates, n_tokens, log_probabilities=None, tick=None):
        self.calls.append((n_candidates, n_tokens, log_probabilities, tick))
        return numpy.arange(min(1, n_candidates))


@pytest.fixture
def nlp():
    return span_pipeline()


@pytest.fixture
def ner(nlp):
    return nlp.get_pipe("span_ner")


# What a sampler is told


def test_a_weighted_sampler_knows_the_probabilities_of_every_candidate(nlp, ner):
    ner.sampler = spy = SpySampler()
    examples = [make_example(nlp, ""), *make_examples(nlp)]
    nlp.update(examples, sgd=False)
    assert len(spy.calls) == 3  # the sentence of one entity has no candidates
    for (text, gold), call in zip(zip(TEXTS, GOLD, strict=True), spy.calls, strict=False):
        spans = [span for span in all_spans(len(text.split())) if span not in {entity[:2] for entity in gold}]
        (vectors,) = ner.model.predict([make_doc(nlp, text)])
        scores = ner.model.get_ref("head").predict((vectors, numpy.asarray(spans)))
        assert call[:2] == (len(spans), len(text.split()))
        numpy.testing.assert_allclose(call[2], log_softmax(scores), rtol=1e-4, atol=1e-5)


def test_the_probabilities_are_without_dropout(nlp, ner):
    ner.sampler = spy = SpySampler()
    vectors = ner.model.predict([make_doc(nlp, TEXT)])
    with patch.object(ner.model, "_func", lambda model, docs, is_train: (vectors, lambda gradient: None)):
        for _ in range(2):
            ner.update([make_example(nlp, TEXT)], drop=0.9)
    assert (spy.calls[0][2] == spy.calls[1][2]).all()


def test_weighing_does_not_run_the_encoder_again(nlp):
    ner, recorder = recorded_ner(nlp, WeightedNegativeSampler())
    calls = []
    forward = recorder.model._func
    recorder.model._func = lambda *args, **named: calls.append(args) or forward(*args, **named)
    ner.tick(TrainingProgress(0, 0, 0.0))
    ner.update(make_examples(nlp))
    assert len(calls) == len(recorder.docs) == 1


def test_a_sampler_that_is_not_weighted_gets_no_probabilities(nlp, ner):
    ner.sampler = spy = SpySampler()
    spy.weighted = False
    nlp.update([make_example(nlp, TEXT)], sgd=False)
    assert spy.calls == [(15, 5, None, START)]


def test_nothing_annotated_is_not_weighed(nlp, ner):
    ner.sampler = spy = SpySampler()
    assert nlp.update([make_example(nlp, TEXT, annotated=False)], sgd=False)["span_ner"] == 0.0
    assert all(call[0] == 0 for call in spy.calls)
    assert all_zero(gradients(ner.model))


def test_drawing_adds_no_gradient(nlp, ner):
    examples = make_examples(nlp)
    nlp.update(examples, sgd=False)
    expected = gradients(ner.model)
    clear_gradients(ner.model)
    ner.sampler = SpySampler()
    ner.sampler.__class__ = type("All", (SpySampler,), {"__call__": lambda self, n, *rest: numpy.arange(n)})
    nlp.update(examples, sgd=False)
    assert same(expected, gradients(ner.model), tolerance=1e-6)


# The clock


def test_the_weighted_sampler_needs_the_clock():
    nlp = span_pipeline(sampler=WEIGHTED)
    with pytest.raises(WeaknerError, match=r"(?s)\[WK004\] 'span_ner'.*TrainingClock"):
        nlp.update(make_examples(nlp), sgd=False)
    assert len(nlp("Bob")) == 1


def test_the_temperature_follows_the_clock(monkeypatch):
    nlp = span_pipeline(sampler={**WEIGHTED, "n_epochs": 16.0})
    found = []
    temperature = WeightedNegativeSampler.temperature

    def spy(self, tick):
        found.append(temperature(self, tick))
        return found[-1]

    monkeypatch.setattr(WeightedNegativeSampler, "temperature", spy)
    clock = TrainingClock(total_steps=4)
    for step in range(5):
        clock(nlp, {"step": step, "epoch": 0})
        nlp.update([make_example(nlp, TEXT)], sgd=False)
    assert found == pytest.approx([4.0, 12**0.5, 8**0.5, 2.0, 1.0])


@pytest.mark.parametrize("include_outside", [True, False])
def test_it_learns_with_the_weighted_sampler(include_outside):
    nlp = span_pipeline(sampler={**WEIGHTED, "ratio": 1.0, "include_outside": include_outside})
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.02
    clock = TrainingClock(total_steps=60)
    for step in range(60):
        clock(nlp, {"step": step, "epoch": 0})
        nlp.update(make_examples(nlp), sgd=optimizer)
    assert entities_of(nlp, TEXTS) == GOLD


# Memory


@pytest.fixture(scope="module")
def large():
    """The component with its default sizes, and a Doc of 513 tokens."""
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("span_ner")
    nlp.initialize(lambda: make_examples(nlp))
    example = make_example(nlp, LONG_TEXT, [(0, 1, "PER"), (3, 5, "LOC")])
    return ner, example, ner.model.predict([example.predicted])


def peak(function):
    """Memory that a call takes at most, in MB."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("max_width", [10, 100])
def test_memory_of_prediction_is_bounded(large, max_width):
    ner, example, vectors = large
    ner.max_width = max_width
    force_scores(ner.model, [9, 0, 0])
    assert peak(lambda: ner.decode([example.predicted], vectors)) < 60
    assert doc_entities(ner(example.predicted.copy())) == []


@pytest.mark.parametrize(
    "sampler", [UniformNegativeSampler(), WeightedNegativeSampler(), AllNegatives()], ids=["uniform", "weighted", "all"]
)
def test_memory_of_training_is_bounded(large, sampler):
    ner, example, vectors = large
    ner.max_width, ner.sampler = 10, sampler
    assert peak(lambda: loss_with(ner, [example], vectors)) < 60


# A pipeline that was trained before, by which negatives are chosen


EXCLUDE = {**UNIFORM, "ratio": 3.0, "exclude": 0.5}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A pipeline that knows its sentences by heart."""
    nlp = span_pipeline()
    train(nlp, make_examples(nlp), steps=40)
    folder = tmp_path_factory.mktemp("oracle") / "model"
    nlp.to_disk(folder)
    return folder


def learner(path, labels=None, *, sampler=EXCLUDE, **settings):
    """An untrained pipeline with an oracle."""
    nlp = spacy.blank("xx")
    ner = nlp.add_pipe("span_ner", config=span_config(sampler=sampler, **settings))
    ner.initialize(lambda: make_examples(nlp), nlp=nlp, labels=labels, oracle=path)
    return nlp, ner


def test_the_sampler_is_told_what_the_oracle_thinks(path):
    nlp, ner = learner(path)
    ner.sampler = spy = SpySampler()
    nlp.update([make_example(nlp, ""), *make_examples(nlp)], sgd=False)
    known = spacy.load(path).get_pipe("span_ner")
    for (text, gold), call in zip(zip(TEXTS, GOLD, strict=True), spy.calls, strict=False):
        spans = [span for span in all_spans(len(text.split())) if span not in {entity[:2] for entity in gold}]
        (vectors,) = known.model.predict([make_doc(nlp, text)])
        scores = known.model.get_ref("head").predict((vectors, numpy.asarray(spans)))
        numpy.testing.assert_allclose(call[2], log_softmax(scores), rtol=1e-4, atol=1e-5)


def test_labels_may_be_in_another_order(path):
    ours, theirs = (Oracle(path, "span_ner", labels, None) for labels in (["LOC", "PER"], ["PER", "LOC"]))
    doc, spans = make_doc(spacy.blank("xx"), TEXTS[0]), numpy.asarray(all_spans(len(TEXTS[0].split())))
    numpy.testing.assert_array_equal(ours([doc], [spans])[0][:, [0, 2, 1]], theirs([doc], [spans])[0])


def test_an_oracle_reads_no_sentence_twice_whatever_it_is_asked(path):
    oracle = Oracle(path, "span_ner", ["LOC", "PER"], 3)
    docs = [make_doc(spacy.blank("xx"), text) for text in ["", *TEXTS, TEXTS[0]]]
    spans = [enumerate_spans(len(doc), 3) for doc in docs]
    with patch.object(oracle, "_read", wraps=oracle._read) as read:
        first = oracle(docs, spans)
        some = oracle(docs[::-1], [own[1::2] for own in spans[::-1]])[::-1]
    ((once,),) = [call.args for call in read.call_args_list]
    assert len(once) == len(docs)
    for whole, part in zip(first, some, strict=True):
        numpy.testing.assert_array_equal(whole[1::2], part)


def negatives_of(ner, example):
    """The spans that an update takes for "O"."""
    drawn, draw = [], ner._draw
    with patch.object(ner, "_draw", lambda *args: drawn.append(draw(*args)) or drawn[-1]):
        ner.update([example])
    return {tuple(span) for span, label in zip(drawn[0].spans.tolist(), drawn[0].labels, strict=True) if not label}


def test_entities_that_it_knows_are_not_drawn(path):
    nlp, ner = learner(path, sampler=EXCLUDE)
    for text, gold in zip(TEXTS, GOLD, strict=True):
        hidden, example = {entity[:2] for entity in gold}, make_example(nlp, text)
        assert not hidden & negatives_of(ner, example)
        if len(text.split()) > 1:
            assert negatives_of(ner, example)
    ner._oracle, ner.sampler = None, AllNegatives()
    assert hidden & negatives_of(ner, example)


def test_weights_are_those_of_the_oracle(path):
    """A weighted sampler asks the model that learns only where there is no oracle."""
    nlp, ner = learner(path)
    ner.sampler = spy = SpySampler()
    assert spy.weighted
    nlp.update(make_examples(nlp), sgd=False)
    certain = [numpy.exp(call[2]).max(axis=1).mean() for call in spy.calls if len(call[2])]
    assert min(certain) > 0.9  # an untrained model is not


def test_the_oracle_stays_as_it_is_and_is_not_saved(path, tmp_path):
    nlp, ner = learner(path, sampler=EXCLUDE)
    before = ner._oracle.nlp.to_bytes()
    train(nlp, make_examples(nlp), steps=3)
    assert ner._oracle.nlp.to_bytes() == before
    nlp.to_disk(tmp_path / "out")
    other = spacy.load(tmp_path / "out")
    other(TEXTS[0])
    with pytest.raises(ValueError, match=r"'span_ner'.*oracle"):
        other.update(make_examples(other), sgd=False)


def test_initializing_again_without_one_drops_it(path):
    nlp, ner = learner(path)
    ner.sampler = spy = SpySampler()
    spy.weighted = False
    ner.initialize(lambda: make_examples(nlp), nlp=nlp)
    nlp.update(make_examples(nlp), sgd=False)
    assert all(call[2] is None for call in spy.calls)


def test_an_oracle_that_nobody_asks_is_refused(path):
    with pytest.raises(ValueError, match=r"'span_ner'"):
        learner(path, sampler=UNIFORM)


def test_a_sampler_that_excludes_needs_one():
    with pytest.raises(ValueError, match=r"'span_ner'.*exclude = 0\.5"):
        learner(None, sampler=EXCLUDE)


def test_unusable_oracles(path, tmp_path):
    with pytest.raises(ValueError, match=r"LOC, PER.*LOC, ORG, PER"):
        learner(path, labels=["LOC", "ORG", "PER"])
    with pytest.raises(WeaknerError, match=r"WK108.*nowhere"):
        learner(tmp_path / "nowhere")
    spacy.blank("xx").to_disk(tmp_path / "blank")
    with pytest.raises(ValueError, match=r"blank.*span_ner"):
        learner(tmp_path / "blank")
