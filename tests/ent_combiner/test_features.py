"""What is known about candidates."""

import random

import numpy
import pytest

from spacy_weakner.ent_combiner.candidates import Sentences, read_candidates
from spacy_weakner.ent_combiner.features import (
    COLUMNS,
    RELATIONS,
    FeatureSpace,
    WordCounts,
    held_out_columns,
    logit,
    read_words,
    word_keys,
)

from .util import doc_of, random_entities

GROUPS = ["weak:a", "pred:b", "pred:c"]


def table(doc, scored=(False, True, False), counts=None):
    """Per candidate its features by their names."""
    space = FeatureSpace(GROUPS, scored, "XY")
    # Other Docs make no difference.
    docs = [doc_of("cd"), doc, doc_of("e", weak__a=[(0, 1, "X")])]
    candidates = read_candidates(Sentences.of(docs), GROUPS, "XY", 0)
    rows = space.matrix(read_words(candidates.sentences), candidates, counts or WordCounts())
    assert rows.shape == (len(candidates.spans), len(space.names))
    entities, of_doc = candidates.entities("XY"), candidates.sentences.doc_numbers[candidates.in_sentence]
    return {
        entity: dict(zip(space.names, row, strict=True))
        for i, entity, row in zip(of_doc, entities, rows.tolist(), strict=True)
        if i == 1
    }


def keys_of(doc, entities):
    """The keys of some candidates of label X or Y."""
    doc = doc_of([token.text for token in doc], weak__a=entities)
    candidates = read_candidates(Sentences.of([doc]), ["weak:a"], "XY", 0)
    return word_keys(read_words(candidates.sentences).hashes, candidates, "XY")


def slow_relation(a, b):
    """How a candidate lies to an entity with which it shares one end."""
    inside, other = set(range(*a[:2])), set(range(*b[:2]))
    if inside > other and a[2] == b[2]:
        return "wider_right" if a[0] == b[0] else "wider_left" if a[1] == b[1] else None
    if inside < other and a[2] == b[2]:
        return "short_right" if a[0] == b[0] else "short_left" if a[1] == b[1] else None
    return None


def test_relations_are_those_of_each_pair():
    rng = random.Random(0)
    for length in [6] * 20 + [12, 40]:
        said = random_entities(rng, length, length + 2)
        scored = [(*entity, round(rng.random(), 3)) for entity in random_entities(rng, length, length + 2)]
        for entity, row in table(doc_of(["a"] * length, weak__a=said, pred__b=scored)).items():
            for group, given in (("weak:a", [(*own, 1.0) for own in said]), ("pred:b", scored)):
                for relation in RELATIONS:
                    values = [own[3] for own in given if slow_relation(entity, own[:3]) == relation]
                    assert row[f"{group} {relation}"] == max(values, default=0.0)
                assert row[f"{group} exact"] == (entity in [own[:3] for own in given])
                assert row[f"{group} exact:{entity[2]}"] == row[f"{group} exact"]
            assert row["pred:c absent"] == 1.0 and row["weak:a absent"] == 0.0


def test_probabilities_and_those_that_are_not_given():
    doc = doc_of(list("ab"), weak__a=[(0, 1, "X"), (1, 2, "X")], pred__b=[(0, 1, "X", 0.8)])
    rows = table(doc)
    assert rows[0, 1, "X"]["pred:b logit"] == pytest.approx(numpy.log(4) / 2)
    assert rows[1, 2, "X"]["pred:b logit"] == pytest.approx(logit(numpy.zeros(1))[0] / 2)
    assert rows[0, 1, "X"]["named by 2"] == 1.0 and rows[1, 2, "X"]["named by 2"] == 0.0
    assert "weak:a logit" not in rows[0, 1, "X"]
    del doc.spans["pred:b"]
    assert table(doc)[0, 1, "X"]["pred:b logit"] == 0.0


def test_words_at_the_ends_and_around():
    doc = doc_of(["The", "NATO", "pact", "of", "1949", "."], weak__a=[(1, 5, "X"), (0, 1, "X"), (5, 6, "X")])
    rows = table(doc)
    whole = rows[1, 5, "X"]
    assert whole["first upper"] and whole["last digit"] and whole["previous stop"] and whole["next punct"]
    assert not whole["first title"]
    assert rows[0, 1, "X"]["previous none"] and rows[5, 6, "X"]["next none"] and not whole["next none"]
    assert table(doc_of([], weak__a=[])) == {}


def test_words_are_counted_in_lower_case_for_their_label():
    doc = doc_of(["in", "Water", "we"], weak__a=[(1, 2, "X"), (1, 2, "Y")])
    other = doc_of(["the", "water", "boils"])
    keys = numpy.concatenate([keys_of(other, [(1, 2, "X"), (1, 2, "Y")])] * 3)
    counts = WordCounts.of(keys, numpy.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    rows = table(doc, counts=counts)
    assert rows[1, 2, "X"]["text seen right"] == 1 / 2 and rows[1, 2, "X"]["text seen wrong"] == 2 / 3
    assert rows[1, 2, "Y"]["text seen right"] == 0.0 and rows[1, 2, "Y"]["text seen wrong"] == 3 / 4
    assert rows[1, 2, "X"]["last seen right"] == 1 / 2 and rows[1, 2, "X"]["next seen wrong"] == 0.0
    assert WordCounts(counts.rows).rows == counts.rows


def test_candidates_are_counted_in_other_folds():
    docs = [doc_of(["water", word], [], weak__a=[(0, 1, "X")]) for word in "abcd"]
    keys = [keys_of(doc, [(0, 1, "X")]) for doc in docs]
    right = [numpy.array([float(i == 0)]) for i in range(4)]
    found = held_out_columns(keys, right, numpy.array([0, 0, 1, 1]))
    seen = [dict(zip(COLUMNS, rows[0], strict=True)) for rows in found]
    assert [own["text seen right"] for own in seen] == [0.0, 0.0, 1 / 2, 1 / 2]
    assert [own["text seen wrong"] for own in seen] == [2 / 3, 2 / 3, 1 / 2, 1 / 2]
    assert not any(own["next seen wrong"] for own in seen)
