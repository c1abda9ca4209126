import pytest

from .util import token_pipeline


@pytest.fixture
def nlp():
    return token_pipeline()
