"""A short share of the fuzz suite; the whole of it is `python -m tests.fuzz.inputs`."""

import pytest

from .inputs import GOOD, damaged, fuzz, try_files
from .kinds import KINDS

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


@pytest.mark.parametrize("name", KINDS)
def test_valid_files_are_taken(name):
    outcome = try_files(KINDS[name], KINDS[name].files())
    assert outcome.result == GOOD, outcome.details


@pytest.mark.parametrize("name", KINDS)
def test_damage_ends_in_success_or_an_error_of_ours(name, tmp_path):
    results = fuzz(5, 0, name, tmp_path)
    assert not any(tmp_path.iterdir()), results


def test_the_same_seed_makes_the_same_damage():
    kind = KINDS["jsonl"]
    assert damaged(kind, 3) == damaged(kind, 3) != damaged(kind, 4)
