import pytest

from .util import make_model


@pytest.fixture(scope="package")
def model(tiny_bert, tmp_path_factory):
    """A random one."""
    return make_model(tiny_bert, tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="package")
def to_here(tiny_bert, tmp_path_factory):
    """One that predicts "here" everywhere."""
    return make_model(tiny_bert, tmp_path_factory.mktemp("here"), ["here"])
