"""Short trainings of encoders."""

from importlib.util import find_spec

import pytest

from spacy_weakner.encoder_tools.adapt import adapt

needs_accelerate = pytest.mark.skipif(
    not (find_spec("transformers") and find_spec("accelerate")), reason="needs the extra 'transformers'"
)
SETTINGS = {"batch_size": 8, "learn_rate": 1e-2, "eval_share": 0.2, "lang": "xx"}


def run(text, output, model, **settings):
    """Adapt for some steps."""
    return adapt([text], output, model, **{"max_steps": 10, **SETTINGS, **settings})


def weights(path):
    """All weights of a model on disk."""
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def equal(a, b, tolerance=0.0):
    """Whether the weights of two models are equal."""
    return list(a) == list(b) and all(a[key].allclose(b[key], rtol=tolerance, atol=tolerance) for key in a)
