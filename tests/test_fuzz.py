"""A short share of damaged inputs and of kills; the whole of them is `python -m tools.fuzz.inputs` and `...kills`."""

import pytest

from tools.fuzz.inputs import GOOD, fuzz, try_files
from tools.fuzz.kills import kill
from tools.fuzz.kinds import KINDS

pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


@pytest.mark.parametrize("name", KINDS)
def test_damage_ends_in_success_or_an_error_of_ours(name, tmp_path):
    outcome = try_files(KINDS[name], KINDS[name].files())
    assert outcome.result == GOOD, outcome.details
    results = fuzz(5, 0, name, tmp_path)
    assert not any(tmp_path.iterdir()), results


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_killed_commands_go_on_to_the_same_bytes(tmp_path):
    assert kill(tmp_path / "kills", 60, 0, []) == 0
