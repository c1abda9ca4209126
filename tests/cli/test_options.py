import inspect
import sys
from importlib import import_module

import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.aggregate import aggregate_cli
from spacy_weakner.cli.app import app
from spacy_weakner.cli.convert import convert_cli
from spacy_weakner.labeling.llm.config import AskConfig
from spacy_weakner.labeling.sources import defaults

COMMANDS = {
    "adapt": "encoder_tools.adapt",
    "anchors": "labeling.anchors.anchors",
    "ask": "labeling.llm.ask",
    "augment": "relabel.augment",
    "clean": "relabel.clean",
    "complete": "relabel.complete",
    "convert": "conversion.convert",
    "label": "labeling.label",
    "pick": "relabel.pick",
    "soft": "relabel.soft",
}

FUNCTIONS = {"soft": "predict_soft_labels"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_what_its_function_takes(name):
    """They pass on all their options at once."""
    command = getattr(import_module(f"spacy_weakner.cli.{name}"), f"{name}_cli")
    function = getattr(import_module(f"spacy_weakner.{COMMANDS[name]}"), FUNCTIONS.get(name, name))
    options = {p.name: p.default for p in inspect.signature(command).parameters.values()}
    parameters = inspect.signature(function).parameters
    taken = {p.name: p.default for p in parameters.values() if p.name in options}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        settings = {p.name: p.default for p in inspect.signature(AskConfig).parameters.values()}
        known = settings if name == "ask" else defaults()
        taken.update({key: known[key] for key in options if key in known and key not in taken})
    assert taken == {key: taken[key] if value is None and taken[key] == () else value for key, value in options.items()}
    left = {p.name for p in parameters.values() if p.kind is not p.VAR_KEYWORD} - {*options}
    assert left == {"progress"}


def test_suggest_takes_what_its_function_takes():
    """The report is written by the command."""
    from spacy_weakner.active_learning.suggest import suggest
    from spacy_weakner.cli.suggest import suggest_cli

    options = {p.name: p.default for p in inspect.signature(suggest_cli).parameters.values()}
    taken = {p.name: p.default for p in inspect.signature(suggest).parameters.values()}
    assert options.pop("report_output") is None
    assert taken.pop("progress") is False
    assert taken == {key: () if taken.get(key) == () and value is None else value for key, value in options.items()}


def test_commands_run_in_a_debugger(tmp_path):
    """A debugger reads the variables of a command, which then all stand in what `locals()` has given."""

    def read(frame, *_):
        if frame.f_code in (convert_cli.__code__, aggregate_cli.__code__):
            assert frame.f_locals
            return read
        return None

    (tmp_path / "a.jsonl").write_text('{"tokens": ["a"], "weak_ents": {"s": [[0, 1, "A"]]}}\n')
    before = sys.gettrace()
    sys.settrace(read)
    try:
        convert_cli(tmp_path / "a.jsonl", tmp_path / "a.spacy")
        aggregate_cli(tmp_path / "a.spacy", tmp_path / "b.spacy", report_output=tmp_path / "b.json")
    finally:
        sys.settrace(before)
    assert (tmp_path / "b.json").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["train", "c.cfg", "out"],
        ["train", "c.cfg", "out", "--members", "2"],
        ["train", "c.cfg", "out", "--folds", "2"],
        ["train", "c.cfg", "out", "--grid", "training.dropout=0.1"],
    ],
)
def test_an_unknown_option_is_no_setting(command):
    """These take settings of the config, too."""
    result = CliRunner().invoke(app, [*command, "--membres", "3"])
    assert result.exit_code == 1 and "WK369" in result.stderr and "--membres" in result.stderr
