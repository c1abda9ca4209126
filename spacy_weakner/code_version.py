"""What the code is: what everything made by it depends on, besides input and settings."""

import ast
import hashlib
import re
import sys
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from threading import Lock
from typing import Dict, FrozenSet, Iterable, Iterator, List, Set

from .about import __version__
from .errors import WeaknerError
from .files import write_text
from .own_code import own_code

_HERE = Path(__file__).parent
# Parts of configs and templates count as the code of the folder that they are in.
_OTHER_SUFFIXES = (".cfg", ".jinja")
# Trainings are started in threads, in which Python 3.11 cannot parse at the same time.
_PARSING = Lock()
_QUOTED = re.compile(r'"([^"\n]+)"')


def code_version() -> str:
    """Tell one state of the whole package, and of the own file of a user, from another."""
    return f"{__version__} {_package_hash()}{_own_hash()}"


def stamp(path: Path) -> None:
    """Write the version to a file that workflows depend on, unless the file has it already."""
    text = code_version() + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def code_of(modules: Iterable[str], names: Iterable[object] = ()) -> str:
    """Tell one state of some modules from another, so that a change elsewhere makes nothing anew. All that they import,
    at once or later, is part of their code; so are components and functions that they name, or that are among `names`
    (values of settings)."""
    registered = _registered()
    named = {registered[name] for name in names if isinstance(name, str) and name in registered}
    found = frozenset(modules) | named
    if any(module.split(".")[0] != _HERE.name for module in found):  # of a stage elsewhere, which may import anything
        return code_version()
    return f"{__version__} {_modules_hash(found)}{_own_hash()}" if found else ""


def names_in(config: str) -> List[str]:
    """Values in the text of a config, for `code_of`."""
    return _QUOTED.findall(config)


def hash_sources(folder: Path, files: Iterable[Path]) -> str:
    """SHA-256 of sources with their relative names."""
    digest = hashlib.sha256()
    for path in sorted(files):
        name = path.relative_to(folder).as_posix().encode("utf-8")
        data = path.read_bytes()
        # Lengths keep the border between name and contents, and between files, apart.
        digest.update(b"%d %d\n" % (len(name), len(data)) + name + data)
    return digest.hexdigest()


def all_sources(folder: Path) -> List[Path]:
    """All sources in the folder of a package; not the byte code that Python writes beside them."""
    return [path for path in folder.rglob("*") if path.suffix in (".py", *_OTHER_SUFFIXES) and path.is_file()]


def imported_sources(folder: Path, modules: Iterable[str], registered: Dict[str, str]) -> Set[Path]:
    """Sources of modules, and of all modules of the package that they import or name."""
    found: Set[Path] = set()
    waiting = list(modules)
    seen: Set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        path = folder.joinpath(*module.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if not path.is_file():  # a name in a module
            continue
        found.add(path)
        if path.parent != folder:
            found.update(other for other in path.parent.rglob("*") if other.suffix in _OTHER_SUFFIXES)
        waiting += _mentioned(path, module, registered)
    return found


def _mentioned(path: Path, module: str, registered: Dict[str, str]) -> Iterator[str]:
    """Modules that a module imports or names, and the packages that it is in."""
    parts = module.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    yield from (".".join(parts[:n]) for n in range(1, len(parts)))
    with _PARSING:
        tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == parts[0])
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            if source.split(".")[0] == parts[0]:
                yield source
                yield from (f"{source}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in registered:
            yield registered[node.value]


@cache
def _registered() -> Dict[str, str]:
    found = distribution(_HERE.name).entry_points
    return {entry.name: entry.value.partition(":")[0] for entry in found if entry.group != "spacy_cli"}


@cache
def _package_hash() -> str:
    return hash_sources(_HERE, all_sources(_HERE))[:16]


@cache
def _modules_hash(modules: FrozenSet[str]) -> str:
    return hash_sources(_HERE, imported_sources(_HERE, modules, _registered()))[:16]


def _own_hash() -> str:
    path = own_code()
    return f" {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" if path is not None and path.is_file() else ""


# No command: to import all that commands need takes seconds.
if __name__ == "__main__":
    try:
        stamp(Path(sys.argv[1]))
    except (WeaknerError, OSError) as error:
        sys.exit(str(error))
