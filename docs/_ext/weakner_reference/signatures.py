"""Arguments of functions and classes as tables: names, types, defaults and what the docstring says of each."""

import inspect
import re
from typing import Any, Dict, Iterable, List, Sequence

from .docstrings import RAISES, RETURNS, YIELDS, Docstring, Field
from .markup import code, escape, table

_MODULES = re.compile(r"\b[a-z_][\w.]*\.(?=\w)")
_OUTCOMES = {RETURNS: "Returns", YIELDS: "Yields", RAISES: "Raises"}
HEADER = ("name", "type", "default", "what it does")
NO_FIELD = Field("", "")


def parameters(owner: Any, without: Iterable[str] = ("self", "cls")) -> List[inspect.Parameter]:
    """The arguments of a function or class.

    owner (Any): The function or class.
    without (Iterable[str]): Names that are left out.
    RETURNS (List[inspect.Parameter]): The others, in their order.
    """
    return [own for own in inspect.signature(owner).parameters.values() if own.name not in {*without}]


def call_form(name: str, function: Any) -> str:
    """A function and the names of its arguments.

    name (str): Its name.
    function (Any): The function.
    RETURNS (str): For example "map(function, *items)".
    """
    return f"{name}({', '.join(stars(own) + own.name for own in parameters(function))})"


def stars(parameter: inspect.Parameter) -> str:
    """RETURNS (str): What stands before the name of an argument."""
    return {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")


def type_name(annotation: Any) -> str:
    """How a type is called in the docstrings: without the modules.

    annotation (Any): The annotation.
    RETURNS (str): Its name; empty if there is none.
    """
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _MODULES.sub("", text)


def argument_table(arguments: Sequence[inspect.Parameter], docstring: Docstring, defaults: Dict[str, str]) -> str:
    """A table of arguments.

    arguments (Sequence[inspect.Parameter]): The arguments.
    docstring (Docstring): What is said of them.
    defaults (Dict[str, str]): Markdown by name; the others must be given.
    RETURNS (str): Markdown.
    """
    rows = []
    for own in arguments:
        field = docstring.arguments.get(own.name, NO_FIELD)
        kind = field.type or type_name(own.annotation)
        rows.append([code(own.name), code(kind) if kind else "", defaults.get(own.name, ""), escape(field.text)])
    return table(HEADER, rows)


def outcome_lines(docstring: Docstring) -> str:
    """What comes out, and what can go wrong.

    docstring (Docstring): The docstring.
    RETURNS (str): Markdown.
    """
    lines = []
    for name, field in docstring.outcomes.items():
        kind = f" {code(field.type)}" if field.type else ""
        lines.append(f"**{_OUTCOMES[name]}**{kind}: {escape(field.text)}")
    return "\n\n".join(lines)
