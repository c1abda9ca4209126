"""Corpora for training."""

import json
from collections import Counter

import pytest
import spacy
from spacy.training import Corpus, Example
from spacy.util import registry

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import (
    doc_entities,
    get_confidence,
    is_weak,
    set_confidence,
    set_group,
    set_source,
    set_weak,
    weak_sources,
)
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.readers import DocBinCorpus, JsonlCorpus, StrongWeakCorpus, make_docbin_corpus, make_example

from ..util import make_doc

NLP = spacy.blank("xx")
ROWS = [
    {"tokens": ["New", "York"], "ents": [[0, 2, "LOC"]]},
    {"text": "I like Bob.", "ents": [[7, 10, "PER"]]},
    {"tokens": ["a"], "ents": None},
]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def reader(prefix, n):
    """A reader of n sentences."""
    return lambda nlp: (make_example(make_doc(nlp, f"{prefix}{i} x", [(0, 1, "X")])) for i in range(n))


def texts(examples):
    return [example.reference[0].text for example in examples]


# JSONL


def test_jsonl_rows_are_examples(rows):
    examples = list(JsonlCorpus(rows)(NLP))
    assert all(isinstance(example, Example) for example in examples)
    assert [doc_entities(eg.reference) for eg in examples] == [[(0, 2, "LOC")], [(2, 3, "PER")], []]
    assert [eg.reference.has_annotation("ENT_IOB") for eg in examples] == [True, True, False]


@pytest.mark.parametrize("limit, expected", [(0, 3), (1, 1), (2, 2), (9, 3)])
def test_limit(rows, limit, expected):
    assert len(list(JsonlCorpus(rows, limit=limit)(NLP))) == expected


@pytest.mark.parametrize(
    "text, message",
    [(None, r"\[WK100\].*a\.jsonl"), ("", r"\[WK101\].*a\.jsonl"), ('{"text": "a"}\n{no\n', r"a\.jsonl, line 2")],
)
def test_jsonl_that_cannot_be_read(tmp_path, text, message):
    if text is not None:
        (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(WeaknerError, match=message):
        list(JsonlCorpus(tmp_path / "a.jsonl")(NLP))


# .spacy


@pytest.fixture
def shards(tmp_path):
    """Two files, one of which has an empty Doc."""
    docs = [make_doc(NLP, text, [(0, 1, "X")]) for text in ("a b", "c", "d e f", "g")]
    for number, doc in enumerate(docs):
        set_group(doc, "weak:terms", [(0, 1, "X")])
        set_confidence(doc, number / 4)
    write_docs(tmp_path / "1.spacy", [docs[0], make_doc(NLP, ""), docs[1]])
    write_docs(tmp_path / "2.spacy", docs[2:])
    return tmp_path


@pytest.mark.parametrize("setting", [{}, {"gold_preproc": True}, {"max_length": 3}, {"limit": 1}, {"limit": 2}])
def test_spacy_files_are_read_as_spacy_reads_them(tmp_path, setting):
    docs = [make_doc(NLP, text, [(0, 1, "X")][: len(text)]) for text in ("a b", "", "c d e f", "g")]
    set_confidence(docs[2], 0.5)
    for i, token in enumerate(docs[2]):
        token.is_sent_start = i in (0, 2)
    for path in (tmp_path / "a.spacy", tmp_path / "b" / "a.spacy", tmp_path / ".hidden.spacy"):
        write_docs(path, docs)
    for path in (tmp_path / "a.spacy", tmp_path / "b"):
        found, expected = (list(kind(path, **setting)(NLP)) for kind in (DocBinCorpus, Corpus))
        assert [eg.to_dict() for eg in found] == [eg.to_dict() for eg in expected] and found
        assert [eg.reference.user_data for eg in found] == [eg.reference.user_data for eg in expected]
    assert len(list(DocBinCorpus(tmp_path)(NLP))) == 6


@pytest.mark.parametrize(
    "setting, splits", [({"gold_preproc": True}, True), ({"max_length": 4}, True), ({"max_length": 5}, False)]
)
def test_weak_docs_are_not_split(tmp_path, setting, splits):
    doc = make_doc(NLP, "c d e f", [(0, 1, "X")])
    doc[2].is_sent_start = True
    for name in ("gold", "weak"):
        set_weak(doc, name == "weak")
        write_docs(tmp_path / f"{name}.spacy", [doc])
    assert len(list(DocBinCorpus(tmp_path / "gold.spacy", **setting)(NLP))) == 1 + splits
    if splits:
        with pytest.raises(WeaknerError, match=rf"\[WK018\].*'{next(iter(setting))}'"):
            list(DocBinCorpus(tmp_path / "weak.spacy", **setting)(NLP))
        # Nor what sources say.
        set_weak(doc, False)
        set_source(doc, "terms", [(0, 1, "X")])
        write_docs(tmp_path / "gold.spacy", [doc])
        with pytest.raises(WeaknerError, match="WK018"):
            list(DocBinCorpus(tmp_path / "gold.spacy", sources=["terms"], **setting)(NLP))


def test_what_spacy_files_carry(shards):
    references = [example.reference for example in DocBinCorpus(shards)(NLP)]
    assert [get_confidence(doc) for doc in references] == [0.0, 0.25, 0.5, 0.75]
    assert [weak_sources(doc) for doc in references] == [["terms"]] * 4


@pytest.mark.parametrize("limit, expected", [(0, 4), (-1, 4), (1, 1), (3, 3), (9, 4)])
def test_a_limit_counts_all_files(shards, limit, expected):
    assert len(list(DocBinCorpus(shards, limit=limit)(NLP))) == expected


def test_spacy_files_that_are_not_there(tmp_path):
    for name in ("a.spacy", "folder"):
        with pytest.raises(WeaknerError, match=rf"\[WK100\].*{name}"):
            list(DocBinCorpus(tmp_path / name)(NLP))
    (tmp_path / "a.jsonl").touch()
    for path, code in ((tmp_path, "WK101"), (tmp_path / "a.jsonl", "WK106.*JsonlCorpus")):
        with pytest.raises(WeaknerError, match=code):
            list(DocBinCorpus(path)(NLP))
    with pytest.raises(ValueError, match="E913"):
        make_docbin_corpus(None)


# Examples


def test_the_predicted_doc_has_words_and_nothing_else():
    doc = NLP.make_doc("Bob, here  now")
    doc.ents = [spacy.tokens.Span(doc, 0, 1, "PER")]
    set_group(doc, "weak:terms", [(0, 1, "PER")])
    doc.cats["x"] = 1.0
    set_weak(doc)
    example = make_example(doc)
    assert example.reference is doc
    assert example.predicted.text == doc.text
    assert [t.text for t in example.predicted] == [t.text for t in doc]
    assert not example.predicted.has_annotation("ENT_IOB")
    assert not (example.predicted.spans or example.predicted.cats or example.predicted.user_data)


# Gold and weak together


def test_without_a_share_every_sentence_comes_once():
    examples = list(StrongWeakCorpus(reader("s", 2), reader("w", 3))(NLP))
    assert texts(examples) == ["s0", "s1", "w0", "w1", "w2"]


@pytest.mark.parametrize("share", [None, 0.5])
def test_weak_sentences_and_no_others_are_marked(share):
    examples = list(StrongWeakCorpus(reader("s", 20), reader("w", 20), share)(NLP))
    assert all(is_weak(eg.reference) == eg.reference[0].text.startswith("w") for eg in examples)
    assert any(is_weak(eg.reference) for eg in examples)
    assert not all(is_weak(eg.reference) for eg in examples)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8])
def test_the_share(share):
    found = texts(StrongWeakCorpus(reader("s", 10), reader("w", 3000), share)(NLP))[: 1 + int(1000 / (1 - share))]
    assert sum(text.startswith("s") for text in found) / len(found) == pytest.approx(share, abs=0.001)


def test_strong_sentences_come_equally_often():
    found = Counter(
        text for text in texts(StrongWeakCorpus(reader("s", 7), reader("w", 200), 0.5)(NLP)) if text[0] == "s"
    )
    assert len(found) == 7
    assert max(found.values()) - min(found.values()) <= 1


def test_the_seed_decides_the_mixture():
    runs = [texts(StrongWeakCorpus(reader("s", 5), reader("w", 50), 0.5, seed)(NLP)) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_the_weak_corpus_streams():
    def endless(nlp):
        while True:
            yield make_example(make_doc(nlp, "w x"))

    stream = iter(StrongWeakCorpus(reader("s", 2), endless, 0.5)(NLP))
    assert len([next(stream) for _ in range(100)]) == 100


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_a_share_that_cannot_be(share):
    with pytest.raises(WeaknerError, match=r"\[WK005\].*strong_share"):
        StrongWeakCorpus(reader("s", 1), reader("w", 1), share)


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("n_strong, n_weak, which", [(0, 1, "strong"), (1, 0, "weak"), (0, 0, "strong")])
def test_empty_corpora(share, n_strong, n_weak, which):
    with pytest.raises(WeaknerError, match=rf"WK101.*the {which} corpus"):
        list(StrongWeakCorpus(reader("s", n_strong), reader("w", n_weak), share)(NLP))


@pytest.mark.parametrize("which", ["strong", "weak"])
@pytest.mark.parametrize("setting", [{"max_length": 10}, {"gold_preproc": True}])
def test_settings_that_would_lose_weak_labels(tmp_path, which, setting):
    readers = {"strong": reader("s", 1), "weak": reader("w", 1), which: Corpus(tmp_path, **setting)}
    with pytest.raises(WeaknerError, match=rf"\[WK018\].*{which}.*'{next(iter(setting))}'"):
        StrongWeakCorpus(**readers)


def test_what_weak_sentences_carry_arrives_from_files(tmp_path):
    doc = make_doc(NLP, "a b", [(0, 1, "X")], missing=[1])
    set_confidence(doc, 0.25)
    set_group(doc, "weak:terms", [(0, 1, "X")])
    for name in ("strong", "weak"):
        write_docs(tmp_path / f"{name}.spacy", [doc])
    block = {
        "@readers": "spacy_weakner.Corpus.v1",
        "gold_preproc": False,
        "max_length": 0,
        "limit": 0,
        "augmenter": None,
    }
    config = {
        "@readers": "spacy_weakner.StrongWeakCorpus.v1",
        "strong": {**block, "path": str(tmp_path / "strong.spacy")},
        "weak": {**block, "path": str(tmp_path / "weak.spacy")},
    }
    _, weak = registry.resolve({"corpus": config})["corpus"](NLP)
    assert get_confidence(weak.reference) == 0.25
    assert weak_sources(weak.reference) == ["terms"]
    assert [token.ent_iob for token in weak.reference] == [3, 0]
    assert is_weak(weak.reference)


@pytest.mark.parametrize("n_weak", [1, 3, 10])
def test_no_gold_is_lost_where_weak_sentences_are_few(n_weak):
    found = texts(StrongWeakCorpus(reader("s", 20), reader("w", n_weak), 0.2)(NLP))
    assert sorted(found) == sorted([f"s{i}" for i in range(20)] + [f"w{i}" for i in range(n_weak)])


# Sources


def test_sources_reach_the_predicted_docs(tmp_path):
    doc = make_doc(NLP, "New York")
    for name in ("llm", "other"):
        set_group(doc, f"weak:{name}", [(0, 2, "LOC")])
    write_docs(tmp_path / "a.spacy", [doc])
    row = {"tokens": ["New", "York"], "weak_ents": [[0, 2, "LOC"]]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (source,) = weak_sources(next(iter(JsonlCorpus(tmp_path / "a.jsonl")(NLP))).reference)
    for path, make, name in (
        (tmp_path / "a.spacy", make_docbin_corpus, "llm"),
        (tmp_path / "a.jsonl", JsonlCorpus, source),
    ):
        (plain,), (voting,) = (list(make(path, sources=sources)(NLP)) for sources in ([], [name]))
        assert not weak_sources(plain.predicted) and weak_sources(voting.predicted) == [name]
        weak = StrongWeakCorpus(make(path, sources=[name]), make(path, sources=[name]))(NLP)
        assert [weak_sources(example.predicted) for example in weak] == [[name], [name]]
