"""Commands in this process, and stand-ins for what they call."""

from typer.testing import CliRunner

from spacy_weakner.cli.app import app


def invoke(*args):
    return CliRunner().invoke(app, [*map(str, args)])


def stand_in(monkeypatch, function):
    """Puts into the place of a function of the package one that keeps what it is given, and ends with Ctrl-C."""
    seen = {}

    def keep(*args, **given):
        seen.update(given, args=args)
        raise KeyboardInterrupt

    monkeypatch.setattr(f"spacy_weakner.{function}", keep)
    return seen
