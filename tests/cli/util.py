"""Commands in this process, and stand-ins for what they call."""

from importlib import import_module
from pydoc import locate

from typer.testing import CliRunner

from spacy_weakner.cli import _command
from spacy_weakner.cli.app import COMMANDS, app


def invoke(*args):
    return CliRunner().invoke(app, [*map(str, args)])


# Commands are made of their functions before tests put others in their place.
for name in COMMANDS:
    import_module(f"spacy_weakner.cli.{name}")


def stand_in(monkeypatch, function):
    """Puts into the place of a function of the package one that keeps what it is given, and ends with Ctrl-C."""
    seen = {}

    def keep(*args, **given):
        seen.update(given, args=args)
        raise KeyboardInterrupt

    replace(monkeypatch, function, keep)
    return seen


def replace(monkeypatch, function, other):
    """Puts another function into the place of one of the package, also where a command was made of it."""
    replaced = locate(f"spacy_weakner.{function}")
    monkeypatch.setattr(f"spacy_weakner.{function}", other)
    monkeypatch.setattr(_command, "call", lambda called, given: (other if called is replaced else called)(**given))
