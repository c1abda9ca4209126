"""The Python API of a folder of the package: its public functions and classes with their docstrings."""

import dataclasses
import inspect
import pkgutil
import re
from importlib import import_module
from types import ModuleType
from typing import Any, Dict, List

from .docstrings import Field, read
from .markup import code, document, escape, fence, prose, table, target
from .signatures import HEADER, argument_table, call_form, outcome_lines, parameters, stars

WIDTH = 88
_FIELD = re.compile(r"    (?P<name>[a-z]\w*): (?P<type>.+?)(?: = .+?)?(?:  # (?P<text>.+))?")


def modules(package: str) -> List[ModuleType]:
    """The modules of a package that have something public; not those of its folders, which are parts of others.

    package (str): Name of the package, or of one module.
    RETURNS (List[ModuleType]): The modules.
    """
    home = import_module(package)
    if not hasattr(home, "__path__"):
        return [home]
    found = [import_module(f"{package}.{own.name}") for own in pkgutil.iter_modules(home.__path__) if not own.ispkg]
    return [module for module in found if members(module)]


def members(module: ModuleType) -> Dict[str, Any]:
    """Public functions and classes that a module defines.

    module (ModuleType): The module.
    RETURNS (Dict[str, Any]): By name, functions first.
    """
    own = {
        name: member
        for name, member in vars(module).items()
        if not name.startswith("_") and getattr(member, "__module__", None) == module.__name__ and _is_ours(member)
    }
    return dict(sorted(own.items(), key=lambda item: inspect.isclass(item[1])))


def render(package: str) -> str:
    """The reference of a package.

    package (str): Its name.
    RETURNS (str): Markdown.
    """
    return document(*map(render_module, modules(package)))


def render_module(module: ModuleType) -> str:
    """The reference of a module.

    module (ModuleType): The module.
    RETURNS (str): Markdown.
    """
    name = module.__name__
    parts = [_class(name, own) if inspect.isclass(own) else _function(name, own) for own in members(module).values()]
    return document(target(name), f"## {escape(name.split('.')[-1])}", prose(inspect.getdoc(module) or ""), *parts)


def _function(module: str, function: Any) -> str:
    about, arguments = read(function), parameters(function)
    defaults = {own.name: code(repr(own.default)) for own in arguments if own.default is not own.empty}
    return document(
        target(f"{module}.{function.__name__}"),
        f"### {escape(function.__name__)}",
        fence("python", f"from {module} import {function.__name__}\n\n{call(function)}"),
        prose(about.text),
        argument_table(arguments, about, defaults),
        outcome_lines(about),
    )


def _class(module: str, owner: Any) -> str:
    about = read(owner)
    fields = {name: field for base in reversed(owner.__mro__) for name, field in _fields(base).items()}
    rows = [[code(name), code(own.type), _field_default(owner, name), escape(own.text)] for name, own in fields.items()]
    own_methods = [
        [code(call_form(name, method)), escape(_said(getattr(owner, name)))]
        for name, method in vars(owner).items()
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__call__") and _said(method)
    ]
    return document(
        f"### {escape(owner.__name__)}",
        prose(about.text),
        table(HEADER, rows),
        table(["method", "what it does"], own_methods),
    )


def _fields(owner: Any) -> Dict[str, Field]:
    """Fields from the docstring of a class; those of a tuple or dataclass without any, from the comments there."""
    found = dict(read(owner).arguments)
    if found or not (dataclasses.is_dataclass(owner) or (issubclass(owner, tuple) and owner is not tuple)):
        return found
    above: List[str] = []
    for line in inspect.getsource(owner).splitlines():
        match = _FIELD.fullmatch(line)
        if match:
            text = match["text"] or " ".join(above)
            kind = match["type"].strip('"')
            found[match["name"]] = Field(kind, text and f"{text[0].upper()}{text[1:].rstrip('.')}.")
        above = [*above, line.strip("# ")] if line.startswith("    # ") else []
    return found


def call(function: Any) -> str:
    """How a function is called, with defaults.

    function (Any): The function.
    RETURNS (str): Python, on as many lines as it needs.
    """
    signature = inspect.signature(function)
    given = []
    for own in signature.parameters.values():
        if own.kind is own.KEYWORD_ONLY and "*" not in given:
            given.append("*")
        given.append(stars(own) + own.name + ("" if own.default is own.empty else f"={own.default!r}"))
    line = f"{function.__name__}({', '.join(given)})"
    if len(line) <= WIDTH:
        return line
    return f"{function.__name__}(\n" + "".join(f"    {own},\n" for own in given) + ")"


def _said(method: Any) -> str:
    about = read(method)
    return about.summary or " ".join(field.text for field in about.outcomes.values())


def _field_default(owner: Any, name: str) -> str:
    for own in dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ():
        if own.name == name and own.default is not dataclasses.MISSING:
            return code(repr(own.default))
    return ""


def _is_ours(member: Any) -> bool:
    return inspect.isfunction(member) or inspect.isclass(member)
