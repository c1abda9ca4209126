"""One name, one thing: what is defined at the top of a module has a name of its own."""

import ast
from collections import defaultdict

import spacy_weakner
from tools.pages.blocks import ROOT

PACKAGE = ROOT / spacy_weakner.__name__
# Each module of these folders has the same functions, which are called by the module's name: a format, a command.
ALIKE = {"corpus/formats", "cli"}


def definitions(path):
    """Classes, aliases of types and public functions."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not node.name.startswith("_")):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            yield from [name] if name.strip("_")[:1].isupper() and not name.isupper() else []


def test_no_two_things_have_the_same_name():
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parent.as_posix() not in ALIKE:
            for name in {*definitions(path)}:
                found[name].append(place.as_posix())
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
