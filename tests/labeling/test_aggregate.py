import random

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.aggregation import fitting
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.gold import Gold, find_gold
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.aggregate import aggregate

from ..util import iob

NLP = spacy.blank("xx")


def make_doc(weak_spans, gold=None, words="a b c d e f"):
    doc = Doc(NLP.vocab, words=words.split())
    for source, spans in weak_spans.items():
        weak.set_group(doc, f"weak:{source}", spans)
    if gold is not None:
        doc.set_ents([Span(doc, s, e, label=label) for s, e, label in gold], default="outside")
    return doc


def run(tmp_path, docs, **settings):
    write_docs(tmp_path / "in.spacy", docs)
    report = aggregate(tmp_path / "in.spacy", tmp_path / "out.spacy", **settings)
    return report, list(read_docs(tmp_path / "out.spacy", NLP.vocab))


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "BI-B--"),
        ({"unmatched": "outside"}, "BIOBOO"),
        ({"policy": "drop"}, "---B--"),
        ({"policy": "drop", "unmatched": "outside"}, "--OBOO"),
        ({"sources": ["t"], "unmatched": "outside"}, "OBOOOO"),
        ({"sources": ["t", "s"], "policy": "priority"}, "-B-B--"),
    ],
)
def test_missing_and_outside(tmp_path, settings, expected):
    groups = {"s": [(0, 2, "A"), (3, 4, "B")], "t": [(1, 2, "A")]}
    _, (doc,) = run(tmp_path, [make_doc(groups)], **settings)
    assert iob(doc) == expected
    assert weak.is_weak(doc)
    assert weak.get_confidence(doc) is None and "gold" not in doc.spans
    assert {s: weak.group_entities(doc, f"weak:{s}") for s in "st"} == groups


NESTED = {"s": [(0, 3, "A"), (1, 2, "B")], "t": [(1, 2, "C"), (1, 3, "C"), (5, 6, "C")]}


@pytest.mark.parametrize(
    "sources, expected",
    [
        (None, [(0, 3, "A"), (1, 2, "B"), (1, 3, "C"), (5, 6, "C")]),
        (["t", "s"], [(0, 3, "A"), (1, 2, "C"), (1, 3, "C"), (5, 6, "C")]),
        (["s"], [(0, 3, "A"), (1, 2, "B")]),
    ],
)
def test_overlapping_spans_and_their_gold(tmp_path, sources, expected):
    gold = [(0, 2, "A"), (0, 1, "B")]
    docs = [make_doc(NESTED, gold=[(0, 2, "A")]), make_doc({"s": [], "t": []}), make_doc({})]
    weak.set_group(docs[0], "sc", gold)
    report, docs = run(tmp_path, docs, nested=True, sources=sources)
    assert weak.group_entities(docs[0], "sc") == expected and report.nested == len(expected)
    assert "sc" in docs[1].spans and "sc" not in docs[2].spans
    assert sorted(weak.group_entities(docs[0], "gold")) == sorted(gold)
    assert [weak.doc_entities(doc) for doc in docs[1:]] == [[], []]
    # Once more: what is there now is no gold.
    write_docs(tmp_path / "in.spacy", docs)
    aggregate(tmp_path / "in.spacy", tmp_path / "out.spacy", nested=True)
    again = next(read_docs(tmp_path / "out.spacy", NLP.vocab))
    assert sorted(weak.group_entities(again, "gold")) == sorted(gold)


def test_gold_of_docs_that_no_source_has_labeled(tmp_path):
    docs = [make_doc({"s": []}), make_doc({})]
    for doc in docs:
        weak.set_group(doc, "sc", [(0, 2, "A"), (0, 1, "B")], ids={(0, 1, "B"): ["1"]})
    report, docs = run(tmp_path, docs, nested=True)
    assert report.gold == 2 and "sc" not in docs[1].spans
    for doc in docs:
        assert sorted(weak.group_entities(doc, "gold")) == [(0, 1, "B"), (0, 2, "A")]
        assert weak.group_ids(doc, "gold") == {(0, 1, "B"): ("1",)}


@pytest.mark.parametrize("settings", [{}, {"method": "majority"}])
def test_overlapping_spans_of_an_earlier_run(tmp_path, settings):
    docs = [make_doc(NESTED), make_doc(NESTED)]
    weak.set_group(docs[1], "sc", [(0, 2, "A")])
    # Gold stays where it is, however often: it is moved to make room only.
    _, docs = run(tmp_path, run(tmp_path, docs, **settings)[1], **settings)
    assert "sc" not in docs[0].spans and weak.group_entities(docs[1], "sc") == [(0, 2, "A")]
    for _ in range(2):
        _, docs = run(tmp_path, docs, nested=True)
        assert weak.group_entities(docs[1], "gold") == [(0, 2, "A")]
        assert all(weak.group_entities(doc, "sc") for doc in docs)
    _, docs = run(tmp_path, docs, **settings)
    assert ["sc" in doc.spans for doc in docs] == [False, False]
    assert weak.group_entities(docs[1], "gold") == [(0, 2, "A")]


def test_nested_is_for_the_union(tmp_path):
    with pytest.raises(WeaknerError, match=r"WK331.*nested"):
        run(tmp_path, [make_doc(NESTED)], nested=True, method="majority")


def test_gold_moves_once(tmp_path):
    gold = [(0, 1, "G")]
    _, docs = run(tmp_path, [make_doc({"s": [(0, 2, "A")]}, gold=gold), make_doc({"s": []}, gold=[])])
    assert [weak.group_entities(doc, "gold") for doc in docs] == [gold, []]
    assert all("gold" in doc.spans for doc in docs)
    weak.set_confidence(docs[0], 0.5)
    weak.set_tags(docs[0], ["B-A"] * 6)
    write_docs(tmp_path / "second.spacy", docs)
    report = aggregate(tmp_path / "second.spacy", tmp_path / "third.spacy", unmatched="outside")
    third = list(read_docs(tmp_path / "third.spacy", NLP.vocab))
    assert [weak.group_entities(doc, "gold") for doc in third] == [gold, []]
    assert [iob(doc) for doc in third] == ["BIOOOO", "OOOOOO"]
    assert report.gold == 0
    # What was estimated for the earlier labels is gone.
    assert weak.get_confidence(third[0]) is None
    assert weak.get_tags(third[0]) is None


@pytest.mark.parametrize(
    "groups, settings, message",
    [
        ({}, {}, "WK301"),
        ({"s": []}, {"sources": ["s", "t"]}, r"WK302.*'t' \(sources there: s\)"),
        ({"s": []}, {"sources": []}, "WK005.*sources"),
        ({"s": []}, {"policy": "best"}, "WK005.*policy"),
        ({"s": []}, {"method": "vote"}, r"WK005.*method"),
        ({"s": []}, {"method": "label_model"}, r"WK333.*sources s"),
        ({"s": []}, {"method": "majority", "policy": "drop"}, r"WK331.*policy = drop"),
        ({"s": []}, {"soft": True}, r"WK331.*soft.*majority, weighted, label_model"),
        ({"s": []}, {"unmatched": "confident"}, "WK331"),
        ({"s": []}, {"gold": "nosuch.spacy"}, "WK100.*nosuch"),
        ({"s": []}, {"method": "majority", "fit_on": "nosuch.spacy"}, "WK100.*nosuch"),
        ({"s": []}, {"method": "majority", "min_probability": 2.0}, r"WK005.*min_probability"),
        ({"s": []}, {"sources": ["s", "s"]}, r"WK005.*sources.*without duplicates"),
    ],
)
def test_errors(tmp_path, groups, settings, message):
    with pytest.raises(WeaknerError, match=message):
        run(tmp_path, [make_doc(groups)], **settings)
    assert not (tmp_path / "out.spacy").exists()


# Votes and the label model

COMPLETE = ("m", "n")


def vote_doc(groups, gold=None, words="a b c d e f", reliability=None):
    """A Doc whose sources "m" and "n" are complete."""
    doc = make_doc({}, gold, words)
    for source, spans in groups.items():
        weak.set_source(doc, source, spans, complete=source in COMPLETE, reliability=(reliability or {}).get(source))
    return doc


AGREED = {"s": [(0, 2, "A")], "m": [(0, 2, "A"), (4, 5, "B")], "n": [(0, 2, "A")]}


# Shows that "m" and "n" know both labels, so that they mean something by their silence about them.
BOTH = {name: [(0, 2, "A"), (4, 5, "B")] for name in COMPLETE}


def many(n=30, **settings):
    """Docs with different words."""
    return [vote_doc(AGREED, words=f"a{i} b c d e f", **settings) for i in range(n)]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "BIOO-O"),  # at token 4, "n" and "m" disagree
        ({"unmatched": "outside"}, "BIOOOO"),
        ({"unmatched": "missing"}, "BI----"),
        ({"min_probability": 0.5}, "BIOOOO"),
        ({"sources": ["m", "n"]}, "BIOOBO"),  # a tie: the first source decides
        ({"sources": ["s"]}, "BI----"),
    ],
)
def test_majority(tmp_path, settings, expected):
    if "sources" not in settings:
        settings = {**settings, "sources": ["n", "m", "s"]}
    docs = [vote_doc(AGREED), make_doc({}), vote_doc(BOTH)]
    report, (doc, empty, _) = run(tmp_path, docs, method="majority", **settings)
    assert iob(doc) == expected
    assert iob(empty) == "------"
    assert report.unlabeled == 1 + (settings["sources"] == ["s"])
    assert {s: weak.group_entities(doc, f"weak:{s}") for s in AGREED} == AGREED
    assert weak.is_weak(doc) and weak.get_confidence(doc) is None and weak.get_soft_labels(doc) is None


def test_soft_labels(tmp_path):
    docs = [vote_doc(AGREED), make_doc({}), vote_doc(BOTH)]
    _, (doc, empty, _) = run(tmp_path, docs, method="majority", soft=True)
    soft = weak.get_soft_labels(doc)
    assert soft.labels == ("O", "B-A", "I-A", "B-B", "I-B")
    assert soft.scheme == "BIO"
    assert soft.probabilities.dtype == "float32"
    assert soft.probabilities[4].tolist() == [0.5, 0, 0, 0.5, 0]
    assert weak.get_soft_labels(empty) is None


def test_label_model(tmp_path):
    report, docs = run(tmp_path, many(gold=[(4, 5, "B")]), method="label_model")
    assert all((0, 2, "A") in weak.doc_entities(doc) for doc in docs)
    probabilities = weak.get_soft_labels(docs[0]).probabilities
    assert probabilities.sum(1) == pytest.approx([1] * 6)
    assert probabilities[0].argmax() == 1
    assert report.gold == report.fitted_docs == 30
    assert report.iterations > 0
    accuracies = {(b.source, b.label): b for b in report.source_accuracies}
    assert accuracies["m", "A"].precision > 0.9
    assert accuracies["m", "A"].precision > accuracies["m", "B"].precision
    assert [weak.group_entities(doc, "gold") for doc in docs] == [[(4, 5, "B")]] * 30


@pytest.mark.parametrize("method", ["label_model", "majority"])
def test_gold_is_not_looked_at(tmp_path, method):
    _, with_gold = run(tmp_path, many(gold=[(4, 5, "B")]), method=method, soft=True)
    (tmp_path / "out.spacy").unlink()
    _, without = run(tmp_path, many(), method=method, soft=True)
    for a, b in zip(with_gold, without, strict=True):
        assert iob(a) == iob(b)
        assert (weak.get_soft_labels(a).probabilities == weak.get_soft_labels(b).probabilities).all()


def test_missing_tokens_of_gold_stay_missing(tmp_path):
    doc = make_doc({"s": [(3, 4, "A")]})
    doc.set_ents([Span(doc, 0, 2, label="A")], missing=[doc[3:5]], default="outside")
    _, (found,) = run(tmp_path, [doc])
    assert find_gold(found) == Gold(frozenset({(0, 2, "A")}), frozenset({3, 4}))


def test_outputs_are_checked_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "spacy_weakner.labeling.aggregate.learn", lambda *args, **settings: pytest.fail("learned first")
    )
    write_docs(tmp_path / "in.spacy", many(3))
    write_docs(tmp_path / "foreign.spacy", many(3))
    for output, message in (("foreign.spacy", "WK300"), ("out.txt", "WK305")):
        with pytest.raises(WeaknerError, match=message):
            aggregate(tmp_path / "in.spacy", tmp_path / output, method="label_model")


def test_finished_output_is_not_learned_for_again(tmp_path, monkeypatch):
    write_docs(tmp_path / "in.spacy", many(5))
    aggregate(tmp_path / "in.spacy", tmp_path / "out.spacy", method="label_model")
    monkeypatch.setattr(
        "spacy_weakner.labeling.aggregate.learn", lambda *args, **settings: pytest.fail("learned again")
    )
    again = aggregate(tmp_path / "in.spacy", tmp_path / "out.spacy", method="label_model")
    assert (again.skipped, again.source_accuracies) == (1, ())


def test_weights_from_gold(tmp_path):
    # "m" alone is right about B, which two others deny.
    groups = {"m": [(4, 5, "B")], "n": [(2, 3, "A")], "o": [(2, 3, "A")]}
    docs = [*(vote_doc(groups, gold=[(4, 5, "B")]) for _ in range(20)), vote_doc(groups)]
    write_docs(tmp_path / "gold.spacy", docs)
    report, docs = run(tmp_path, docs, method="weighted", gold=tmp_path / "gold.spacy")
    assert weak.doc_entities(docs[-1]) == [(4, 5, "B")]
    assert report.fitted_docs == 20
    precision = {(b.source, b.label): b.precision for b in report.source_accuracies}
    assert precision["m", "B"] > 0.9 and precision["n", "A"] < 0.1


def test_weights_from_a_gold_corpus_or_declared(tmp_path):
    groups = {"s": [(4, 5, "B")], "t": [(4, 5, "A")]}
    write_docs(tmp_path / "gold.spacy", [vote_doc(groups, gold=[(4, 5, "B")])] * 9)
    _, (doc,) = run(tmp_path, [vote_doc(groups, gold=[(4, 5, "A")])], method="weighted", gold=tmp_path / "gold.spacy")
    assert weak.doc_entities(doc) == [(4, 5, "B")]
    (tmp_path / "out.spacy").unlink()
    _, (doc,) = run(tmp_path, [vote_doc(groups, reliability={"s": 0.6, "t": 0.8})], method="weighted")
    assert weak.doc_entities(doc) == [(4, 5, "A")]
    (tmp_path / "out.spacy").unlink()
    with pytest.raises(WeaknerError, match=r"WK330.*'s'"):
        run(tmp_path, [vote_doc(groups)], method="weighted")
    write_docs(tmp_path / "gold.spacy", [vote_doc({}, gold=[])])
    with pytest.raises(WeaknerError, match="WK332"):
        run(tmp_path, [vote_doc(groups)], method="weighted", gold=tmp_path / "gold.spacy")
    assert not (tmp_path / "out.spacy").exists()


def write_shards(folder, docs, sizes):
    for i, size in enumerate(sizes):
        write_docs(folder / f"{i}.spacy", docs[:size])
        docs = docs[size:]


def random_docs(n=60):
    rng = random.Random(0)
    docs = []
    for i in range(n):
        spans = [[(2 * j, 2 * j + rng.choice([1, 2]), rng.choice("AAAB"))] for j in range(3)]
        groups = {name: [e for (e,) in spans if rng.random() < 0.7] for name in "smn"}
        docs.append(vote_doc(groups, words=f"a{i % 50} b c d e f"))
    return docs


def test_fit_does_not_depend_on_shards_or_order(tmp_path, monkeypatch):
    docs = random_docs()
    write_shards(tmp_path / "one", docs, [60])
    write_shards(tmp_path / "three", docs[::-1], [7, 20, 33])
    monkeypatch.setattr(fitting, "MAX_DOCS", 30)
    reports = [aggregate(tmp_path / name, tmp_path / f"{name}-out", method="label_model") for name in ("one", "three")]
    one, three = (list(read_docs(tmp_path / f"{name}-out", NLP.vocab)) for name in ("one", "three"))
    assert reports[0] == reports[1]
    assert reports[0].fitted_docs == 30
    for a, b in zip(one, three[::-1], strict=True):
        assert a.text == b.text
        assert weak.get_soft_labels(a).probabilities == pytest.approx(weak.get_soft_labels(b).probabilities, abs=1e-6)


def test_a_change_to_one_shard_changes_what_was_learned_from_all(tmp_path):
    write_shards(tmp_path / "in", random_docs(), [20, 20, 20])
    aggregate(tmp_path / "in", tmp_path / "out", method="label_model")
    (tmp_path / "out" / "1.spacy").unlink()  # as if killed before it was written
    assert aggregate(tmp_path / "in", tmp_path / "out", method="label_model").skipped == 2
    write_docs(tmp_path / "in" / "2.spacy", random_docs(5))
    assert aggregate(tmp_path / "in", tmp_path / "out", method="label_model").skipped == 0


def test_entities_do_not_depend_on_the_batch(tmp_path, monkeypatch):
    docs = random_docs(20)
    _, together = run(tmp_path, docs, method="label_model")
    monkeypatch.setattr("spacy_weakner.labeling.aggregate.BATCH_SIZE", 3)
    (tmp_path / "out.spacy").unlink()
    _, apart = run(tmp_path, docs, method="label_model")
    assert [weak.doc_entities(doc) for doc in together] == [weak.doc_entities(doc) for doc in apart]
