"""Gold and text in the same case."""

import pytest

from .conftest import GOLD, found

TEXT = [f"Anna took Aspirin {i}" for i in range(100)]


@pytest.mark.parametrize("change, name", [(str.lower, "in lower case"), (str.upper, "in capitals")])
def test_another_case_is_one_finding(check, change, name):
    (text,) = [
        text for text in found(check(gold=GOLD, text=[*map(change, TEXT)]), "warning") if "files differ in case" in text
    ]
    assert f"Texts {name}: 0 % of --gold" in text and "100 % of --text" in text


def test_what_has_the_same_case_or_none(check):
    for text in (TEXT, [*TEXT, *map(str.lower, TEXT[:20])], ["病人 服用 药物"] * 100):
        assert not any("files differ in case" in line for line in found(check(gold=GOLD, text=text), "warning"))
