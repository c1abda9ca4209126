"""The version of the code, which all outputs depend on, besides input and settings."""

import hashlib
import sys
from functools import cache
from pathlib import Path

from .about import __version__
from .errors import WeaknerError
from .files import write_text
from .own_code import own_code

_HERE = Path(__file__).parent


def code_version() -> str:
    """Return an identifier of the state of the whole package, and of the user's own code file."""
    return f"{__version__} {_package_hash()}{_own_hash()}"


def stamp(path: Path) -> None:
    """Write the version to a file that workflows depend on, unless the file already has it."""
    text = code_version() + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def hash_sources(folder: Path) -> str:
    """Return the SHA-256 of all sources in the folder of a package, with their relative names, without byte code, and
    without blank lines and lines that are comments, which change no output."""
    digest = hashlib.sha256()
    sources = (path for path in folder.rglob("*") if path.suffix in (".py", ".cfg", ".jinja") and path.is_file())
    for path in sorted(sources):
        name = path.relative_to(folder).as_posix().encode("utf-8")
        data = path.read_bytes()
        if path.suffix != ".jinja":
            data = b"\n".join(line for line in data.splitlines() if line.strip()[:1] not in (b"", b"#"))
        # Lengths separate names from contents, and files from each other.
        digest.update(b"%d %d\n" % (len(name), len(data)) + name + data)
    return digest.hexdigest()


@cache
def _package_hash() -> str:
    return hash_sources(_HERE)[:16]


def _own_hash() -> str:
    path = own_code()
    return f" {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" if path is not None and path.is_file() else ""


# Not a command: the imports that commands need take seconds.
if __name__ == "__main__":
    try:
        stamp(Path(sys.argv[1]))
    except (WeaknerError, OSError) as error:
        sys.exit(str(error))
