"""Entry point of the group `spacy_cli`. spaCy loads the entry point but does not call it, so importing this module
adds the commands to spaCy's own application: `spacy weakner ...`."""

import typer
from spacy.cli._util import app as spacy_app

from .app import NAME, app


def register() -> typer.Typer:
    return app


spacy_app.add_typer(app, name=NAME)
