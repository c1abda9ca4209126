"""Hashes by which a stage recognises work that is done."""

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Sequence

_CHUNK = 1 << 20


def hash_file(path: Path) -> str:
    """SHA-256 of a file's contents."""
    digest = hashlib.sha256()
    with open(path, "rb") as file_:
        while chunk := file_.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def hash_files(paths: Sequence[Path]) -> str:
    """SHA-256 of several files, in their order; of one file, its own."""
    if len(paths) == 1:
        return hash_file(paths[0])
    return hashlib.sha256("\n".join(hash_file(path) for path in paths).encode("ascii")).hexdigest()


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their relative names."""
    if path.is_file():
        return hash_file(path)
    files = sorted(f for f in path.rglob("*") if f.is_file())
    listing = "\n".join(f"{f.relative_to(path).as_posix()} {hash_file(f)}" for f in files)
    return hashlib.sha256(listing.encode("utf-8")).hexdigest()


def hash_settings(settings: Dict[str, Any]) -> str:
    """SHA-256 of settings that JSON can hold; their order does not count."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
