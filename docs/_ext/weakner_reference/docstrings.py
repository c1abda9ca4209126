"""Reads docstrings in spaCy's form: text, then `name (Type): text` for each argument, then RETURNS and RAISES."""

import inspect
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Tuple

# "a (int): text", "a, b: text" and "*others (str): text"; what follows is indented.
_FIELD = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \((?P<type>.+?)\))?: (?P<text>.*)")
# Not after "et al." and the like.
_SENTENCE = re.compile(r"(?<=[^.]{3}[.])(?<!et al[.]) (?=[A-Z(`])")
RETURNS, YIELDS, RAISES = "RETURNS", "YIELDS", "RAISES"
OUTCOMES = (RETURNS, YIELDS, RAISES)


@dataclass(frozen=True)
class Field:
    """One line of a docstring.

    type (str): As it is written there; empty if it is not.
    text (str): What it says, on one line.
    """

    type: str
    text: str


@dataclass(frozen=True)
class Docstring:
    """What a docstring says.

    text (str): All but the fields, as it is written.
    arguments (Dict[str, Field]): By name, without stars.
    outcomes (Dict[str, Field]): RETURNS, YIELDS and RAISES, where they stand.
    """

    text: str
    arguments: Dict[str, Field]
    outcomes: Dict[str, Field]

    @property
    def summary(self) -> str:
        """RETURNS (str): The first sentence, on one line."""
        first = " ".join(self.text.split("\n\n", 1)[0].split())
        return re.sub(":$", ".", _SENTENCE.split(first, 1)[0])


def read(owner: Any) -> Docstring:
    """Read the docstring of a class or function; methods without one have that of the class that they override.

    owner (Any): The class or function.
    RETURNS (Docstring): What it says. The fields of a class may also be those of its attributes.
    """
    return parse(inspect.getdoc(owner) or "", _names(owner))


def parse(docstring: str, names: Iterable[str] = ()) -> Docstring:
    """Read a docstring.

    docstring (str): The docstring, without the indentation of the code.
    names (Iterable[str]): Names of arguments: a line that begins with others is a field only if it has a type.
    RETURNS (Docstring): What it says.
    """
    known = {*names, *OUTCOMES}
    text: List[str] = []
    found: Dict[str, Field] = {}
    current: Tuple[str, ...] = ()
    for line in docstring.splitlines():
        match = _FIELD.fullmatch(line)
        if match and (match["type"] or known.issuperset(_split(match["names"]))):
            current = _split(match["names"])
            found.update(dict.fromkeys(current, Field(match["type"] or "", match["text"])))
        elif current and line.strip() and (line.startswith("    ") or not text):
            # A docstring that begins with a field loses the indentation of its other lines.
            field = found[current[0]]
            found.update(dict.fromkeys(current, Field(field.type, f"{field.text} {line.strip()}")))
        else:
            current = ()
            text.append(line)
    arguments = {name: field for name, field in found.items() if name not in OUTCOMES}
    return Docstring(_joined(text), arguments, {name: found[name] for name in OUTCOMES if name in found})


def _split(names: str) -> Tuple[str, ...]:
    return tuple(name.lstrip("*") for name in names.split(", "))


def _joined(lines: List[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _names(owner: Any) -> List[str]:
    try:
        return list(inspect.signature(owner).parameters)
    except (TypeError, ValueError):
        return []
