"""What the callback sets, and when."""

import os

import pytest
import spacy
import torch

from spacy_weakner._compat import SHAPE_CACHES
from spacy_weakner.errors import WeaknerError
from spacy_weakner.training.precision import PRECISIONS


@pytest.fixture(autouse=True)
def default_afterwards(monkeypatch):
    for name in SHAPE_CACHES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield
    torch.set_float32_matmul_precision("highest")


def pipeline(precision):
    callback = {"@callbacks": "spacy_weakner.MatmulPrecision.v1", "precision": precision}
    return spacy.blank("xx", config={"initialize": {"before_init": callback}})


@pytest.mark.parametrize("precision", PRECISIONS)
def test_training_sets_the_precision_and_loading_does_not(precision, tmp_path):
    torch.set_float32_matmul_precision("highest")
    nlp = pipeline(precision)
    assert torch.get_float32_matmul_precision() == "highest"
    nlp.initialize()
    assert torch.get_float32_matmul_precision() == precision
    torch.set_float32_matmul_precision("highest")
    nlp.to_disk(tmp_path)
    spacy.load(tmp_path)("a b")
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    "given, precision, expected",
    [(None, "medium", ["16"] * 2), ("7", "medium", ["7", "16"]), (None, "highest", [None] * 2)],
)
def test_scratch_memory_is_bounded(monkeypatch, given, precision, expected):
    if given:
        monkeypatch.setenv(SHAPE_CACHES[0], given)
    pipeline(precision).initialize()
    assert [os.environ.get(name) for name in SHAPE_CACHES] == expected


def test_without_one_torch_is_left_alone():
    torch.set_float32_matmul_precision("medium")
    pipeline(None).initialize()
    assert torch.get_float32_matmul_precision() == "medium" and not any(name in os.environ for name in SHAPE_CACHES)


def test_another_precision():
    with pytest.raises(WeaknerError, match=r"\[WK005\].*precision.*low.*highest, high, medium"):
        pipeline("low").initialize()
