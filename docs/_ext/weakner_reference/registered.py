"""Registered functions, by registry: what config files can name."""

import inspect
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Dict, List

from .docstrings import read
from .markup import code, document, escape, prose, table, target, value
from .signatures import argument_table, outcome_lines, parameters

PACKAGE = "spacy_weakner"
# Groups of entry points, and how a config names a function of each.
REGISTRIES: Dict[str, str] = {
    "spacy_architectures": "@architectures",
    "thinc_losses": "@losses",
    "spacy_misc": "@misc",
    "spacy_readers": "@readers",
    "spacy_callbacks": "@callbacks",
    "spacy_augmenters": "@augmenters",
    "spacy_scorers": "@scorers",
    "spacy_tokenizers": "@tokenizers",
}


def points(group: str) -> List[EntryPoint]:
    """The functions of this package in a group of entry points.

    group (str): The group.
    RETURNS (List[EntryPoint]): Them, by name.
    """
    found = [point for point in entry_points(group=group) if point.value.startswith(f"{PACKAGE}.")]
    return sorted(found, key=lambda point: point.name.lower())


def render(group: str) -> str:
    """The reference of the functions in a group.

    group (str): The group.
    RETURNS (str): Markdown.
    """
    found = points(group)
    rows = [[code(point.name), escape(read(point.load()).summary)] for point in found]
    overview = table(["name", "what it is"], rows) if len(found) > 1 else ""
    return document(overview, *(render_function(REGISTRIES[group], point) for point in found))


def render_function(key: str, point: EntryPoint) -> str:
    """The reference of a registered function.

    key (str): How a config names such a function, e.g. "@losses".
    point (EntryPoint): The function.
    RETURNS (str): Markdown.
    """
    function = point.load()
    about = read(function)
    arguments = parameters(function)
    return document(
        target(point.name),
        f"## {escape(point.name.split('.')[1])}",
        f'`{key} = "{point.name}"`, {code(point.value.replace(":", "."))}',
        prose(about.text),
        argument_table(arguments, about, defaults(arguments)) or "It takes no arguments.",
        outcome_lines(about),
    )


def defaults(arguments: List[inspect.Parameter]) -> Dict[str, str]:
    """Defaults as a config has them.

    arguments (List[inspect.Parameter]): The arguments.
    RETURNS (Dict[str, str]): Markdown by name.
    """
    return {own.name: _default(own.default) for own in arguments if own.default is not own.empty}


def _default(own: Any) -> str:
    if isinstance(own, (str, int, float, bool, type(None))):
        return value(own)
    return value(list(own)) if isinstance(own, (list, tuple)) else code(repr(own))
