"""Stages whose shards others make: the same bytes and the same report, whoever makes them."""

import json
import pickle
import random
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace

import numpy
import pytest
import spacy

from spacy_weakner.aggregation.fitting import prepare
from spacy_weakner.aggregation.observations import observe
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import UNFINISHED, read_docs, write_docs
from spacy_weakner.corpus.formats.reading import LONG
from spacy_weakner.corpus.language import RECORD
from spacy_weakner.corpus.sentences import LONGEST_RUN
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import Distributions, _hand_over, aggregate
from spacy_weakner.relabel.augment import augment
from spacy_weakner.relabel.complete import complete
from spacy_weakner.relabel.pick import pick
from spacy_weakner.runtime.executor import Executor
from spacy_weakner.runtime.pool import Pool

from ..mrc_ner.util import mrc_pipeline
from ..util import SENTENCES, contents, crf_pipeline, make_doc, make_examples, needs_transformers

pytestmark = pytest.mark.slow

NLP = spacy.blank("xx")
N = 5


class InThisProcess(Pool):
    """Pickles what it calls, as the others do, without their seconds."""

    parts = 2

    def __init__(self):
        self.done = []

    def submit(self, function, argument):
        future = Future()
        function, argument = pickle.loads(pickle.dumps((function, argument)))
        try:
            future.set_result(function(argument))
            self.done.append(argument)
        except WeaknerError as error:
            future.set_exception(error)
        return future

    def failure(self, error, what):
        return error


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
    method = prepare(tmp_path / "in.spacy", name, None, tmp_path / "in.spacy", 1000, 0)
    stage = Distributions({"method": name}, lambda: method)
    stage.open()
    make = pickle.loads(pickle.dumps(_hand_over(stage, tmp_path / "in.spacy", tmp_path / "out", tmp_path)))
    assert make.args[0] == stage.settings
    again = make.args[3]
    assert (again.names, again.scheme.tags, again.docs) == (method.names, method.scheme.tags, method.docs)
    assert again.to_json() == method.to_json()
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


def docs_of(folder):
    """Everything in the Docs, without the names of the shards."""
    return [(doc.to_json(), weak.doc_entities(doc)) for doc in read_docs(folder, spacy.blank("xx").vocab)]


def converted(tmp_path, engine, path, **settings):
    """Convert a corpus as a whole, in parts, and again; the reports of the first two."""
    whole = convert(path, tmp_path / "whole", **settings)
    parts = convert(path, tmp_path / "parts", workers=2, shard_size=2, **settings)
    assert engine.done == [(0, 2), (1, 2)]
    assert docs_of(tmp_path / "whole") == docs_of(tmp_path / "parts")
    again = convert(path, tmp_path / "parts", workers=2, shard_size=2, **settings)
    assert len(engine.done) == 2
    assert (whole.written, parts.skipped, again.skipped) == (1, 0, parts.written)
    assert again == replace(parts, skipped=again.skipped)
    assert parts.to_json() == {**whole.to_json(), "written": parts.written}
    assert parts.files == len(list((tmp_path / "parts").glob("*.spacy")))
    return whole, parts


def test_convert_texts(tmp_path, engine):
    lines = ["One is here. Two is here!", "", "Three.", "(" * (LONGEST_RUN + 1), "Anna met Bob in Paris.", " ", "Four."]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    whole, parts = converted(tmp_path, engine, tmp_path / "a.txt", lang="en")
    assert (whole.docs, whole.empty, whole.notes[LONG], parts.written) == (5, 2, 1, 4)


def test_convert_rows(tmp_path, engine):
    rows = [{"tokens": text.split(), "ents": None, "weak_ents": entities} for text, entities in SENTENCES]
    rows += [{"text": "Anna ran.", "spans": [[0, 3, "PER"]], "other": 1}] * 2
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"source": "llm", "misaligned": "expand"}
    whole, _ = converted(tmp_path, engine, tmp_path / "in", lang="en", **settings)
    assert (whole.moved, whole.ignored["other"], whole.entities["PER"]) == (4, 4, 4)
    assert whole.weak["llm"] == 2 * sum(len(entities) for _, entities in SENTENCES)


@pytest.mark.parametrize(
    "text, columns, n_entities, written",
    [
        ("New x B-CITY\nYork x I-CITY\n\nYes y O\n\nNo z O\n\nParis x B-CITY\n", (2, 3), 2, 4),
        # Of itself such a comment could be a line of tokens: the lines before it tell.
        ("# Title\n\n# of mine\n\nYes O\n\n# 1 -\nNo O\n\n# 1 2 O\nParis B-CITY\n\n# -\n", (1, -1), 1, 6),
    ],
)
def test_convert_columns(tmp_path, engine, text, columns, n_entities, written):
    (tmp_path / "a.conll").write_text(text)
    whole, parts = converted(tmp_path, engine, tmp_path / "a.conll", columns=columns)
    assert (whole.docs, whole.entities, parts.written) == (4, {"CITY": n_entities}, written)


def test_a_block_checks_the_columns_of_its_file(tmp_path, engine):
    (tmp_path / "a.conll").write_text("Yes y O\n\nNo z O\n\nRome B-CITY\n")
    for more in ({}, {"workers": 2, "shard_size": 2}):
        with pytest.raises(WeaknerError, match=r"a.conll, line 5: expected 3 columns as in the lines before"):
            convert(tmp_path / "a.conll", tmp_path / "out", **more)


def test_convert_corpora_and_tools(tmp_path, corpus, engine):
    for i in range(N):
        convert(corpus / f"{i}.spacy", tmp_path / "more" / f"{i}.jsonl")
    rows = [{"tokens": ["Anna", "ran"], "ner_tags": [i % 2, 0]} for i in range(5)]
    (tmp_path / "tool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    converted(tmp_path, engine, tmp_path / "tool.jsonl", labels=["O", "B-PER"])
    with pytest.raises(WeaknerError, match="WK740"):
        convert(tmp_path / "tool.jsonl", tmp_path / "out", format="doccano", workers=2)
    report = convert(corpus, tmp_path / "again", workers=2)
    assert report.docs == sum(1 for _ in read_docs(corpus, NLP.vocab)) and report.written == N
    convert(corpus / "0.spacy", tmp_path / "more" / "0.spacy")
    with pytest.raises(WeaknerError, match=r"WK748.*jsonl, spacy"):
        convert(tmp_path / "more", tmp_path / "out", workers=2)
    with pytest.raises(WeaknerError, match=r"WK740.*bin.*'spacy'"):
        (corpus / "0.spacy").rename(corpus / "bin")
        convert(corpus, tmp_path / "out", format="spacy", workers=2)
    (tmp_path / "rows.jsonl").write_text('[{"tokens": ["a"]}]')
    with pytest.raises(WeaknerError, match=r"WK740.*rows.*'jsonl'"):
        convert(tmp_path / "rows.jsonl", tmp_path / "out", workers=2)
    with pytest.raises(WeaknerError, match="WK312"):
        convert(tmp_path / "tool.jsonl", tmp_path / "out.conll", workers=2)
    assert not (tmp_path / "out").exists()


def test_an_unfinished_folder_is_no_corpus(tmp_path, engine):
    (tmp_path / "a.jsonl").write_text('{"tokens": ["One"]}\n{"tokens": ["Two"]}\n{"tokens": [3]}\n')
    settings = {"workers": 2, "shard_size": 1}
    with pytest.raises(WeaknerError, match="line 3"):
        convert(tmp_path / "a.jsonl", tmp_path / "out", **settings)
    assert list((tmp_path / "out").glob("*.spacy"))
    for read in (lambda path: list(read_docs(path, NLP.vocab)), lambda path: convert(path, tmp_path / "b.jsonl")):
        with pytest.raises(WeaknerError, match="WK789"):
            read(tmp_path / "out")
    (tmp_path / "a.jsonl").write_text('{"tokens": ["One"]}\n{"tokens": ["Two"]}\n{"tokens": ["3"]}\n')
    assert convert(tmp_path / "a.jsonl", tmp_path / "out", **settings).docs == 3
    assert [doc.text for doc in read_docs(tmp_path / "out", NLP.vocab)] == ["One ", "Two ", "3 "]


def test_convert_replaces_its_own_parts_alone(tmp_path, engine):
    (tmp_path / "a.txt").write_text("One.\nTwo.\nThree.\n")
    settings = {"workers": 2, "shard_size": 1}
    convert(tmp_path / "a.txt", tmp_path / "out", **settings)
    (tmp_path / "a.txt").write_text("One.\nFour.\n")
    report = convert(tmp_path / "a.txt", tmp_path / "out", **settings)
    assert (report.docs, report.written, report.skipped, report.replaced) == (2, 1, 1, 2)
    assert [doc.text for doc in read_docs(tmp_path / "out", NLP.vocab)] == ["One.", "Four."]
    assert convert(tmp_path / "a.txt", tmp_path / "out", sentences=False, **settings).written == 2
    with pytest.raises(WeaknerError, match="WK300"):
        convert(tmp_path / "a.txt", tmp_path / "out", overwrite=True)
    convert(tmp_path / "a.txt", tmp_path / "whole")
    with pytest.raises(WeaknerError, match="WK300"):
        convert(tmp_path / "a.txt", tmp_path / "whole", **settings)
    for setting in ({"limit": 1}, {"overwrite": True}):
        with pytest.raises(WeaknerError, match=f"WK331.*'{next(iter(setting))}'"):
            convert(tmp_path / "a.txt", tmp_path / "new", **settings, **setting)
    with pytest.raises(WeaknerError, match="WK312"):
        convert(tmp_path / "a.txt", tmp_path / "new.spacy", **settings)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(WeaknerError, match="WK101"):
        convert(tmp_path / "empty.txt", tmp_path / "empty", **settings)
    assert {path.name for path in (tmp_path / "empty").iterdir()} <= {RECORD}


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
    model = {"method": "label_model", "model_output": tmp_path / "model.json"}
    for more in ({}, model):
        with pytest.raises(WeaknerError, match="WK312"):
            aggregate(corpus, tmp_path / "out.spacy", workers=2, **more)
    for settings in ({"workers": 0}, {"gpu_id": -2}):
        with pytest.raises(WeaknerError, match="WK005"):
            Executor(**settings)
    assert (Executor(gpu_id=3).gpu_here, Executor(gpu_id=3).gpu_there) == (3, 3)
    assert (Executor(ray="auto", gpu_id=3).gpu_here, Executor(ray="auto", gpu_id=3).gpu_there) == (-1, 0)
