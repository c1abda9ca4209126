"""What the code is: the one thing that everything made by it depends on besides its input and settings."""

import hashlib
from functools import cache
from pathlib import Path

from .about import __version__
from .own_code import own_code

_HERE = Path(__file__).parent
# Sources, parts of configs and templates; not the byte code that Python writes beside them.
_SUFFIXES = (".py", ".cfg", ".jinja")


def code_version() -> str:
    """Tell one state of the code from another. Receipts and project files hold it, so that what a changed function has
    made is made anew.

    RETURNS (str): The version, a hash of the package's sources, and one of the user's own file, if there is one.
    """
    path = own_code()
    own = f" {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" if path is not None and path.is_file() else ""
    return f"{__version__} {_package_hash()}{own}"


@cache
def _package_hash() -> str:
    return hash_sources(_HERE)[:16]


def hash_sources(folder: Path) -> str:
    """SHA-256 of all sources in a folder with their relative names.

    folder (Path): The folder of a package.
    RETURNS (str): The hash, in hexadecimal digits.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file()):
        name = path.relative_to(folder).as_posix().encode("utf-8")
        data = path.read_bytes()
        # Lengths keep the border between name and contents, and between files, apart.
        digest.update(b"%d %d\n" % (len(name), len(data)) + name + data)
    return digest.hexdigest()
