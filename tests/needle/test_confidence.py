import json

import numpy
import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.needle.binning import Steps, bin_means
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


def test_save_and_load(tmp_path):
    path = tmp_path / "c.json"
    calibration = Calibration("log_probability", "token", STEPS, {"terms": 0.9}, {"none": 71.5}, 0.25)
    calibration.save(path)
    loaded = Calibration.load(path)
    assert loaded.rules == {"none": 71.5} and loaded.given == 0.25
    assert loaded.sources == {"terms": 0.9} and loaded.score == "log_probability" and loaded.unit == "token"
    assert [column.tolist() for column in loaded.steps] == [column.tolist() for column in STEPS]


@pytest.mark.parametrize(
    "change",
    [
        {"values": [0.1, 1.2, 0.3]},
        {"values": [0.1, 0.2]},
        {"values": [0.1, None, 0.2]},
        {"edges": [2.0, 1.0]},
        {"edges": "x"},
        {"counts": [[1]]},
        {"counts": [1, 2**64, 3]},
        {"counts": [1, -2, 3]},
        {"score": "other"},
        {"unit": 3},
        {"sources": {"terms": 2.0}},
        {"sources": 4},
        {"sources": {"terms": "x"}},
        {"rules": {"none": 101.0}},
        {"rules": {"none": None}},
        {"rules": 3},
        {"given": 2.0},
        {"given": "x"},
    ],
    ids=str,
)
def test_damaged_calibrations_are_refused(tmp_path, change):
    path = tmp_path / "c.json"
    Calibration("viterbi", "sentence", STEPS, {}).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(WeaknerError, match=r"WK340.*c\.json"):
        Calibration.load(path)


def test_missing_and_malformed_files(tmp_path):
    with pytest.raises(WeaknerError, match=r"WK100.*calibrate"):
        Calibration.load(tmp_path / "none.json")
    for text in ("", "[]", "{", '{"score": "viterbi"}', "3"):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(WeaknerError, match="WK340"):
            Calibration.load(tmp_path / "c.json")


def test_only_one_step():
    steps = Steps(numpy.zeros(0), numpy.array([0.4]), numpy.array([3]))
    assert steps(-5.0) == steps(5.0) == 0.4
