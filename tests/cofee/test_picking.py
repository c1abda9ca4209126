"""Self-picking: what a teacher says becomes what is learned."""

from itertools import pairwise

import numpy
import pytest
from spacy.util import registry

from spacy_weakner.cofee.picking import SelfPicking
from spacy_weakner.errors import WeaknerError
from spacy_weakner.losses import sigmoid
from spacy_weakner.mrc_ner.boundaries import Boundaries, mark
from spacy_weakner.training.clock import TrainingClock

from ..mrc_ner.util import QUERIES, mrc_pipeline
from ..util import (
    GOLD,
    SENTENCES,
    TEXTS,
    clear_gradients,
    entities_of,
    gradients,
    make_example,
    make_examples,
    same,
    train,
    weights,
)

IDS = {"PER": 0, "LOC": 1}
P_START = [0.9, 0.05, 0.3, 0.15, 0.02]
P_END = [0.05, 0.4, 0.2, 0.12, 0.55]
PICKING = {"@misc": "spacy_weakner.SelfPicking.v1", "threshold": 0.5}


def probabilities(**by_label):
    """Of two labels, five tokens."""
    found = numpy.zeros((5, 2, 2))
    for label, (starts, ends) in by_label.items():
        found[:, IDS[label], 0], found[:, IDS[label], 1] = starts, ends
    return found


def target_of(*entities, known=None):
    wanted = mark(entities, 5, IDS)
    spans = numpy.asarray([(start, end, IDS[label]) for start, end, label in entities], dtype="int64").reshape(-1, 3)
    return Boundaries(wanted, numpy.ones_like(wanted) if known is None else known, spans)


def empty_target(n_tokens):
    shape = (n_tokens, 2, 2)
    return Boundaries(numpy.zeros(shape, dtype=bool), numpy.ones(shape, dtype=bool), numpy.zeros((0, 3), dtype="int64"))


# Relabeling a sentence


@pytest.mark.parametrize(
    "threshold, picked",
    [
        # .36 + .165, against .495
        (0.1, [(0, 2, "LOC"), (2, 5, "LOC")]),
        (0.3, [(0, 5, "LOC")]),
        (0.5, [(0, 5, "LOC")]),
        (0.95, []),
    ],
)
@pytest.mark.parametrize("given", [[], [(1, 2, "PER")], [(0, 5, "LOC"), (4, 5, "PER")]])
def test_by_hand(threshold, picked, given):
    found = SelfPicking(threshold)(target_of(*given), probabilities(LOC=(P_START, P_END)))
    assert (found.wanted == mark(picked, 5, IDS)).all()


@pytest.mark.parametrize(
    "given, picked",
    [
        ([], [(0, 2, "LOC"), (2, 5, "LOC")]),
        ([(1, 2, "PER")], [(2, 5, "LOC")]),
        ([(4, 5, "PER")], [(0, 2, "LOC"), (2, 3, "LOC"), (3, 4, "LOC")]),
        ([(0, 5, "LOC"), (4, 5, "PER")], []),
    ],
)
def test_beside_given_ones_by_hand(given, picked):
    found = SelfPicking(union=True)(target_of(*given), probabilities(LOC=(P_START, P_END)))
    assert (found.wanted == mark([*given, *picked], 5, IDS)).all()


@pytest.mark.parametrize(
    "max_width, picked",
    [
        (None, [(0, 5, "LOC")]),
        (4, [(0, 2, "LOC"), (2, 5, "LOC")]),
        (2, [(0, 2, "LOC"), (2, 3, "LOC"), (3, 5, "LOC")]),
        (1, [(2, 3, "LOC"), (3, 4, "LOC")]),
    ],
)
def test_the_most_probable_by_hand(max_width, picked):
    # (0, 5): .63, (0, 2): .36, (2, 5): .21, (0, 3): .18, (0, 4): .108, (3, 5): .105, (2, 3): .06, (2, 4): .036 and
    # (3, 4): .018; so (0, 5) against (0, 2) and (2, 5), .57, or (0, 2), (2, 3) and (3, 5), .525.
    said = probabilities(LOC=(P_START, [0.05, 0.4, 0.2, 0.12, 0.7]))
    found = SelfPicking(max_width=max_width)(target_of(), said)
    assert (found.wanted == mark(picked, 5, IDS)).all()
    assert found.spans.tolist() == [[start, end, IDS[label]] for start, end, label in picked]


def test_neighbors_of_one_label_are_not_merged():
    said = probabilities(PER=([0.99, 0.01, 0.97, 0, 0], [0.98, 0.01, 0.99, 0, 0]))
    found = SelfPicking()(target_of(), said)
    assert (found.wanted == mark([(0, 1, "PER"), (2, 3, "PER")], 5, IDS)).all()


def test_the_most_probable_has_one_label():
    said = probabilities(LOC=([0.9, 0, 0, 0, 0], [0, 0.8, 0, 0, 0]), PER=([0, 0.7, 0, 0, 0], [0, 0.9, 0, 0, 0]))
    assert (SelfPicking()(target_of(), said).wanted == mark([(0, 2, "LOC")], 5, IDS)).all()


def test_what_is_given_stays_and_nothing_is_picked_over_it():
    said = probabilities(LOC=([0.9, 0, 0, 0.9, 0], [0, 0.8, 0, 0, 0.9]))
    given = [(0, 2, "PER"), (1, 2, "PER"), (0, 2, "LOC")]
    found = SelfPicking(union=True)(target_of(*given), said)
    assert (found.wanted == mark([*given, (3, 5, "LOC")], 5, IDS)).all()
    assert {(0, 2, IDS["PER"]), (0, 2, IDS["LOC"]), (3, 5, IDS["LOC"])} <= set(map(tuple, found.spans.tolist()))


@pytest.mark.parametrize("max_width, width", [(None, 30), (40, 30), (29, 1)])
def test_ends_that_are_far_away_are_tried(max_width, width):
    said = numpy.zeros((30, 2, 2))
    said[0, 0, 0], said[:, 0, 1], said[29, 0, 1] = 0.9, 0.15, 0.95
    found = SelfPicking(max_width=max_width)(empty_target(30), said)
    assert found.spans.tolist() == [[0, width, 0]]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6])
def test_the_most_probable_against_trying_all_choices(seed, threshold):
    said = numpy.random.RandomState(seed).rand(4, 2, 2)
    chances = {
        (start, end, k): said[start, k, 0] * said[end - 1, k, 1]
        for k in range(2)
        for start in range(4)
        for end in range(start + 1, 5)
        if min(said[start, k, 0], said[end - 1, k, 1]) > threshold
    }

    def best(position):
        """The largest sum of entities that begin at a token or after it."""
        if position == 4:
            return 0.0
        here = [chance + best(end) for (start, end, _), chance in chances.items() if start == position]
        return max([best(position + 1), *here])

    spans = SelfPicking(threshold)(empty_target(4), said).spans.tolist()
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert sum(chances[tuple(span)] for span in spans) == pytest.approx(best(0))


def test_the_probability_must_be_above_the_threshold():
    flat = probabilities(PER=([0.5] * 5, [0.5] * 5))
    assert not SelfPicking(0.5)(target_of(), flat).wanted.any()
    assert SelfPicking(0.49)(target_of(), flat).wanted[:, 0].all()


def test_labels_do_not_mix():
    # A start of one and an end of the other make no entity.
    found = SelfPicking()(target_of(), probabilities(PER=([1, 0, 0, 0, 0], [0] * 5), LOC=([0] * 5, [0, 1, 0, 0, 0])))
    assert not found.wanted.any()
    both = probabilities(PER=([1, 0, 0, 0, 0], [0, 1, 0, 0, 0]), LOC=([0, 0, 1, 0, 0], [0, 0, 1, 0, 0]))
    assert (SelfPicking()(target_of(), both).wanted == mark([(0, 2, "PER"), (2, 3, "LOC")], 5, IDS)).all()


@pytest.mark.parametrize("union", [False, True])
def test_what_is_known_stays_so_and_the_annotation_too(union):
    known = numpy.random.RandomState(0).rand(5, 2, 2) < 0.5
    target = target_of((1, 2, "PER"), known=known.copy())
    found = SelfPicking(union=union)(target, probabilities(LOC=(P_START, P_END)))
    assert (found.known == known).all() and (target.known == known).all()
    assert (target.wanted == mark([(1, 2, "PER")], 5, IDS)).all()


@pytest.mark.parametrize("union", [False, True])
def test_nothing_to_pick_from(union):
    found = SelfPicking(union=union)(empty_target(0), numpy.zeros((0, 2, 2)))
    assert found.wanted.shape == (0, 2, 2) and found.spans.shape == (0, 3)


@pytest.mark.parametrize("settings", [{"threshold": -0.1}, {"threshold": 1.1}, {"max_width": 0}])
def test_settings_out_of_range(settings):
    (name,) = settings
    with pytest.raises(WeaknerError, match=rf"\[WK005\].*{name}"):
        SelfPicking(**settings)


# In training


def run(nlp, examples, steps, interval=5, first=0, learn_rate=0.02):
    """Train with a clock, as spaCy does."""
    clock = TrainingClock(lambda nlp: examples, total_steps=100, interval=interval)
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = learn_rate
    for step in range(first, first + steps):
        clock(nlp, {"step": step, "epoch": 0})
        nlp.update(examples, sgd=optimizer)


def picking_pipeline(**settings):
    return mrc_pipeline(relabel={**PICKING, **settings.pop("picking", {})}, **settings)


def teacher_of(nlp):
    return nlp.get_pipe("mrc_ner")._teacher.model


def test_the_given_labels_are_learned_until_the_first_interval_is_over():
    nlp, plain = picking_pipeline(), mrc_pipeline()
    run(nlp, make_examples(nlp), steps=5)
    assert teacher_of(nlp) is None
    optimizer = plain.create_optimizer()
    optimizer.learn_rate = 0.02
    for _ in range(5):
        plain.update(make_examples(plain), sgd=optimizer)
    assert same(*(weights(x.get_pipe("mrc_ner").model) for x in (nlp, plain)))
    run(nlp, make_examples(nlp), steps=1, first=5)
    assert teacher_of(nlp) is not None


def test_the_model_that_training_begins_with_picks():
    nlp = picking_pipeline(picking={"at_start": True})
    ner = nlp.get_pipe("mrc_ner")
    with pytest.raises(ValueError, match=r"'mrc_ner'"):
        TrainingClock(total_steps=10)(nlp, {"step": 0, "epoch": 0})
        nlp.update(make_examples(nlp))
    before = weights(ner.model)
    run(nlp, make_examples(nlp), steps=1)
    assert same(weights(teacher_of(nlp)), before)
    (target, *_) = ner.targets_with_teacher(ner.read_batch(make_examples(nlp)))
    teacher = ner._teacher.model
    (doc, *_) = [eg.predicted for eg in make_examples(nlp)]
    (found, *_) = ner.map_outputs([doc], lambda _, vectors: ner._scores(vectors, teacher), None, model=teacher)
    assert (target.boundaries.wanted == ner.relabel(target.boundaries, sigmoid(found)).wanted).all()
    run(nlp, make_examples(nlp), steps=4, first=1)
    assert same(weights(teacher_of(nlp)), before)
    run(nlp, make_examples(nlp), steps=1, first=5)
    assert not same(weights(teacher_of(nlp)), before)


@registry.misc("tests.as_given.v1")
def make_as_given():
    return lambda target, probabilities: target


def test_a_function_is_a_relabeler():
    nlp, plain = (mrc_pipeline(relabel=relabel) for relabel in ({"@misc": "tests.as_given.v1"}, None))
    for own in (nlp, plain):
        run(own, make_examples(own), steps=7)
    assert teacher_of(nlp) is not None
    assert same(*(weights(own.get_pipe("mrc_ner").model) for own in (nlp, plain)))


@pytest.fixture
def expert():
    """A pipeline whose teacher knows all sentences by heart."""
    nlp = picking_pipeline()
    ner = nlp.get_pipe("mrc_ner")
    ner.needs_clock, relabel, ner.relabel = False, ner.relabel, None
    train(nlp, make_examples(nlp))
    ner.needs_clock, ner.relabel = True, relabel
    TrainingClock(lambda nlp: [], total_steps=10, interval=5)(nlp, {"step": 5, "epoch": 0})
    assert teacher_of(nlp) is not None
    return nlp


def silent_examples(nlp):
    """Sentences whose entities nobody has marked."""
    return [make_example(nlp, text) for text in TEXTS]


def test_targets_are_the_picks(expert):
    ner = expert.get_pipe("mrc_ner")
    for (_, gold), (target, _) in zip(
        SENTENCES, ner.targets_with_teacher(ner.read_batch(silent_examples(expert))), strict=True
    ):
        assert (target.wanted == mark(gold, len(target.wanted), IDS)).all() and target.known.all()


def test_targets_of_all_kinds_of_docs(expert):
    ner = expert.get_pipe("mrc_ner")
    examples = [
        make_example(expert, ""),
        make_example(expert, TEXTS[0], missing=[0]),
        make_example(expert, TEXTS[0], annotated=False),
        make_example(expert, "Bob"),
    ]
    targets = [to.boundaries for to in ner.targets_with_teacher(ner.read_batch(examples))]
    assert [target.wanted.shape[0] for target in targets] == [0, 5, 5, 1]
    # What is missing stays so.
    assert not targets[1].known[0].any() and targets[1].known[1:].all() and not targets[2].known.any()
    assert (targets[3].wanted == mark([(0, 1, "PER")], 1, IDS)).all()
    assert ner.update(examples)["mrc_ner"] > 0


def test_given_labels_are_replaced_or_joined(expert):
    ner = expert.get_pipe("mrc_ner")
    example = make_example(expert, TEXTS[0], [(1, 3, "PER")])
    for union, more in ((False, []), (True, [(1, 3, "PER")])):
        ner.relabel = SelfPicking(0.5, union)
        ((target, _),) = ner.targets_with_teacher(ner.read_batch([example]))
        assert (target.wanted == mark([*GOLD[0], *more], 5, IDS)).all()


def test_the_picks_are_really_learned(expert):
    """The model has forgotten everything, and the corpus says that there are no entities; the teacher knows better."""
    ner, fresh = expert.get_pipe("mrc_ner"), mrc_pipeline(seed=1).get_pipe("mrc_ner")
    ner.model.from_bytes(fresh.model.to_bytes())
    assert entities_of(expert, TEXTS) != GOLD
    train(expert, silent_examples(expert))
    assert entities_of(expert, TEXTS) == GOLD


def test_gradients_are_those_of_the_picked_labels(expert):
    ner = expert.get_pipe("mrc_ner")
    expert.update(silent_examples(expert), sgd=False)
    found = gradients(ner.model)
    clear_gradients(ner.model)
    ner.relabel = None
    expert.update(make_examples(expert), sgd=False)
    assert same(found, gradients(ner.model), tolerance=1e-6)


def test_a_question_that_is_asked_after_the_renewal(expert):
    ner = expert.get_pipe("mrc_ner")
    ner.set_question("PLACE", QUERIES["LOC"])
    # Self-picking would give the same entity only one of the two labels.
    ner.relabel = lambda target, probabilities: target._replace(wanted=probabilities > 0.5)
    ((target, _),) = ner.targets_with_teacher(ner.read_batch(silent_examples(expert)[:1]))
    ids = {**IDS, "PLACE": 2}
    assert (target.wanted == mark([*GOLD[0], (3, 5, "PLACE")], 5, ids)).all()


def test_more_is_found_than_the_gazetteer_has(tmp_path):
    """Some names are marked only once of three times; the model trained on that is unsure, and picks them."""
    texts = [("Anna went home", [(0, 1, "PER")]), ("Anna went home", []), ("Anna went home", [])]
    found = {}
    for name, interval in (("picked", 10), ("given", 90)):
        nlp = picking_pipeline(picking={"threshold": 0.1}, seed=0)
        run(nlp, [make_example(nlp, *case) for case in texts], steps=60, interval=interval)
        found[name] = entities_of(nlp, ["Anna went home"])
    assert found == {"picked": [[(0, 1, "PER")]], "given": [[]]}
