import json

import numpy
import pytest

from spacy_weakner.needle.binning import bin_means
from spacy_weakner.needle.confidence import Calibration, confidence, score_per_word
from spacy_weakner.ty import PathScore

from .test_binning import HITS, SCORES

STEPS = bin_means(SCORES, HITS, numpy.array([1.2, 2.2]))


@pytest.mark.parametrize(
    "score, share, expected",
    [(0, 0, 0.333333), (1.4, 0.25, 0.5), (2.2, 0.5, 0.916667), (3.6, 0.2, 0.866667), (9.9, 0.9, 0.95)],
)
def test_oracle(score, share, expected):
    assert confidence([1.0] * round(share * 20), 20, STEPS(score)) == pytest.approx(expected, abs=1e-5)


def test_the_cap_can_be_lifted():
    assert confidence([1.0] * 18, 20, 5 / 6, cap=1.0) == pytest.approx(0.983333, abs=1e-5)


def test_matched_tokens_count_as_their_sources_do():
    assert confidence([0.5, 0.9], 4, 0.2) == pytest.approx((0.5 + 0.9 + 0.2 + 0.2) / 4)


def test_score_per_word():
    path = PathScore(["O", "O", "B-A", "I-A"], 6.0, -2.0)
    assert score_per_word(path, "viterbi") == 1.5
    assert score_per_word(path, "log_probability") == -0.5
    calibration = Calibration("viterbi", "sentence", STEPS, {})
    assert calibration.predicted(path) == pytest.approx(1 / 3)


def test_it_can_be_stored_as_json():
    calibration = Calibration("log_probability", "token", STEPS, {"terms": 0.9}, {"none": 71.5}, 0.25)
    stored = json.loads(json.dumps(calibration.to_json()))
    assert stored.pop("steps") == {name: values.tolist() for name, values in STEPS._asdict().items()}
    assert Calibration(**stored, steps=STEPS) == calibration
