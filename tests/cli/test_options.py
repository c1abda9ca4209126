import inspect
import re
from dataclasses import dataclass
from typing import Annotated, Any, List, Optional, Sequence, Tuple, Union

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from spacy_weakner.about import __title__, __version__
from spacy_weakner.cli._command import command
from spacy_weakner.cli._util import new_app
from spacy_weakner.cli.app import COMMANDS, app


@dataclass
class Settings:
    """Settings of it.

    size (int): How large. None of them counts.
    left_out (str): Not an option.
    """

    size: int = 2
    left_out: str = ""


def work(
    first: Union[str, int],
    others: Sequence[str],
    *,
    needed: float,
    words: Sequence[str] = (),
    pair: Tuple[int, int] = (1, -1),
    limit: Optional[int] = None,
    off: bool = False,
    on: bool = True,
    gpu_id: int = -1,
    renamed: Optional[str] = None,
    call: Any = None,
    progress: bool = False,
    **settings: Any,
) -> dict:
    """Do `something` with it. This is the formula:

        a = b

    first (Union[str, int]): The first one. It is
        long.
    others (Sequence[str]): Others.
    needed (float): Must be given.
    words (Sequence[str]): Words.
    pair (Tuple[int, int]): A pair.
    limit (Optional[int]): At most so many; None: all 0.5.
    off (bool): Off.
    on (bool): On.
    gpu_id: See `elsewhere`.
    renamed (Optional[str]): Another name.
    **settings (Any): See `Settings`.
    RETURNS (dict): All.
    """
    return {key: value for key, value in locals().items() if key != "settings"} | settings


@pytest.fixture
def made():
    shown = []
    one = new_app()

    def before(given):
        given.needed += 1

    @command(
        one,
        work,
        settings={Settings: ["size"]},
        before=before,
        renamed=Annotated[Optional[str], typer.Option("--name")],
        report=Annotated[bool, typer.Option("--report", help="Of the command alone")],
        call=print,
    )
    def show(result: dict, given: Any) -> None:
        shown.append((result, given))

    return one, shown


def test_a_command_is_made_of_signature_and_docstring(made):
    one, _ = made
    found = {param.name: param for param in get_command(one).params}
    assert [name for name, param in found.items() if param.param_type_name == "argument"] == ["first", "others"]
    help_ = {name: param.help for name, param in found.items()}
    assert help_["first"] == "The first one. It is long" and help_["limit"] == "At most so many (default: all 0.5)"
    assert help_["size"] == "How large. None of them counts"
    assert help_["words"] == "Words (repeatable)" and help_["report"] == "Of the command alone"
    assert help_["gpu_id"].startswith("GPU")
    assert found["needed"].required and not {"progress", "settings", "left_out", "call"} & {*found}
    assert found["off"].opts == ["--off"] and not found["off"].secondary_opts
    assert found["on"].secondary_opts == ["--no-on"] and found["renamed"].opts == ["--name"]
    assert get_command(one).help == "Do something with it."


def test_the_function_gets_what_was_given(made):
    one, shown = made
    words = ["a", "b", "c", "--needed", "0.5", "--words", "x", "--words", "y", "--no-on", "--size", "3", "--report"]
    assert CliRunner().invoke(one, [*words, "--name", "n", "--pair", "2", "3"]).exit_code == 0
    result, given = shown.pop()
    expected = {"first": "a", "others": ["b", "c"], "needed": 1.5, "words": ["x", "y"], "pair": (2, 3), "limit": None}
    more = {"off": False, "on": False, "gpu_id": -1, "renamed": "n", "call": print, "progress": True, "size": 3}
    assert result == {**expected, **more} and given.report and given.size == 3
    assert CliRunner().invoke(one, ["a", "b", "--needed", "1"]).exit_code == 0
    assert shown[0][0]["words"] == () and shown[0][0]["size"] == 2
    assert CliRunner().invoke(one, ["a", "b"]).exit_code == 2


def every(group, before=""):
    for name in group.list_commands(None):
        found = group.get_command(None, name)
        yield from every(found, f"{before}{name} ") if hasattr(found, "list_commands") else [(f"{before}{name}", found)]


@pytest.mark.parametrize("group", [[], ["relabel"], ["encoder"], ["init"]])
def test_help_of_groups_has_whole_sentences(group):
    result = CliRunner().invoke(app, [*group, "--help"])
    assert "..." not in result.output.partition("Commands:")[2]
    assert ("Meng et al. 2021" in result.output) == (group == ["relabel"])


def test_basics_of_a_command_line():
    version = CliRunner().invoke(app, ["--version"])
    assert version.exit_code == 0 and version.output.split() == [__title__, __version__]
    for args in ([], ["convert"], ["encoder", "vectors"]):
        assert CliRunner().invoke(app, [*args, "-h"]).output == CliRunner().invoke(app, [*args, "--help"]).output != ""


def test_the_help_page_lists_all_commands():
    rows = CliRunner().invoke(app, ["--help"]).output.partition("Commands:\n")[2]
    assert re.findall(r"^  (\w+)", rows, re.M) == [name for name in COMMANDS if name != "prepare"]
    shown = {name: not found.hidden for name, found in get_command(app).commands.items()}
    assert shown == {name: bool(text) for name, text in COMMANDS.items()}


def test_every_option_has_a_help_text():
    commands: List[Any] = [*every(get_command(app))]
    assert len(commands) > 20
    for name, found in commands:
        assert inspect.cleandoc(found.help or ""), name
        for param in found.params:
            assert param.name == "help" or (param.help and not param.help.startswith("See ")), (name, param.name)


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**31, 2**64])
@pytest.mark.parametrize("words", ["prepare a", "train a b", "fit a b"])
def test_seeds_that_some_library_refuses(words, seed):
    result = CliRunner().invoke(app, [*words.split(), "--seed", str(seed)])
    assert result.exit_code == 2 and "Invalid value for '--seed'" in result.output


@pytest.mark.parametrize(
    "words",
    [
        ["train", "c.cfg", "out"],
        ["train", "c.cfg", "out", "--members", "2"],
        ["train", "c.cfg", "out", "--folds", "2"],
        ["train", "c.cfg", "out", "--grid", "training.dropout=0.1"],
    ],
)
def test_an_unknown_option_is_no_setting(words):
    """These take settings of the config, too."""
    result = CliRunner().invoke(app, [*words, "--membres", "3"])
    assert result.exit_code == 1 and "WK369" in result.stderr and "--membres" in result.stderr
