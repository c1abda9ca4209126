"""All messages by code, in the groups of the code that they stand in."""

import inspect
import re
from typing import Any, Dict, Iterator, List, Tuple

from spacy_weakner import errors

from .markup import code, document, escape, table

CLASSES = (errors.Errors, errors.Warnings)
_CODE = re.compile(r"\[(WK\d{3})\] ")
_PLACEHOLDER = re.compile(r"\{(\w+)(?:![rs])?(?::[^}]*)?\}")
_GROUP = re.compile(r"    # (.+)")
_ASSIGNED = re.compile(r"    (WK\d{3}) = ")


def messages() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): All messages by code, errors first."""
    return {name: text for owner in CLASSES for name, text in vars(owner).items() if _is_message(name, text)}


def render() -> str:
    """RETURNS (str): The reference of all messages, in Markdown."""
    return document(*(document(f"## {escape(title)}", _table(names)) for title, names in groups()))


def groups() -> List[Tuple[str, List[str]]]:
    """RETURNS (List[Tuple[str, List[str]]]): Titles and codes of the groups: in the code the title is a comment above
    the first of a group, and begins with a capital letter."""
    found: List[Tuple[str, List[str]]] = []
    for owner in CLASSES:
        found.append((owner.__name__, []))
        for name, title in _assigned(owner):
            if title:
                found.append((title, []))
            found[-1][1].append(name)
    return [(title, names) for title, names in found if names]


def _assigned(owner: Any) -> Iterator[Tuple[str, str]]:
    title = ""
    for line in inspect.getsource(owner).splitlines():
        comment, assigned = _GROUP.fullmatch(line), _ASSIGNED.match(line)
        if comment and comment[1][0].isupper():
            title = comment[1].rstrip(".:")
        elif assigned:
            yield assigned[1], title
            title = ""


def _table(names: List[str]) -> str:
    every = messages()
    return table(
        ["code", "message"], [[f"[{code(name)[1:].split(']')[0]}]{{#{name}}}", _text(every[name])] for name in names]
    )


def _text(message: str) -> str:
    # What is filled in is set in italics.
    text = _PLACEHOLDER.sub(r"‹\1›", _CODE.sub("", message, count=1).replace("{{", "{").replace("}}", "}"))
    return re.sub(r"‹(.+?)›", r"*\1*", escape(text.replace("›‹", "› ‹")))


def _is_message(name: str, text: object) -> bool:
    return isinstance(text, str) and _CODE.match(text) is not None and name == _CODE.match(text)[1]  # type: ignore[index]
