import random
from itertools import combinations

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.annotations import weak
from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.stages.aggregate import POLICIES, Candidate, aggregate, contested, resolve

NLP = spacy.blank("en")


def candidates(text):
    """ "0-2:A@s" is a candidate; "*7" gives its length in characters."""
    result = []
    for item in text.split():
        item, _, characters = item.partition("*")
        borders, _, rest = item.partition(":")
        label, _, source = rest.partition("@")
        start, end = (int(x) for x in borders.split("-"))
        result.append(Candidate(start, end, label, source, int(characters or 0)))
    return result


@pytest.mark.parametrize(
    "policy, text, expected",
    [
        ("longest", "", []),
        ("longest", "0-1:A@s 2-4:B@t", [(0, 1, "A"), (2, 4, "B")]),
        ("longest", "0-2:A@s*5 1-4:B@t*9", [(1, 4, "B")]),
        ("longest", "0-1:A@s*9 0-3:B@t*5", [(0, 1, "A")]),  # characters before tokens
        ("longest", "0-2:A@s*5 1-4:B@t*5", [(1, 4, "B")]),  # tokens
        ("longest", "1-3:A@s*5 0-2:B@t*5", [(0, 2, "B")]),  # leftmost
        ("longest", "0-2:A@t*5 0-2:B@s*5", [(0, 2, "B")]),  # source
        ("longest", "0-2:B@s*5 0-2:A@s*5", [(0, 2, "A")]),  # label
        ("longest", "0-2:A@s*5 1-4:B@s*9 3-6:C@s*8", [(1, 4, "B")]),
        ("longest", "0-2:A@s*8 1-4:B@s*7 3-6:C@s*6", [(0, 2, "A"), (3, 6, "C")]),
        ("priority", "0-1:A@s*1 0-3:B@t*9", [(0, 1, "A")]),
        ("priority", "0-1:A@t*1 0-3:B@t*9 5-6:C@s", [(0, 3, "B"), (5, 6, "C")]),
        ("majority", "0-1:A@t*1 0-1:A@u*1 0-3:B@s*9", [(0, 1, "A")]),
        ("majority", "0-1:A@t*1 0-1:A@t*1 0-3:B@s*9", [(0, 3, "B")]),  # one source has one vote
        ("majority", "0-1:A@t*1 0-3:B@s*9", [(0, 3, "B")]),
        ("drop", "0-2:A@s 1-3:B@t 5-6:C@s", [(5, 6, "C")]),
        ("drop", "0-2:A@s 0-2:B@t", []),
        ("drop", "0-2:A@s 0-2:A@t", [(0, 2, "A")]),
        ("drop", "0-2:A@s 1-3:A@s 3-4:B@s", [(3, 4, "B")]),
    ],
)
def test_policies(policy, text, expected):
    given = candidates(text)
    assert resolve(given, policy, ["s", "t", "u"]) == expected
    assert resolve(given[::-1], policy, ["s", "t", "u"]) == expected


def overlap(a, b):
    return a[0] < b[1] and b[0] < a[1]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("policy", POLICIES)
def test_result_has_no_overlaps_and_leaves_no_room(policy, seed):
    rng = random.Random(seed)
    given = []
    for _ in range(rng.randrange(12)):
        start = rng.randrange(8)
        end = start + rng.randrange(1, 4)
        given.append(Candidate(start, end, rng.choice("AB"), rng.choice("st"), end - start))
    result = resolve(given, policy, "st")
    entities = {c.entity for c in given}
    assert set(result) <= entities
    assert not any(overlap(a, b) for a, b in combinations(result, 2))
    naive = {a for a in entities if any(overlap(a, b) for b in entities - {a})}
    assert {c.entity for c in contested(given)} == naive
    if policy == "drop":
        assert set(result) == entities - naive
    else:
        assert all(any(overlap(a, b) for b in result) for a in entities - set(result))


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


def iob(doc):
    return "".join("-" if t.ent_iob == 0 else t.ent_iob_ for t in doc)


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
    assert weak.get_confidence(doc) is None
    assert {s: weak.group_entities(doc, f"weak:{s}") for s in "st"} == groups


def test_longest_counts_characters(tmp_path):
    doc = make_doc({"s": [(0, 1, "A"), (0, 3, "B")], "t": [(2, 4, "C")]}, words="a b c dddddd")
    _, (doc,) = run(tmp_path, [doc])
    assert weak.doc_entities(doc) == [(0, 1, "A"), (2, 4, "C")]


def test_report(tmp_path):
    docs = [
        make_doc({"s": [(0, 2, "A")], "t": [(0, 2, "A"), (1, 3, "B")]}, gold=[(0, 1, "G")]),
        make_doc({"s": []}),
        make_doc({}),
    ]
    report, result = run(tmp_path, docs, unmatched="outside")
    assert report == (3, 1, 1, 2, {"A": 1}, 18, 6, 0)
    assert [iob(doc) for doc in result] == ["BIOOOO", "OOOOOO", "------"]


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


def test_without_gold_there_is_no_gold_group(tmp_path):
    _, (doc,) = run(tmp_path, [make_doc({"s": [(0, 2, "A")]})])
    assert "gold" not in doc.spans


@pytest.mark.parametrize(
    "groups, settings, message",
    [
        ({}, {}, "WK301"),
        ({"s": []}, {"sources": ["s", "t"]}, r"WK302.*'t' \(sources there: s\)"),
        ({"s": []}, {"sources": []}, "WK005.*sources"),
        ({"s": []}, {"policy": "best"}, "WK005.*policy"),
        ({"s": []}, {"unmatched": "drop"}, "WK005.*unmatched"),
    ],
)
def test_errors(tmp_path, groups, settings, message):
    with pytest.raises(WeaknerError, match=message):
        run(tmp_path, [make_doc(groups)], **settings)
    assert not (tmp_path / "out.spacy").exists()


def test_candidate_without_its_source():
    assert Candidate(0, 2, "A", "s", 5).entity == (0, 2, "A")


def test_rerun_skips(tmp_path):
    report, _ = run(tmp_path, [make_doc({"s": [(0, 1, "A")]})])
    again = aggregate(tmp_path / "in.spacy", tmp_path / "out.spacy")
    assert again == report._replace(skipped=1)
    assert aggregate(tmp_path / "in.spacy", tmp_path / "out.spacy", unmatched="outside").skipped == 0
