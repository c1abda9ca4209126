"""Reads the parts of configs, with their comments.

A part is a config with some special sections: those in `[only.SIZE.…]` (or `[only.SIZE+SIZE.…]`) are for some sizes of
the encoder, and those that begin with `HEAD` and `ENCODER` are moved to the place given in `[places]` (null: removed).
"""

import re
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from confection import Config

from ..files import existing

FOLDER = Path(__file__).parent
# Entry points of other packages, each with a folder of a package (`my_ner.configs`) that has recipes, parts and sizes.
GROUP = "spacy_weakner_recipes"
ONLY = "only"
_HEADER = re.compile(r"\[([^\]]+)\]")
_SETTING = re.compile(r"(\S+)\s*=\s*(.+)")


class Entry(NamedTuple):
    """A line of a part."""

    section: str
    key: str = ""  # the setting; empty: the line is the header of the section
    value: str = ""  # the text after the "="
    comment: Tuple[str, ...] = ()  # the lines of comment directly above

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}" if self.key else self.section


class ConfigPart(NamedTuple):
    """The contents of a part's file."""

    title: Tuple[str, ...]
    entries: Tuple[Entry, ...]


@cache
def folders() -> Tuple[Path, ...]:
    """Return the folders of parts: that of this package first, then those of other packages, which are not imported:
    they may need this one, which may be in the middle of its own import."""
    found = [FOLDER]
    for entry in sorted(entry_points(group=GROUP)):
        package, *rest = entry.value.split(".")
        spec = find_spec(package)
        places = (spec and spec.submodule_search_locations) or [package]
        found.append(existing(Path(places[0], *rest), f"the entry point '{entry.name}' of {GROUP} names it"))
    return tuple(found)


@cache
def read_part(name: str) -> ConfigPart:
    """Read a part by its path in this folder, without the suffix."""
    title: Tuple[str, ...] = ()
    entries: List[Entry] = []
    comment: List[str] = []
    path = FOLDER / f"{name}.cfg"
    if not path.is_file():
        path = next((other for folder in folders() if (other := folder / f"{name}.cfg").is_file()), path)
    for line in path.read_text(encoding="utf-8").splitlines():
        header, setting = _HEADER.fullmatch(line), _SETTING.fullmatch(line)
        if line.startswith("#"):
            comment.append(line)
            continue
        if header:
            entries.append(Entry(header[1], comment=tuple(comment)))
        elif setting:
            entries.append(Entry(entries[-1].section, setting[1], setting[2], tuple(comment)))
        elif not entries and comment:
            title = tuple(comment)
        comment = []
    return ConfigPart(title, tuple(entries))


def only_for(entries: Iterable[Entry], size: Optional[str]) -> List[Entry]:
    """Return the entries for a size, without the prefix `only.SIZE` (`[only.SIZE]` itself has a comment on the whole
    config); None: those for all sizes."""
    if size is None:
        return [entry for entry in entries if entry.section.split(".")[0] != ONLY]
    found = []
    for entry in entries:
        first, _, rest = entry.section.partition(".")
        sizes, _, section = rest.partition(".")
        if first == ONLY and size in sizes.split("+"):
            found.append(entry._replace(section=section))
    return found


def put_in_place(entries: Iterable[Entry], places: Dict[str, Optional[str]]) -> List[Entry]:
    """Rename sections to their places, and remove those whose place is null."""
    found = []
    for entry in entries:
        first, dot, rest = entry.section.partition(".")
        place = places.get(first, first)
        if place is not None:
            found.append(entry._replace(section=place + dot + rest))
    return found


def to_config(entries: Iterable[Entry]) -> Config:
    """Make a config of entries, without interpolating variables."""
    sections: Dict[str, List[str]] = {}
    for entry in entries:
        names = entry.section.split(".") if entry.section else []
        for n in range(len(names)):
            sections.setdefault(".".join(names[: n + 1]), [])
        if entry.key:
            sections[entry.section].append(f"{entry.key} = {entry.value}")
    text = "\n".join(line for name, lines in sections.items() for line in (f"[{name}]", *lines))
    return Config().from_str(text, interpolate=False)
