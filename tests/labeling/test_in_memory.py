"""Labels of Docs in memory are those of the same corpus on disk."""

import json

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.vocab import Vocab
from thinc.api import Config, NumpyOps, get_current_ops, set_current_ops

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import aggregate, aggregate_docs
from spacy_weakner.labeling.label import label, label_docs
from spacy_weakner.pipelines import asks_language_model

from .test_aggregate_fit_on import make_docs

NLP = spacy.blank("en")
TEXTS = ["heart failure ( HF ) and aspirin", "aspirin for HF", "Nothing here .", "HF", "Aspirin", "a beta - blocker"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"label": "DIS", "term": "heart failure", "id": "D6"}, {"label": "DRUG", "term": "aspirin", "id": "C1"}]
    (tmp_path / "terms.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [{"label": "DRUG", "pattern": [{"LOWER": "aspirin"}]}, {"label": "DIS", "pattern": "HF"}]
    (tmp_path / "patterns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = [
        {"text": TEXTS[1], "ents": [[0, 7, "DRUG"], [12, 14, "DIS"]]},
        {"id": "b.1", "ents": []},
        {"text": "aspirin", "ents": []},
    ]
    (tmp_path / "file.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    row = {"asked": "q1", "model": "m", "sample": 0}
    rows = [{"text": TEXTS[1], "ents": [[0, 7, "DRUG"]]}, {"text": "aspirin", "ents": []}]
    rows = [{"key": f"{i:032x}", **row, **labels} for i, labels in enumerate(rows)]
    (tmp_path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    make_pipeline().to_disk(tmp_path / "model")
    return tmp_path


def make_pipeline():
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DRUG", "pattern": "aspirin"}])
    nlp.add_pipe("span_ruler", config={"spans_key": "sc"}).add_patterns([{"label": "DIS", "pattern": "HF"}])
    return nlp


def make_corpus(nlp=NLP):
    """One document of two sentences with gold and other labels, and sentences without identifiers."""
    docs = [Doc(nlp.vocab, words=text.split()) for text in TEXTS]
    for doc, name in zip(docs, ("a.1", "a.2", "b.1"), strict=False):
        weak.set_id(doc, name)
        doc.set_ents([Span(doc, 0, 1, label="GOLD")], default="outside")
        weak.set_source(doc, "other", [(0, 1, "O1")], [0.5], reliability=0.7, complete=True)
    return docs


def stored(docs, path="stored.spacy"):
    """All that a corpus keeps of Docs."""
    write_docs(path, docs)
    with open(path, "rb") as file_:
        return file_.read()


@pytest.mark.parametrize(
    "settings",
    [
        {"terms": "terms.jsonl", "abbreviations": True, "reliability": 0.9},
        {"terms": "terms.jsonl", "attr": "LOWER", "labels": {"DRUG": "D"}},
        {"patterns": "patterns.jsonl"},
        {"pipeline": "model"},
        {"pipeline": "model", "spans_key": "sc", "complete": False},
        {"file": "file.jsonl"},
        {"answers": "asked.jsonl"},
        {"corpus": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_each_kind_of_source(folder, settings):
    sources = {"other" if "corpus" in settings else "s": settings, "again": {"patterns": "patterns.jsonl"}}
    given = stored(make_corpus(), "in.spacy")
    report = label("in.spacy", "out.spacy", sources=sources)
    assert report.sources[0].spans
    wanted = (folder / "out.spacy").read_bytes()
    docs = make_corpus()
    labeled = list(label_docs(docs, sources))
    assert stored(labeled) == wanted
    assert [doc.vocab for doc in labeled] == [NLP.vocab] * len(docs) and stored(docs) == given
    # A generator; Docs from the file; the vocabulary of another pipeline, or of several; declarations in a file.
    assert stored(label_docs((doc for doc in docs), sources)) == wanted
    assert stored(label_docs(read_docs("in.spacy", spacy.blank("en").vocab), sources, nlp=NLP)) == wanted
    others = make_corpus(spacy.blank("en"))
    mixed = [(docs, others)[i % 2][i] for i in range(len(docs))]
    assert stored(label_docs(mixed, sources)) == wanted
    Config({"sources": sources}).to_disk("sources.cfg")
    assert stored(label_docs(docs, "sources.cfg")) == wanted


def test_a_pipeline_in_memory_is_a_source(folder):
    nlp = make_pipeline()
    before, docs = nlp.config.to_str(), make_corpus()
    for settings in ({}, {"spans_key": "sc", "labels": {"DIS": "D"}}):
        by_path = label_docs(docs, {"s": {"pipeline": "model", **settings}})
        assert stored(label_docs(docs, {"s": {"pipeline": nlp, **settings}}, nlp=nlp)) == stored(by_path)
    assert nlp.config.to_str() == before
    # Its Docs may also come from it, while it labels them.
    labeled = label_docs(nlp.pipe(TEXTS), {"s": {"pipeline": nlp}}, nlp=nlp)
    assert [[*map(str, doc.spans["weak:s"])] for doc in labeled][:3] == [["aspirin"], ["aspirin"], []]
    stored(docs, "in.spacy")
    with pytest.raises(WeaknerError, match=r"WK331.*s\.pipeline"):
        label("in.spacy", "out.spacy", sources={"s": {"pipeline": nlp}})
    assert not (folder / "out.spacy").exists()


def test_whether_a_pipeline_in_memory_asks_a_language_model():
    nlp = spacy.blank("xx")
    assert not asks_language_model(nlp)
    Language.component("not_llm_test", func=lambda doc: doc)
    nlp.add_pipe("not_llm_test", name="llm")
    assert not asks_language_model(nlp)
    Language.component("llm_test", func=lambda doc: doc)
    nlp.add_pipe("llm_test", name="mine")
    assert asks_language_model(nlp)
    labeled = label_docs([nlp.make_doc("x")], {"s": {"pipeline": nlp}})
    assert [weak.is_complete(doc, "s") for doc in labeled] == [False]


@pytest.mark.parametrize("kind", ["terms", "patterns", "pipeline", "file", "answers", "corpus"])
def test_empty_and_short(folder, kind):
    places = {"pipeline": "model", "answers": "asked.jsonl", "corpus": True}
    sources = {"s": {kind: places.get(kind, f"{kind}.jsonl")}}
    assert list(label_docs([], sources)) == []
    docs = [Doc(NLP.vocab), Doc(NLP.vocab, words=["aspirin"])]
    labeled = list(label_docs(docs, sources))
    assert [len(doc) for doc in labeled] == [0, 1]
    found = [(0, 1, "DRUG")] if kind in ("terms", "patterns", "pipeline") else []
    assert [weak.group_entities(doc, "weak:s") for doc in labeled] == [[], found]


def test_docs_of_another_tokenizer(folder):
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=[*text], spaces=[False] * len(text))
    docs = [nlp("an aspirin"), nlp("x")]
    (doc, _) = label_docs(docs, {"s": {"terms": "terms.jsonl"}}, nlp=nlp)
    assert weak.group_entities(doc, "weak:s") == [(3, 10, "DRUG")] and nlp.pipe_names == []
    # The tokenizer of the language makes one token of the term, which these Docs do not have.
    (doc, _) = label_docs(docs, {"s": {"terms": "terms.jsonl"}})
    assert weak.group_entities(doc, "weak:s") == []


def test_docs_of_a_bare_vocabulary(folder):
    docs = [Doc(Vocab(), words=["x", "aspirin"])]
    (doc,) = label_docs(docs, {"s": {"terms": "terms.jsonl"}, "p": {"patterns": "patterns.jsonl"}})
    assert [weak.group_entities(doc, f"weak:{name}") for name in "sp"] == [[(1, 2, "DRUG")]] * 2
    with pytest.raises(WeaknerError, match="WK205"):
        list(label_docs(docs, {"s": {"terms": "terms.jsonl", "attr": "LOWER"}}))


def test_the_language_is_that_of_the_docs(folder):
    # German splits no such term at the apostrophe.
    (folder / "terms.jsonl").write_text('{"label": "X", "term": "geht\'s gut"}\n')
    (doc,) = label_docs([spacy.blank("de")("geht's gut")], {"s": {"terms": "terms.jsonl"}})
    assert [span.text for span in doc.spans["weak:s"]] == ["geht's gut"]


def test_errors_and_losses(folder):
    docs = make_corpus()
    with pytest.raises(WeaknerError, match="WK308"):
        list(label_docs(docs, {"s": {"terms": "nope.csv"}}))
    nlp = make_pipeline()
    nlp.remove_pipe("entity_ruler")
    nothing = [Doc(nlp.vocab, words=["nothing"])]
    for texts, key, code in ((docs, None, "WK306"), (docs, "nope", "WK306"), (nothing, "nope", "WK372")):
        with pytest.raises(WeaknerError, match=f"{code}.*'en_pipeline'"):
            list(label_docs(texts, {"s": {"pipeline": nlp, "spans_key": key}}))
    rows = [{"text": TEXTS[1], "ents": [[0, 3, "DRUG"], [12, 14, "DIS"]]}, {"id": "a.1", "text": "other", "ents": []}]
    (folder / "file.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match=r"WK910.*'s'.*misaligned: 1.*another text: 1"):
        labeled = list(label_docs(docs, {"s": {"file": "file.jsonl"}}))
    assert weak.group_entities(labeled[1], "weak:s") == [(2, 3, "DIS")]
    (folder / "file.jsonl").write_text('{"text": "unknown", "ents": []}\n')
    with pytest.warns(UserWarning, match="WK910"):
        list(label_docs(docs, {"s": {"file": "file.jsonl"}}))


@pytest.mark.parametrize("function", [lambda docs: list(label_docs(docs, {"s": {"terms": "t.csv"}})), aggregate_docs])
def test_what_is_not_a_list_of_docs(folder, function):
    (folder / "t.csv").write_text("label,term\nPER,Anna\n")
    for given in ("Anna", ["Anna"], make_corpus()[0]):
        with pytest.raises(WeaknerError, match=r"WK005.*docs.*list of Docs"):
            function(given)


def test_counts_of_several_blocks(folder, monkeypatch):
    monkeypatch.setattr("spacy_weakner.labeling.label.BATCH_SIZE", 2)
    rows = [{"text": text, "ents": [[0, 1, "X"]]} for text in TEXTS]
    (folder / "file.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match=r"WK910.*misaligned: 5; rows of the file: 6; documents with a row: 6\)"):
        assert len(list(label_docs(make_corpus(), {"s": {"file": "file.jsonl"}}))) == len(TEXTS)


def test_the_device_of_the_caller_stays(folder):
    ops, before = NumpyOps(), get_current_ops()
    set_current_ops(ops)
    try:
        for _ in label_docs(make_corpus(), {"s": {"pipeline": "model"}}):
            assert get_current_ops() is ops
    finally:
        set_current_ops(before)


def test_user_data_of_others(folder):
    """Components leave what cannot be copied, such as Spans."""
    docs = make_corpus()
    docs[0].user_data["theirs"] = [docs[0][:1]]
    sources = {"s": {"terms": "terms.jsonl"}}
    for labeled in (list(label_docs(docs, sources)), aggregate_docs(label_docs(docs, sources))):
        assert labeled[0].user_data["theirs"] == docs[0].user_data["theirs"]
        assert labeled[0] is not docs[0] and "weak:s" not in docs[0].spans


# Aggregation


@pytest.mark.parametrize(
    "method, settings",
    [
        ("union", {}),
        ("union", {"policy": "drop", "unmatched": "outside", "sources": ["bad", "good"]}),
        ("union", {"nested": True}),
        ("majority", {}),
        ("majority", {"soft": True, "unmatched": "outside"}),
        ("weighted", {"gold": 30}),
        ("label_model", {"min_probability": 0.99, "sources": ["good", "fair", "bad"]}),
        ("label_model", {"fit_on": 60, "soft": False}),
    ],
)
def test_each_method(folder, method, settings):
    docs = make_docs(40, 0)
    docs[3] = Doc(docs[0].vocab, words=["one"])
    docs[4] = Doc(docs[0].vocab)
    docs[5].set_ents([Span(docs[5], 0, 1, label="A")], default="outside")
    given = stored(docs, "in.spacy")
    on_disk, in_memory = dict(settings), dict(settings)
    for name in {"gold", "fit_on"} & settings.keys():
        in_memory[name] = make_docs(settings[name], 1)
        for doc in in_memory[name]:
            doc.set_ents([Span(doc, 0, 1, label="A")], default="outside")
        on_disk[name] = f"{name}.spacy"
        write_docs(on_disk[name], in_memory[name])
    assert aggregate("in.spacy", "out.spacy", method=method, **on_disk).entities
    found = aggregate_docs(docs, method, **in_memory)
    assert stored(found) == (folder / "out.spacy").read_bytes()
    assert stored(docs) == given and found[0].vocab is docs[0].vocab
    # Generators, and Docs that were combined before: gold and labels of sources are kept.
    again = {name: iter(value) if name in ("gold", "fit_on") else value for name, value in in_memory.items()}
    assert stored(aggregate_docs(iter(docs), method, **again)) == stored(found)
    assert stored(aggregate_docs(aggregate_docs(docs, "union"), method, **in_memory)) == stored(found)
    assert aggregate_docs([], method, **in_memory) == []


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"method": "vote"}, "WK005"),
        ({"method": "majority", "policy": "longest"}, "WK331"),
        ({"sources": ["nope"]}, "WK302.*list of Docs"),
        ({"method": "label_model", "fit_on": [Doc(NLP.vocab, words=["x"])]}, "WK301.*fit_on"),
        ({"method": "weighted", "gold": [Doc(NLP.vocab, words=["x"])]}, "WK332.*the gold"),
        ({"min_probability": 2}, "WK005"),
    ],
)
def test_invalid_settings(settings, code):
    with pytest.raises(WeaknerError, match=code):
        aggregate_docs(make_docs(5, 0), **settings)


def test_docs_without_weak_labels():
    with pytest.raises(WeaknerError, match=r"WK301.*list of Docs"):
        aggregate_docs([Doc(NLP.vocab, words=["x"])])


def test_from_texts_to_entities(folder):
    sources = {"list": {"terms": "terms.jsonl"}, "rules": {"patterns": "patterns.jsonl"}, "model": {"pipeline": NLP}}
    docs = aggregate_docs(label_docs(NLP.pipe(TEXTS), sources, nlp=NLP), "union")
    assert [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs][:2] == [
        [("heart failure", "DIS"), ("HF", "DIS"), ("aspirin", "DRUG")],
        [("aspirin", "DRUG"), ("HF", "DIS")],
    ]
    assert all(map(weak.is_weak, docs))
