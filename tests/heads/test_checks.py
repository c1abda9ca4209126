"""The checks that other packages run on their heads, on all of ours."""

import pytest

from spacy_weakner.testing import heads
from spacy_weakner.testing.heads import CHECKS, Head

from ..util import ENTITY_HEADS, SEED, head_config
from .util import TALKATIVE, needs

FORMS = {
    f"{name}{form}": Head(name, head_config(name, **settings), needs(name), seed=SEED)
    for name in ENTITY_HEADS
    for form, settings in (("", {}), ("-candidates", TALKATIVE[name]))
    if settings or not form
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_our_heads(form, check):
    check(FORMS[form])


def test_all_checks_are_listed():
    names = [name for name, value in vars(heads).items() if callable(value) and value.__module__ == heads.__name__]
    assert [check.__name__ for check in CHECKS] == [n for n in names if not n.startswith("_") and n != "Head"]


def test_a_head_that_learns_nothing_fails():
    with pytest.raises(AssertionError):
        heads.learns_the_sentences(Head("crf_ner", head_config("crf_ner"), steps=0, seed=SEED))
