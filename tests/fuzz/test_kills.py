import pytest

from .kills import compare, kill


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_killed_commands_go_on_to_the_same_bytes(tmp_path):
    assert kill(tmp_path / "kills", 60, 0, []) == 0


def test_differences_are_told():
    before = {"a": "1", "b": "1", "c/": ""}
    assert compare(before, dict(before)) == ""
    assert compare(before, {"a": "2", "c/": "", ".d": "1"}) == "left behind: .d; missing: b; different: a"
