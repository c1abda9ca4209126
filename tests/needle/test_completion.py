import numpy
import pytest

from spacy_weakner.corpus.tags import MISSING, TagScheme
from spacy_weakner.needle.completion import complete, is_broken, matched, mix

BIO = TagScheme("BIO", ["A", "B"])


def ids(scheme, text):
    return numpy.asarray([MISSING if tag == "?" else scheme.index[tag] for tag in text.split()], dtype="int64")


@pytest.mark.parametrize(
    "weak, predicted, expected",
    [
        ("O B-A I-A O", "B-B O O B-A", "B-B B-A I-A B-A"),
        ("? B-A I-A ?", "B-B O O B-A", "B-B B-A I-A B-A"),
        ("O O", "O O", "O O"),
        ("B-A O", "B-A I-A", "B-A I-A"),
        ("O B-A", "B-B I-B", "B-B B-A"),
        ("B-A O", "B-B I-B", "B-A I-B"),
        ("", "", ""),
    ],
)
def test_equation_2(weak, predicted, expected):
    completed = complete(ids(BIO, weak), ids(BIO, predicted))
    assert completed.tolist() == ids(BIO, expected).tolist()


def test_soft_completion():
    weak = numpy.asarray([MISSING, 0, 1, 2])
    predicted = numpy.asarray([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [1.0, 0.0, 0.0]])
    soft = mix(weak, predicted, numpy.asarray([numpy.nan, 0.7, 1.0, 0.75]))
    expected = [[0.5, 0.3, 0.2], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75]]
    numpy.testing.assert_allclose(soft, expected)


def test_matched_tokens_are_those_of_weak_entities():
    assert matched(ids(BIO, "? O B-A I-A")).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    "scheme, tags, broken",
    [
        ("BIO", "B-A I-A O", False),
        ("BIO", "B-A I-B", True),
        ("BIO", "O I-A", True),
        ("BIO", "I-A", True),
        ("BIO", "", False),
        ("IOBES", "B-A E-A S-B", False),
        ("IOBES", "B-A", True),
        ("IOBES", "B-A S-A", True),
        ("IO", "I-A I-B O", False),
    ],
)
def test_broken_sequences(scheme, tags, broken):
    scheme = TagScheme(scheme, ["A", "B"])
    assert is_broken(ids(scheme, tags), scheme) == broken
