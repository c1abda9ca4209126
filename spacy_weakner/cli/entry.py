"""Entry point of the group `spacy_cli`. spaCy only loads it and calls nothing, so importing this module must
add the commands to spaCy's own application: `spacy weakner ...`."""

import typer
from spacy.cli._util import app as spacy_app

from .app import NAME, app


def register() -> typer.Typer:
    return app


spacy_app.add_typer(app, name=NAME)
