import numpy
import pytest

from spacy_weakner.aggregation.observations import (
    ABSTAIN,
    UNSEEN,
    SourceSurvey,
    abstain_on_unknown_labels,
    all_labels,
    observe,
    tally,
)
from spacy_weakner.corpus.tags import TagScheme

from .docs import make_doc, make_source

BIO = TagScheme("BIO", ["A", "B"])  # O, B-A, I-A, B-B, I-B


def test_three_ways_to_say_nothing():
    doc = make_doc("a b c d", {"list": [(0, 2, "A")], "model": [(2, 3, "B")], "idle": []}, complete=["model", "idle"])
    votes = observe(doc, ["list", "model", "idle", "absent"], BIO)
    assert votes.T.tolist() == [[1, 2, ABSTAIN, ABSTAIN], [0, 0, 3, 0], [0] * 4, [UNSEEN] * 4]
    # Other schemes.
    for scheme, expected in (("IO", [1, 1, ABSTAIN]), ("IOBES", [1, 3, ABSTAIN])):
        doc = make_doc("a b c", {"s": [(0, 2, "A")]})
        assert observe(doc, ["s"], TagScheme(scheme, ["A"]))[:, 0].tolist() == expected
    assert observe(make_doc("", {"s": []}), ["s", "t"], BIO).shape == (0, 2)


@pytest.mark.parametrize(
    "entities, expected",
    [
        # The longest of overlapping candidates.
        ([(0, 1, "B"), (0, 3, "A"), (2, 4, "B")], [1, 2, 2, ABSTAIN]),
        # An unclear span still takes its tokens.
        ([(0, 2, "A"), (0, 2, "B"), (1, 2, "A")], [UNSEEN, UNSEEN, ABSTAIN, ABSTAIN]),
    ],
)
def test_overlapping_candidates(entities, expected):
    assert observe(make_doc("a b c d", {"s": entities}), ["s"], BIO)[:, 0].tolist() == expected


def survey(docs, names=None):
    seen = SourceSurvey(names)
    for doc in docs:
        seen.add(doc)
    return seen.sources()


def test_survey():
    docs = [
        make_doc("a b", {"s": [(0, 1, "B")], "t": [(0, 1, "C")]}, complete=["t"], reliability={"s": 0.5}),
        make_doc("a b", {"s": [(0, 1, "A"), (1, 2, "A")]}, reliability={"s": 0.7}),
        make_doc("a b", {"s": []}),
    ]
    for given in (docs, docs[::-1]):
        s, t = survey(given)
        assert s == ("s", pytest.approx(0.6), False, ("A", "B"), 3, 3)
        assert t == ("t", None, True, ("C",), 1, 1)
    assert all_labels([s, t]) == ("A", "B", "C")
    assert [source.name for source in survey(docs, ["t", "s", "u"])] == ["t", "s"]
    assert [source.name for source in survey(docs, ["s"])] == ["s"]


def test_several_labels_of_a_span_mean_one_of_them():
    # Others single out B of the first span, nothing of the second; of the third they propose something else.
    several = [(0, 2, "A"), (0, 2, "B"), (3, 4, "A"), (3, 4, "B"), (5, 6, "A")]
    doc = make_doc("a b c d e f", {"list": several, "model": [(0, 2, "B")]}, complete=["list"])
    assert observe(doc, ["list", "model"], BIO)[:, 0].tolist() == [3, 4, 0, UNSEEN, 0, 1]


def test_votes_add_up():
    generator = numpy.random.default_rng(0)
    votes = generator.integers(UNSEEN, 5, (40, 3))
    weights = generator.normal(size=(3, 5))
    expected = numpy.zeros((40, 5))
    for token, of_token in enumerate(votes):
        for source, tag in enumerate(of_token):
            if tag >= 0:
                expected[token, tag] += weights[source, tag]
    assert tally(votes, weights) == pytest.approx(expected)
    assert tally(votes[:0], weights).shape == (0, 5)


def test_silence_about_what_a_source_never_says():
    sources = [make_source("m", "A"), make_source("n", "AB"), make_source("list", "B", complete=False)]
    votes = numpy.array([[0, 0, 3], [0, 1, ABSTAIN], [0, 3, ABSTAIN], [1, 0, 3], [0, UNSEEN, ABSTAIN]])
    expected = [[ABSTAIN, 0, 3], [0, 1, ABSTAIN], [ABSTAIN, 3, ABSTAIN], [1, 0, 3], [0, UNSEEN, ABSTAIN]]
    assert abstain_on_unknown_labels(votes, sources, BIO).tolist() == expected
