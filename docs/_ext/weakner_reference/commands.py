"""The command line, from the application itself."""

import inspect
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple, Union, get_args, get_origin, get_type_hints

from typer.main import get_command

from spacy_weakner.cli.app import app

from .markup import code, document, escape, fence, prose, table, target, value
from .signatures import type_name

PROGRAM = "spacy weakner"
_WORDS = {str: "text", int: "int", float: "float", bool: "flag", Path: "path"}
_INTERNAL = ("help", "install_completion", "show_completion")


def commands() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): All commands by name ("init config"), in the order of `--help`."""
    return dict(_walk(get_command(app)))


def options(command: Any) -> List[Any]:
    """The arguments and options of a command.

    command (Any): The command.
    RETURNS (List[Any]): Its parameters, in their order.
    """
    return [each for each in command.params if each.name not in _INTERNAL and not getattr(each, "hidden", False)]


def render() -> str:
    """RETURNS (str): All commands with a line each, and the options of the application, in Markdown."""
    rows = [[f"[`{name}`](#{_place(name)})", escape(_summary(command))] for name, command in commands().items()]
    return document(table(["command", "what it does"], rows), _render_common())


def pages() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): The page of each command in Markdown, by the name of its file ("init-config")."""
    return {name.replace(" ", "-"): render_command(name, command) + "\n" for name, command in commands().items()}


def render_command(name: str, command: Any) -> str:
    """The reference of a command.

    name (str): Its name.
    command (Any): The command.
    RETURNS (str): Markdown.
    """
    given = options(command)
    positional = [each for each in given if each.param_type_name == "argument"]
    usage = " ".join([PROGRAM, name, *map(_metavar, positional), *["[OPTIONS]"] * (len(given) > len(positional))])
    if command.context_settings.get("allow_extra_args"):
        usage += " [--SECTION.SETTING VALUE ...]"
    return document(
        target(_place(name)),
        f"# {name}",
        fence("text", usage),
        prose(inspect.cleandoc(command.help or "")),
        _table(command, given),
    )


def _render_common() -> str:
    command = get_command(app)
    return document("Before the name of the command:", _table(command, options(command)))


def _place(name: str) -> str:
    return f"command-{name.replace(' ', '-')}"


def _summary(command: Any) -> str:
    """The first sentence of its help, without what explains it."""
    return re.split(r": | \(|\. |\.$", command.short_help)[0]


def _walk(group: Any, before: str = "") -> Iterator[Tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _walk(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _table(command: Any, given: List[Any]) -> str:
    hints = get_type_hints(command.callback)
    rows = []
    for parameter in given:
        default = "" if parameter.required or parameter.default is None else _default(parameter.default)
        names = (
            [_metavar(parameter)]
            if parameter.param_type_name == "argument"
            else [*parameter.opts, *parameter.secondary_opts]
        )
        needed = "needed" if parameter.required else default
        rows.append(
            [", ".join(map(code, names)), escape(_kind(hints[parameter.name])), needed, escape(parameter.help or "")]
        )
    return table(["argument or option", "type", "default", "what it does"], rows)


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper()


def _kind(hint: Any) -> str:
    inner = [each for each in get_args(hint) if each is not type(None)]
    if get_origin(hint) is Union:
        return _kind(inner[0])
    if get_origin(hint) in (list, tuple):
        return f"{_kind(inner[0])}, {'repeatable' if get_origin(hint) is list else f'{len(inner)} times'}"
    return _WORDS.get(hint, type_name(hint))


def _default(default: Any) -> str:
    if callable(default):
        return ""
    return value([*default]) if isinstance(default, (list, tuple)) else code(str(default)) if default != "" else '`""`'
