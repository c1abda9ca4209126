"""A pipeline that was trained before, by which negatives are chosen."""

import numpy
import pytest
import spacy

from spacy_weakner.corpus.weak import set_group
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import log_softmax
from spacy_weakner.span_ner.oracle import Oracle
from spacy_weakner.span_ner.samplers import UniformNegativeSampler

from ..util import GOLD, TEXTS, make_doc, make_example, make_examples, train
from .test_sampling import SpySampler
from .util import UNIFORM, all_spans, span_config, span_pipeline, with_hidden

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
    ours, theirs = (Oracle(path, "span_ner", labels) for labels in (["LOC", "PER"], ["PER", "LOC"]))
    doc, spans = make_doc(spacy.blank("xx"), TEXTS[0]), numpy.asarray(all_spans(len(TEXTS[0].split())))
    numpy.testing.assert_array_equal(ours([doc], [spans])[0][:, [0, 2, 1]], theirs([doc], [spans])[0])


def test_hidden_entities_that_it_knows_are_not_drawn(path):
    nlp, ner = learner(path, sampler=EXCLUDE)
    nlp.update([with_hidden(nlp, text, gold) for text, gold in zip(TEXTS, GOLD, strict=True)], sgd=False)
    counts = ner.training_statistics()
    assert counts["negatives"] > 0 and counts["missampling_rate"] == 0.0
    ner._oracle, ner.sampler = None, UniformNegativeSampler(3.0)
    nlp.update([with_hidden(nlp, text, gold) for text, gold in zip(TEXTS, GOLD, strict=True)], sgd=False)
    assert ner.training_statistics()["missampling_rate"] > 0.0


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


def test_it_reads_what_sources_say(tmp_path):
    """An oracle with source features gets the groups of the Docs."""
    nlp = spacy.blank("xx")
    features = {"@architectures": "spacy_weakner.SourceFeatures.v1", "sources": ["terms"]}
    config = span_config()
    config["model"]["source_features"] = features
    ner = nlp.add_pipe("span_ner", config=config)
    examples = make_examples(nlp)
    for example in examples:
        for doc in (example.reference, example.predicted):
            set_group(doc, "weak:terms", [(0, 1, "PER")])
    ner.initialize(lambda: examples, nlp=nlp)
    nlp.to_disk(tmp_path / "model")
    oracle = Oracle(tmp_path / "model", "span_ner", ner.labels)
    spans = [numpy.asarray([[0, 1]])]
    bare = make_doc(nlp, TEXTS[0])
    with_match, without = oracle([examples[0].predicted], spans)[0], oracle([bare], spans)[0]
    assert with_match[0, 1 + ner.labels.index("PER")] > without[0, 1 + ner.labels.index("PER")]
