"""Hashes by which a stage recognizes finished work."""

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Union

from spacy.util import get_package_version

from ..files import existing, visible_files

_CHUNK = 1 << 20


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's contents."""
    digest = hashlib.sha256()
    with open(path, "rb") as file_:
        while chunk := file_.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def hash_path(path: Path) -> str:
    """Return the SHA-256 of a file, or of all files in a folder that are not hidden, with their relative names."""
    if existing(path).is_file():
        return hash_file(path)
    files = visible_files(path)
    listing = "\n".join(f"{f.relative_to(path).as_posix()} {hash_file(f)}" for f in files)
    return hash_text(listing)


def hash_model(name: Union[str, Path]) -> str:
    """Return an identifier of a pipeline (or another model): a hash of its folder, or name and version of an installed
    package."""
    path = Path(name)
    return hash_path(path) if path.exists() else f"{name} {get_package_version(str(name))}"


def hash_settings(settings: Dict[str, Any]) -> str:
    """Return the SHA-256 of JSON-compatible settings, regardless of their order."""
    return hash_text(json.dumps(settings, sort_keys=True, ensure_ascii=True))
