"""Hashes by which a stage recognizes work that is done."""

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Union

from spacy.util import get_package_version

from ..errors import Errors, WeaknerError

_CHUNK = 1 << 20


def hash_file(path: Path) -> str:
    """SHA-256 of a file's contents."""
    digest = hashlib.sha256()
    with open(path, "rb") as file_:
        while chunk := file_.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def hash_text(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their relative names."""
    check_regular(path)
    if path.is_file():
        return hash_file(path)
    files = sorted(f for f in path.rglob("*") if f.is_file())
    listing = "\n".join(f"{f.relative_to(path).as_posix()} {hash_file(f)}" for f in files)
    return hash_text(listing)


def check_regular(path: Path) -> None:
    """Refuse what can be read only once (a pipe, such as `<(zcat ...)` of a shell, or a device), where it is read to be
    recognized and then for what it says."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise WeaknerError(Errors.WK786.format(path=path))


def hash_model(name: Union[str, Path]) -> str:
    """What tells one pipeline (or other model) from another: a hash of its folder, or name and version of an installed
    package."""
    path = Path(name)
    return hash_path(path) if path.exists() else f"{name} {get_package_version(str(name))}"


def hash_settings(settings: Dict[str, Any]) -> str:
    """SHA-256 of settings that JSON can hold; their order does not count."""
    return hash_text(json.dumps(settings, sort_keys=True, ensure_ascii=True))
