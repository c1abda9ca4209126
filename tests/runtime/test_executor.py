"""Stages whose shards others make: the same bytes and the same report, whoever makes them."""

import pickle
import random
from contextlib import nullcontext
from dataclasses import replace

import numpy
import pytest
import spacy

from spacy_weakner.aggregation.fitting import learn
from spacy_weakner.aggregation.observations import observe
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import UNFINISHED, read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import Distributions, _hand_over, aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.relabel.augment import augment
from spacy_weakner.relabel.complete import complete
from spacy_weakner.relabel.pick import pick
from spacy_weakner.runtime.executor import Executor

from ..mrc_ner.util import mrc_pipeline
from ..util import SENTENCES, InThisProcess, contents, crf_pipeline, make_doc, make_examples, needs_transformers

pytestmark = pytest.mark.slow

NLP = spacy.blank("xx")
N = 5


@pytest.fixture
def engine(monkeypatch):
    engine = InThisProcess()
    monkeypatch.setattr(Executor, "_pool", lambda self, folder: nullcontext(engine))
    return engine


def sourced(text, entities, gold=False):
    doc = make_doc(NLP, text, entities)
    if not gold:
        weak.set_weak(doc)
    for source, own in {"a": entities[:1], "b": entities, "c": entities[1:]}.items():
        weak.set_source(doc, source, own)
    return doc


@pytest.fixture
def corpus(tmp_path):
    for i in range(N):
        docs = [sourced(text, entities) for text, entities in SENTENCES[i % 3 :]]
        write_docs(tmp_path / "in" / f"{i}.spacy", docs)
    return tmp_path / "in"


def same(tmp_path, engine, stage, corpus, *arguments, **settings):
    """Run a stage alone and with others; twice, since then nothing is left to do."""
    reports = [stage(corpus, tmp_path / f"{n}", *arguments, workers=n, **settings) for n in (1, 2)]
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    assert engine.done == [(0, 2), (1, 2)]
    names = [path.name for path in (tmp_path / "2").iterdir()]
    assert len(names) == 2 * N and not [name for name in names if name.startswith(".")]
    again = stage(corpus, tmp_path / "2", *arguments, workers=2, **settings)
    assert len(engine.done) == 2
    assert (reports[1].written, reports[1].skipped, again.written, again.skipped) == (N, 0, 0, N)
    return reports


@pytest.mark.parametrize("method", ["union", "majority", "weighted", "label_model"])
def test_aggregate(tmp_path, corpus, engine, method):
    write_docs(tmp_path / "gold.spacy", [sourced(*sentence, gold=True) for sentence in SENTENCES])
    one, two = same(tmp_path, engine, aggregate, corpus, method=method, gold=tmp_path / "gold.spacy")
    assert one == two


@pytest.mark.parametrize("name", ["majority", "weighted", "label_model"])
def test_what_was_learned_is_handed_over_without_rounding(tmp_path, name):
    draw = random.Random(0)
    docs = [
        sourced(text, [entity for entity in entities if draw.random() < 0.8], gold=True)
        for text, entities in SENTENCES * 20
    ]
    write_docs(tmp_path / "in.spacy", docs)
    method = learn(docs, name, None, docs)
    stage = Distributions({"method": name}, lambda: method)
    stage.open()
    make = pickle.loads(pickle.dumps(_hand_over(stage, tmp_path / "in.spacy", tmp_path / "out", tmp_path)))
    assert make.args[0] == stage.settings
    again = make.args[3]
    assert (again.names, again.scheme.tags, again.docs) == (method.names, method.scheme.tags, method.docs)
    assert again.source_accuracies == method.source_accuracies
    votes = [observe(doc, method.names, method.scheme) for doc in docs]
    for one, two in zip(method.distributions(votes), again.distributions(votes), strict=True):
        assert numpy.array_equal(one, two)


def test_complete(tmp_path, corpus, engine):
    nlp = crf_pipeline()
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path / "model")
    one, two = same(tmp_path, engine, complete, corpus, tmp_path / "model", soft=True)
    assert one == two


def test_pick(tmp_path, corpus, engine):
    nlp = mrc_pipeline()
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path / "model")
    one, two = same(tmp_path, engine, pick, corpus, tmp_path / "model", union=True)
    assert one == two


@needs_transformers
def test_augment(tmp_path, corpus, engine, tiny_bert):
    from ..relabel.augmenting.util import make_model

    one, two = same(tmp_path, engine, augment, corpus, make_model(tiny_bert, tmp_path / "model"))
    assert replace(one, seconds=0) == replace(two, seconds=0)


def test_an_unfinished_folder_is_no_corpus(tmp_path, engine):
    (tmp_path / "terms.csv").write_text("label,term\nPER,One\n")
    (tmp_path / "a.jsonl").write_text('{"tokens": ["One"]}\n{"tokens": ["Two"]}\n{"tokens": [3]}\n')
    settings = {"terms": tmp_path / "terms.csv", "workers": 2, "shard_size": 1}
    with pytest.raises(WeaknerError, match="line 3"):
        label(tmp_path / "a.jsonl", tmp_path / "out", **settings)
    assert list((tmp_path / "out").glob("*.spacy"))
    for read in (lambda path: list(read_docs(path, NLP.vocab)), lambda path: convert(path, tmp_path / "b.jsonl")):
        with pytest.raises(WeaknerError, match="WK789"):
            read(tmp_path / "out")
    (tmp_path / "a.jsonl").write_text('{"tokens": ["One"]}\n{"tokens": ["Two"]}\n{"tokens": ["3"]}\n')
    assert label(tmp_path / "a.jsonl", tmp_path / "out", **settings).docs == 3
    assert [doc.text for doc in read_docs(tmp_path / "out", NLP.vocab)] == ["One ", "Two ", "3 "]


def test_our_errors_end_the_run(tmp_path, corpus, engine):
    write_docs(tmp_path / "in" / "gold.spacy", [make_doc(NLP, *SENTENCES[0])])
    nlp = crf_pipeline()
    nlp.initialize(lambda: make_examples(nlp))
    nlp.to_disk(tmp_path / "model")
    with pytest.raises(WeaknerError, match="WK344"):
        complete(corpus, tmp_path / "out", tmp_path / "model", workers=2)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".") and path.name != UNFINISHED]


def test_settings(tmp_path, corpus):
    with pytest.raises(WeaknerError, match="WK331"):
        aggregate(corpus, tmp_path / "out", workers=2, ray="auto")
    for more in ({}, {"method": "label_model"}):
        with pytest.raises(WeaknerError, match="WK312"):
            aggregate(corpus, tmp_path / "out.spacy", workers=2, **more)
    for settings in ({"workers": 0}, {"gpu_id": -2}):
        with pytest.raises(WeaknerError, match="WK005"):
            Executor(**settings)
    assert (Executor(gpu_id=3).gpu_here, Executor(gpu_id=3).gpu_there) == (3, 3)
    assert (Executor(ray="auto", gpu_id=3).gpu_here, Executor(ray="auto", gpu_id=3).gpu_there) == (-1, 0)
