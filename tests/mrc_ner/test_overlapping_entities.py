"""Entities that overlap: found, scored, stored."""

import math

import numpy
import pytest
import spacy

from spacy_weakner.annotations.weak import doc_entities, group_entities, group_scores
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.weights import LoadWeights

from ..util import (
    GOLD,
    TEXTS,
    entities_of,
    make_doc,
    make_examples,
    reload_bytes,
    reload_copy,
    reload_disk,
    same,
    train,
    weights,
)
from .util import (
    GROUP,
    OVERLAPPING,
    QUERIES,
    found_in,
    give_scores,
    matching_pipeline,
    mrc_pipeline,
    odds_by_hand,
    overlapping,
    table,
    vectors_of,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A pipeline that knows the overlapping entities by heart, on disk."""
    nlp = matching_pipeline(match_width=32)
    train(nlp, overlapping(nlp), steps=120, learn_rate=0.01)
    folder = tmp_path_factory.mktemp("matching")
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def trained(path):
    return spacy.load(path)


# Overlapping entities


def test_overlapping_entities_of_one_label_are_learned(trained):
    for text, entities in OVERLAPPING:
        assert found_in(trained, text) == entities


def test_the_nearest_ends_get_them_wrong():
    nlp = matching_pipeline(match_width=0)
    assert train(nlp, overlapping(nlp))["mrc_ner"] < 0.01
    found = [found_in(nlp, text) for text, _ in OVERLAPPING]
    assert [own == entities for own, (_, entities) in zip(found, OVERLAPPING, strict=True)] == [False, False, True]
    # (0, 4) and (0, 6), whose starts have nearer ends, and (0, 3) in the second one.
    assert (0, 4, "PER") not in found[0] and (0, 6, "LOC") not in found[0] and (0, 3, "PER") not in found[1]


def test_entities_do_not_overlap_and_are_the_most_probable(trained):
    for text, entities in OVERLAPPING:
        doc = trained(make_doc(trained, text, annotated=False))
        scores = dict(zip(group_entities(doc, GROUP), group_scores(doc, GROUP), strict=True))
        kept = []
        for entity in sorted(entities, key=lambda own: -scores[own]):
            if all(entity[1] <= other[0] or other[1] <= entity[0] for other in kept):
                kept.append(entity)
        assert doc_entities(doc) == sorted(kept)
        assert [ent._.weakner_score for ent in doc.ents] == [scores[entity] for entity in sorted(kept)]


def brute_force(ner, vectors, odds, max_width):
    """All pairs above the threshold, one at a time."""
    found = {}
    matcher = ner.model.get_ref("match")

    def chance(x, temperature=1.0):
        return 1 / (1 + math.exp(-x / temperature))

    for k, label in enumerate(ner.labels):
        for i in range(len(odds)):
            for j in range(i, min(len(odds), i + (max_width or len(odds)))):
                three = (odds[i, k, 0], odds[j, k, 1], odds_by_hand(matcher, vectors, (i, j + 1, k)))
                if all(chance(x) > ner.threshold for x in three):
                    found[i, j + 1, label] = math.prod(chance(x, ner.temperature) for x in three)
    return found


@pytest.mark.parametrize("threshold", [0.5, 0.2])
@pytest.mark.parametrize("max_width", [None, 3])
def test_decoding_by_brute_force(threshold, max_width):
    nlp = matching_pipeline(threshold=threshold, max_width=None)
    ner = nlp.get_pipe("mrc_ner")
    ner.max_width = max_width
    ner.set_temperature(2.0)
    n_found = 0
    for seed in range(8):
        n = min(1 + 2 * seed, 11)
        odds = numpy.random.RandomState(seed).normal(size=(n, 2, 2)) * 2 + 1
        give_scores(nlp, odds)
        doc = make_doc(nlp, " ".join("abcdefghijk"[:n]), annotated=False)
        expected = brute_force(ner, vectors_of(ner, [doc])[0], odds, max_width)
        doc = nlp(doc)
        found = dict(zip(group_entities(doc, GROUP), group_scores(doc, GROUP), strict=True))
        assert found == pytest.approx(expected, rel=1e-4)
        n_found += len(found)
    assert n_found > 10


def force_matches(nlp, odds):
    """Make the matcher say this of all pairs."""
    for node in nlp.get_pipe("mrc_ner").model.get_ref("match").walk():
        for name in node.param_names:
            node.set_param(name, node.get_param(name) * 0)
    nlp.get_pipe("mrc_ner").model.get_ref("match").layers[2].set_param("b", numpy.asarray([odds], dtype="float32"))


@pytest.mark.parametrize("odds, expected", [(2.0, [(0, 1, "PER"), (0, 3, "PER"), (2, 3, "PER")]), (-2.0, [])])
def test_the_score_is_a_product_of_three(odds, expected):
    nlp = matching_pipeline()
    give_scores(nlp, table(4, PER=[(0, 1), (2, 3)]))
    force_matches(nlp, odds)
    doc = nlp(make_doc(nlp, "a b c d", annotated=False))
    assert group_entities(doc, GROUP) == expected
    p, match = 1 / (1 + math.exp(-9)), 1 / (1 + math.exp(-odds))
    assert group_scores(doc, GROUP) == pytest.approx([p * p * match] * len(expected))


def test_what_has_to_stay_is_not_touched(trained):
    text, entities = OVERLAPPING[0]
    doc = make_doc(trained, text, [(4, 5, "ORG")])
    assert group_entities(trained(doc), GROUP) == [own for own in entities if own[1] <= 4]


@pytest.mark.parametrize("texts", [[], [""], ["", "", " "], ["", "a", ""], ["\n\n", "a"]])
def test_small_docs(trained, texts):
    assert [doc_entities(doc) for doc in trained.pipe(texts)] == [[] for _ in texts]


def test_pipe_is_one_by_one():
    nlp = matching_pipeline(threshold=0.4)
    train(nlp, overlapping(nlp), steps=4)
    texts = [*(text for text, _ in OVERLAPPING), "", "a", "a d e f b c", " ", "c b a " * 9]

    def run(texts, size):
        return {
            doc.text: (group_entities(doc, GROUP), [round(score, 4) for score in group_scores(doc, GROUP)])
            for doc in nlp.pipe(texts, batch_size=size)
        }

    expected = {text: run([text], 1)[text] for text in texts}
    assert sum(len(found) for found, _ in expected.values()) > 5
    assert run(texts, 100) == run(texts[::-1], 3) == expected


def test_temperature_changes_scores_but_not_entities(trained):
    text, entities = OVERLAPPING[1]
    before = group_scores(trained(make_doc(trained, text, annotated=False)), GROUP)
    trained.get_pipe("mrc_ner").set_temperature(10.0)
    doc = trained(make_doc(trained, text, annotated=False))
    assert group_entities(doc, GROUP) == entities and max(group_scores(doc, GROUP)) < min(before)


# Storage, weights, settings


@pytest.mark.parametrize("reload", [reload_bytes, reload_disk, reload_copy])
def test_a_reloaded_pipeline_is_the_same(tmp_path, trained, reload):
    other = reload(trained, tmp_path)
    assert same(weights(other.get_pipe("mrc_ner").model), weights(trained.get_pipe("mrc_ner").model))
    for text, entities in OVERLAPPING:
        docs = [nlp(make_doc(nlp, text, annotated=False)) for nlp in (trained, other)]
        assert group_entities(docs[0], GROUP) == group_entities(docs[1], GROUP) == entities
        assert group_scores(docs[0], GROUP) == group_scores(docs[1], GROUP)


def test_without_a_matcher_all_is_as_it_was(tmp_path):
    """Nothing of it is stored, and what was stored without these settings is read."""
    plain = mrc_pipeline()
    model = plain.get_pipe("mrc_ner").model
    assert [own.name for own in model.layers] == ["conditioned_encoder", "dropout>>linear"]
    assert sorted(model.ref_names) == ["head", "tok2vec"]
    train(plain, make_examples(plain))
    plain.to_disk(tmp_path)
    text = (tmp_path / "config.cfg").read_text()
    kept = [line for line in text.splitlines() if line not in ("match_width = 0", "match_weight = 0.1")]
    assert len(kept) == len(text.splitlines()) - 2
    (tmp_path / "config.cfg").write_text("\n".join(kept))
    old = spacy.load(tmp_path)
    assert entities_of(old, TEXTS) == GOLD
    assert old.get_pipe("mrc_ner").model.to_bytes() == model.to_bytes()


def test_the_matcher_changes_no_boundary():
    plain, nlp = (matching_pipeline(match_width=width) for width in (0, 8))
    for part in ("tok2vec", "head"):
        both = [own.get_pipe("mrc_ner").model.get_ref(part) for own in (plain, nlp)]
        assert same(*map(weights, both))


@pytest.mark.parametrize("reference", [True, False])
def test_weights_of_a_stage_with_or_without_a_matcher(path, tmp_path, reference):
    if reference:
        nlp = LoadWeights(path)(matching_pipeline(match_width=32))
        assert [found_in(nlp, text) for text, _ in OVERLAPPING] == [own for _, own in OVERLAPPING]
        return
    with pytest.raises(WeaknerError, match="WK014"):
        LoadWeights(path)(matching_pipeline(match_width=0))
    with pytest.raises(WeaknerError, match=r"WK014.*only one of both has a layer 'match'"):
        LoadWeights(path, {"mrc_ner": ["encoder", "head"]})(matching_pipeline(match_width=0))
    nlp = LoadWeights(path, {"mrc_ner": ["encoder", "head"]})(matching_pipeline(match_width=32, n_types=3))
    for part in ("tok2vec", "head", "match"):
        both = [own.get_pipe("mrc_ner").model.get_ref(part) for own in (nlp, spacy.load(path))]
        assert same(*map(weights, both))


def test_a_width_below_nothing():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*match_width"):
        matching_pipeline(match_width=-1)


def test_a_label_that_is_asked_for_later(trained):
    ner = trained.get_pipe("mrc_ner")
    ner.ask("PERSON", QUERIES["PER"])
    for text, entities in OVERLAPPING:
        more = [(start, end, "PERSON") for start, end, label in entities if label == "PER"]
        assert found_in(trained, text) == sorted([*entities, *more])
