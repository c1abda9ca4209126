"""Which start belongs to which end: entities that overlap."""

import math

import numpy
import pytest
import spacy
from spacy.tokens import Doc
from spacy.util import fix_random_seed
from thinc.api import set_dropout_rate

from spacy_weakner.annotations.weak import doc_entities, group_entities, group_scores
from spacy_weakner.cofee.picking import SelfPicking
from spacy_weakner.errors import WeaknerError
from spacy_weakner.mrc_ner import matching
from spacy_weakner.mrc_ner.boundaries import Boundaries, boundary_loss, mark, read_boundaries
from spacy_weakner.mrc_ner.decoding import nearest_ends, pair_boundaries
from spacy_weakner.mrc_ner.matching import Pairs, build_matcher, candidate_pairs, learn_matches, match_odds
from spacy_weakner.mrc_ner.scoring import as_rows
from spacy_weakner.training.weights import LoadWeights
from spacy_weakner.ty import Tick

from ..span_ner.util import add_group
from ..util import (
    GOLD,
    TEXTS,
    all_zero,
    clear_gradients,
    entities_of,
    gradients,
    make_doc,
    make_example,
    make_examples,
    reload_bytes,
    reload_copy,
    reload_disk,
    same,
    train,
    weights,
)
from .util import QUERIES, give_scores, mrc_config, mrc_pipeline, table

GROUP = "pred:mrc_ner"
IDS = {"PER": 0, "LOC": 1}
# Nested, crossing, with a shared start, with a shared end, one inside another with nothing shared.
OVERLAPPING = [
    ("a b c d e f", [(0, 2, "LOC"), (0, 4, "PER"), (0, 6, "LOC"), (1, 3, "PER")]),
    ("g h i j k", [(0, 1, "PER"), (0, 3, "PER"), (2, 5, "PER"), (3, 5, "PER")]),
    ("l m n", []),
]


def matching_pipeline(examples=None, match_width=8, queries=None, **settings):
    """An initialised pipeline with a matcher that learns from the group "x"; the scores of boundaries are not all 0."""
    fix_random_seed(0)
    nlp = spacy.blank("xx")
    config = mrc_config(match_width=match_width, **{"spans_key": "x", "nested": True, **settings})
    ner = nlp.add_pipe("mrc_ner", config=config)
    ner.initialize(lambda: examples(nlp) if examples else overlapping(nlp), nlp=nlp, queries=queries or QUERIES)
    return nlp


def overlapping(nlp):
    examples = [make_example(nlp, text) for text, _ in OVERLAPPING]
    for example, (_, entities) in zip(examples, OVERLAPPING, strict=True):
        add_group(example.reference, "x", entities)
    return examples


def found_in(nlp, text):
    return group_entities(nlp(make_doc(nlp, text, annotated=False)), GROUP)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A pipeline that knows the overlapping entities by heart, on disk."""
    nlp = matching_pipeline(match_width=16)
    train(nlp, overlapping(nlp))
    folder = tmp_path_factory.mktemp("matching")
    nlp.to_disk(folder)
    return folder


@pytest.fixture
def trained(path):
    return spacy.load(path)


@pytest.fixture
def matcher():
    result = build_matcher(5)
    result.initialize(X=numpy.zeros((1, 4), dtype="float32"))
    random = numpy.random.RandomState(0)
    for node in result.walk():
        for name in node.param_names:
            node.set_param(name, random.normal(size=node.get_param(name).shape).astype("float32"))
    return result


@pytest.fixture
def case():
    """Vectors of three sentences, one of them empty, and pairs of them."""
    random = numpy.random.RandomState(1)
    vectors = [random.normal(size=(n, 2, 4)).astype("float32") for n in (3, 0, 5)]
    spans = [[(0, 1, 0), (0, 3, 0), (1, 3, 1)], [], [(0, 5, 1), (2, 5, 1), (2, 3, 1), (4, 5, 0)]]
    wanted = [[True, False, True], [], [True, False, False, True]]
    arrays = [numpy.asarray(own, dtype="int64").reshape(-1, 3) for own in spans]
    return vectors, [Pairs(a, numpy.asarray(b, dtype=bool)) for a, b in zip(arrays, wanted, strict=True)]


# The equation


def odds_by_hand(matcher, vectors, span):
    """m tanh(W [e_i; e_j] + b) + c, from the concatenation."""
    start, end, k = span
    (first, last), score = (layer.layers[1] for layer in matcher.layers[:2]), matcher.layers[2]
    both = numpy.concatenate([vectors[start, k], vectors[end - 1, k]]).astype("float64")
    w = numpy.concatenate([first.get_param("W"), last.get_param("W")], axis=1)
    hidden = numpy.tanh(w @ both + first.get_param("b") + last.get_param("b"))
    return float((score.get_param("W") @ hidden + score.get_param("b"))[0])


def loss_by_hand(matcher, vectors, pairs, weight):
    total = 0.0
    for own, to in zip(vectors, pairs, strict=True):
        for k in range(2):
            values = []
            for span, wanted in zip(to.spans.tolist(), to.wanted, strict=True):
                if span[2] == k:
                    p = 1 / (1 + math.exp(-odds_by_hand(matcher, own, span)))
                    values.append(-math.log(p if wanted else 1 - p))
            total += sum(values) / len(values) if values else 0.0
    return weight * total


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_scores_by_hand(monkeypatch, matcher, case, chunk):
    monkeypatch.setattr(matching, "CHUNK", chunk)
    vectors, pairs = case
    found = match_odds(matcher, vectors, [own.spans for own in pairs])
    assert [len(own) for own in found] == [3, 0, 4]
    for own, odds, to in zip(vectors, found, pairs, strict=True):
        assert odds.tolist() == pytest.approx([odds_by_hand(matcher, own, span) for span in to.spans.tolist()])


def learn(matcher, vectors, pairs, weight):
    return learn_matches(matcher, as_rows(numpy, vectors), [own.shape for own in vectors], pairs, weight)


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_the_loss_is_a_mean_over_the_pairs_of_a_question(matcher, case, weight):
    vectors, pairs = case
    loss, gradient = learn(matcher, vectors, pairs, weight)
    assert loss == pytest.approx(loss_by_hand(matcher, vectors, pairs, weight), rel=1e-5)
    assert type(loss) is float and gradient.shape == (16, 4) and gradient.dtype == "float32"


def test_gradients_by_finite_differences(matcher, case):
    vectors, pairs = case
    _, gradient = learn(matcher, vectors, pairs, 0.7)
    arrays = [(own, part) for own, part in zip(vectors, numpy.split(gradient.reshape(-1, 2, 4), [3, 3]), strict=True)]
    for node in matcher.walk():
        arrays += [(node.get_param(name), node.get_grad(name)) for name in node.param_names]
    assert len(arrays) == 3 + 6
    for values, found in arrays:
        for index in numpy.ndindex(*values.shape):
            sides = []
            for sign in (1, -1):
                values[index] += sign * 1e-2
                sides.append(loss_by_hand(matcher, vectors, pairs, 0.7))
                values[index] -= sign * 1e-2
            assert found[index] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=1e-2, abs=1e-3)


def test_tokens_that_stand_in_no_pair_have_no_gradient(matcher, case):
    vectors, pairs = case
    gradient = learn(matcher, vectors, pairs, 1.0)[1].reshape(-1, 2, 4)
    used = {(0, 0), (2, 0), (1, 1), (2, 1), (3, 1), (7, 1), (5, 1), (7, 0)}
    assert {(i, k) for i in range(8) for k in range(2) if gradient[i, k].any()} == used


def test_no_pairs(matcher, case):
    vectors, _ = case
    nothing = [Pairs(numpy.zeros((0, 3), dtype="int64"), numpy.zeros(0, dtype=bool))] * 3
    loss, gradient = learn(matcher, vectors, nothing, 1.0)
    assert loss == 0.0 and not gradient.any() and all_zero(gradients(matcher))
    assert [len(own) for own in match_odds(matcher, vectors, [own.spans for own in nothing])] == [0, 0, 0]


def test_dropout(matcher, case):
    vectors, pairs = case
    alike = {}
    for rate in (0.0, 0.5):
        set_dropout_rate(matcher, rate)
        losses = [learn(matcher, vectors, pairs, 1.0)[0] for _ in range(2)]
        alike[rate] = losses[0] == losses[1]
    assert alike == {0.0: True, 0.5: False}
    odds = [match_odds(matcher, vectors, [own.spans for own in pairs])[0].tolist() for _ in range(2)]
    assert odds[0] == odds[1]


# Which pairs are tried


def random_target(seed, n=8):
    random = numpy.random.RandomState(seed)
    spans = {tuple(sorted(random.choice(n + 1, 2, replace=False))) for _ in range(5)}
    entities = [(int(a), int(b), "PER" if random.rand() < 0.5 else "LOC") for a, b in sorted(spans)]
    known = numpy.repeat(random.rand(n, 1, 1) < 0.8, 2, axis=1).repeat(2, axis=2)
    ids = sorted(((a, b, IDS[label]) for a, b, label in entities), key=lambda own: own[2])
    target = Boundaries(mark(entities, n, IDS), known, numpy.asarray(ids).reshape(-1, 3))
    return target, random.rand(n, 2, 2) < 0.3


@pytest.mark.parametrize("max_width", [None, 3])
@pytest.mark.parametrize("seed", range(10))
def test_candidates_by_brute_force(max_width, seed):
    target, predicted = random_target(seed)
    if max_width is not None:
        kept = target.spans[:, 1] - target.spans[:, 0] <= max_width
        target = target._replace(spans=target.spans[kept])
    true, expected = set(map(tuple, target.spans.tolist())), {}
    for k in range(2):
        for i in range(8):
            for j in range(i, 8):
                starts = target.wanted[i, k, 0] or predicted[i, k, 0]
                ends = target.wanted[j, k, 1] or predicted[j, k, 1]
                near = max_width is None or j + 1 - i <= max_width
                if starts and ends and near and target.known[i, k, 0] and target.known[j, k, 1]:
                    expected[i, j + 1, k] = (i, j + 1, k) in true
    found = candidate_pairs(target, predicted, max_width)
    assert dict(zip(map(tuple, found.spans.tolist()), found.wanted.tolist(), strict=True)) == expected
    assert len(found.spans) == len(expected)


def test_without_spans_every_start_has_its_nearest_end():
    target = Boundaries(mark([(0, 3, "PER"), (1, 3, "PER")], 4, IDS), numpy.ones((4, 2, 2), dtype=bool))
    found = candidate_pairs(target, numpy.zeros_like(target.wanted), None)
    assert found.spans.tolist() == [[0, 3, 0], [1, 3, 0]] and found.wanted.all()


@pytest.mark.parametrize("n_tokens", [10, 100, 400])
@pytest.mark.parametrize("max_width", [None, 10])
def test_the_number_of_pairs_grows_with_that_of_tokens(n_tokens, max_width):
    everywhere = numpy.ones((n_tokens, 2, 2), dtype=bool)
    far = numpy.asarray([[0, n_tokens, 1]])
    found = candidate_pairs(Boundaries(mark([], n_tokens, IDS), everywhere, far), everywhere, max_width)
    assert len(found.spans) <= 2 * n_tokens * min(matching.N_ENDS, max_width or n_tokens) + 1
    assert [0, n_tokens, 1] in found.spans[found.wanted].tolist(), "entities always take part"
    assert len(numpy.unique(found.spans, axis=0)) == len(found.spans)


@pytest.mark.parametrize("n_ends", [1, 2, 3, 100])
@pytest.mark.parametrize("max_width", [None, 1, 4])
def test_several_ends_by_brute_force(n_ends, max_width):
    random = numpy.random.RandomState(0)
    for _ in range(30):
        boundaries = random.rand(9, 3, 2) < random.rand()
        expected = []
        for k in range(3):
            for i in numpy.flatnonzero(boundaries[:, k, 0]):
                ends = [j + 1 for j in range(i, 9) if boundaries[j, k, 1]][:n_ends]
                expected += [[i, end, k] for end in ends if max_width is None or end - i <= max_width]
        assert pair_boundaries(boundaries, max_width, n_ends).tolist() == expected
        by_label = [
            [start, end, k]
            for k in range(3)
            for start, end in nearest_ends(boundaries[:, k, 0], boundaries[:, k, 1], max_width, n_ends)
        ]
        assert by_label == expected


# In the component: training


def test_the_loss_is_that_of_boundaries_and_matches():
    nlp = matching_pipeline(match_weight=0.7)
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    vectors = ner.model.predict([eg.predicted for eg in examples])
    odds = ner._scores(vectors)
    targets = [read_boundaries(eg, IDS, spans_key="x", max_width=10) for eg in examples]
    pairs = [candidate_pairs(to, own > 0, 10) for to, own in zip(targets, odds, strict=True)]
    expected = sum(boundary_loss(own, to)[0] for own, to in zip(odds, targets, strict=True))
    expected += loss_by_hand(ner.model.get_ref("match"), vectors, pairs, 0.7)
    assert nlp.update(examples, sgd=False)["mrc_ner"] == pytest.approx(expected / 3, rel=1e-4)


def test_gradients_of_the_vectors_by_finite_differences():
    nlp = matching_pipeline(match_weight=1.0)
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    vectors = ner.model.predict([eg.predicted for eg in examples])
    _, found = ner.get_loss(examples, vectors)
    for index in [(0, 0, 0), (2, 0, 20), (4, 0, 47), (1, 1, 5)]:
        sides = []
        for sign in (1, -1):
            moved = [own.copy() for own in vectors]
            moved[1][index] += sign * 1e-2
            sides.append(len(vectors) * ner.get_loss(examples, moved)[0])
        assert found[1][index] == pytest.approx((sides[0] - sides[1]) / 2e-2, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("missing", [[1], [0, 1], [4, 5], [0, 1, 2, 3, 4, 5]])
def test_missing_tokens_have_exactly_no_gradient(missing):
    """Neither as starts or ends that are known from entities, nor as those that the model predicts."""
    nlp = matching_pipeline(make_examples, spans_key=None, threshold=0.0)
    ner = nlp.get_pipe("mrc_ner")
    example = make_example(nlp, "a b c d e f", [(2, 4, "LOC")] if 2 not in missing else [], missing=missing)
    vectors = ner.model.predict([example.predicted])
    _, (gradient,) = ner.get_loss([example], vectors)
    assert [i for i in range(6) if not gradient[i].any()] == missing


def test_a_doc_without_the_group_has_exactly_no_gradient():
    nlp = matching_pipeline(threshold=0.0)
    ner = nlp.get_pipe("mrc_ner")
    assert nlp.update([make_example(nlp, "a b c", [(0, 1, "PER")])], sgd=False) == {"mrc_ner": 0.0}
    assert all_zero(gradients(ner.model))
    nlp.update(overlapping(nlp), sgd=False)
    assert not all_zero(gradients(ner.model.get_ref("match")))


def test_a_split_batch_gives_the_same_gradients_and_empty_docs_none():
    nlp = matching_pipeline()
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    nlp.update([make_example(nlp, ""), *examples, make_example(nlp, "")], sgd=False)
    whole = gradients(ner.model)
    clear_gradients(ner.model)
    for example in examples[::-1]:
        nlp.update([example], sgd=False)
    assert not all_zero(gradients(ner.model.get_ref("match")))
    assert same(whole, gradients(ner.model), tolerance=1e-5)


@pytest.mark.parametrize("words", [["one"], [" "], ["\n", " "], []])
def test_small_docs_in_training(words):
    nlp = matching_pipeline(threshold=0.0)
    reference = add_group(Doc(nlp.vocab, words=words), "x", [(0, 1, "PER")] if words == ["one"] else [])
    example = spacy.training.Example(Doc(nlp.vocab, words=words), reference)
    assert (nlp.update([example], sgd=nlp.create_optimizer())["mrc_ner"] > 0) is bool(words)


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_the_matcher_learns_at_the_rate_of_the_head(rate):
    steps = {}
    for factor in (1.0, rate):
        nlp = matching_pipeline(head_learn_rate=factor)
        part = nlp.get_pipe("mrc_ner").model.get_ref("match")
        before, optimizer = weights(part), nlp.create_optimizer()
        optimizer.L2 = 0.0
        nlp.update(overlapping(nlp), sgd=optimizer)
        steps[factor] = [b - a for a, b in zip(before, weights(part), strict=True)]
    assert not all_zero(steps[1.0])
    assert same(steps[rate], [rate * step for step in steps[1.0]], tolerance=1e-5)


def test_the_weight_has_an_effect():
    found = {}
    for weight in (0.0, 0.1, 1.0):
        nlp = matching_pipeline(match_weight=weight)
        nlp.update(overlapping(nlp), sgd=False)
        found[weight] = gradients(nlp.get_pipe("mrc_ner").model.get_ref("match"))
    assert all_zero(found[0.0]) and not all_zero(found[1.0])
    assert same(found[0.1], [0.1 * own for own in found[1.0]], tolerance=1e-6)


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
        expected = brute_force(ner, ner.model.predict([doc])[0], odds, max_width)
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


def test_white_space_is_taken_off_and_the_better_match_counts():
    nlp = matching_pipeline()
    scores = table(3, PER=[(0, 2), (1, 2)])
    give_scores(nlp, scores)
    force_matches(nlp, 1.0)
    doc = nlp(Doc(nlp.vocab, words=["\n", "a", "b"]))
    assert doc_entities(doc) == group_entities(doc, GROUP) == [(1, 2, "PER")]


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
        nlp = LoadWeights(path)(matching_pipeline(match_width=16))
        assert [found_in(nlp, text) for text, _ in OVERLAPPING] == [own for _, own in OVERLAPPING]
        return
    with pytest.raises(WeaknerError, match="WK014"):
        LoadWeights(path)(matching_pipeline(match_width=0))
    with pytest.raises(WeaknerError, match=r"WK014.*only one of both has a layer 'match'"):
        LoadWeights(path, {"mrc_ner": ["encoder", "head"]})(matching_pipeline(match_width=0))
    nlp = LoadWeights(path, {"mrc_ner": ["encoder", "head"]})(matching_pipeline(match_width=16, n_types=3))
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


# Calibration, relabelling, types


def test_held_out_loss_is_that_of_boundaries_and_matches():
    nlp = matching_pipeline()
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    loss = ner.held_out_loss([*examples, make_example(nlp, "")])
    vectors = ner.model.predict([eg.predicted for eg in examples])
    for temperature in (1.0, 3.0):
        values = []
        for eg, own, odds in zip(examples, vectors, ner._scores(vectors), strict=True):
            to = read_boundaries(eg, IDS, spans_key="x", max_width=10)
            pairs = candidate_pairs(to, odds > 0, 10)
            said = [odds_by_hand(ner.model.get_ref("match"), own, span) for span in pairs.spans.tolist()]
            wanted = [*to.wanted.ravel(), *pairs.wanted]
            for x, true in zip([*odds.ravel().tolist(), *said], wanted, strict=True):
                values.append(math.log1p(math.exp((-x if true else x) / temperature)))
        assert loss(temperature) == pytest.approx(numpy.mean(values), rel=1e-5)


def test_temperature_changes_scores_but_not_entities(trained):
    text, entities = OVERLAPPING[1]
    before = group_scores(trained(make_doc(trained, text, annotated=False)), GROUP)
    trained.get_pipe("mrc_ner").set_temperature(10.0)
    doc = trained(make_doc(trained, text, annotated=False))
    assert group_entities(doc, GROUP) == entities and max(group_scores(doc, GROUP)) < min(before)


@pytest.mark.parametrize("union", [False, True])
def test_relabelled_sentences_tell_which_entities_they_have(union):
    target = read_boundaries(overlapping(spacy.blank("xx"))[1], IDS, spans_key="x")
    said = numpy.zeros((5, 2, 2))
    said[0, 1, 0] = said[1, 1, 1] = said[0, 0, 0] = said[0, 0, 1] = 0.9
    found = SelfPicking(union=union)(target, said)
    given = {(start, end, IDS[label]) for start, end, label in OVERLAPPING[1][1]} if union else set()
    assert set(map(tuple, found.spans.tolist())) == {(0, 2, 1), (0, 1, 0)} | given
    pairs = candidate_pairs(found, numpy.zeros_like(found.wanted), None)
    assert set(map(tuple, pairs.spans[pairs.wanted].tolist())) == {(0, 2, 1), (0, 1, 0)} | given


def test_the_teacher_picks_what_it_says_belongs_together():
    target = Boundaries(mark([], 4, IDS), numpy.ones((4, 2, 2), dtype=bool))
    said = numpy.zeros((4, 2, 2))
    said[[0, 1], 0, 0] = said[[1, 3], 0, 1] = 0.2

    def matches(spans):
        assert spans.tolist() == [[0, 2, 0], [0, 4, 0], [1, 2, 0], [1, 4, 0]]
        return numpy.asarray([0.05, 0.2, 0.1, 0.11])

    found = SelfPicking(0.1)(target, said, matches)
    assert found.spans.tolist() == [[0, 4, 0], [1, 4, 0]]
    assert (found.wanted == mark([(0, 4, "PER"), (1, 4, "PER")], 4, IDS)).all()


def test_it_goes_together_with_relabelling_and_types():
    pytest.importorskip("sklearn")
    typing = {"@misc": "spacy_weakner.FineTyping.v1", "n_types": 2, "gamma": 0.5}
    picking = {"@misc": "spacy_weakner.SelfPicking.v1", "threshold": 0.8, "union": True}
    nlp = matching_pipeline(match_width=16, n_types=2, typing=typing, relabel=picking)
    ner, examples = nlp.get_pipe("mrc_ner"), overlapping(nlp)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 0.02
    for step in range(90):
        ner.tick(Tick(step, 0, step / 90, 30))
        if step % 30 == 0:
            ner.renew(examples)
        losses = nlp.update(examples, sgd=optimizer, losses={})
    assert losses["mrc_ner"] < 0.3
    assert found_in(nlp, OVERLAPPING[0][0]) == OVERLAPPING[0][1]
