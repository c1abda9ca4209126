"""Commands are made of their functions before tests put others in their place."""

from importlib import import_module

from spacy_weakner.cli.app import COMMANDS

for name in COMMANDS:
    import_module(f"spacy_weakner.cli.{name}")
