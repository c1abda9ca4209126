"""The inputs of trainings: which values of a config name them, and what they contain."""

import os
from functools import cache
from pathlib import Path
from typing import Any, Dict, Mapping

from ..corpus.docbin import corpus_files, found_files, read_bin, receipt_path
from ..runtime.hashes import hash_path
from ..runtime.receipts import Receipt


def names_input(key: str, value: object) -> bool:
    """Return True if a value is the path of a training input: anything in [paths] and of corpora; elsewhere files, and
    model folders. A value such as "/" does not walk the disk."""
    if not isinstance(value, str) or not value or not os.path.exists(value) or os.path.ismount(value):
        return False
    if key.startswith("paths.") or key.endswith(".path") or os.path.isfile(value):
        return True
    return any(os.path.isfile(os.path.join(value, name)) for name in ("config.json", "config.cfg"))


class Inputs:
    """What inputs contain. Each is read once, however many trainings it has.

    hash (Callable[[Path], str]): Returns the hash of a file or folder.
    contents (Callable[[Path], Dict[str, Any]]): Returns path and hash of an input; of a corpus also its size, and the
        rules by which it was completed. A hash of None: it does not exist here, such as the name of a Transformer.
    """

    def __init__(self) -> None:
        self.hash = cache(hash_path)
        self.contents = cache(self._contents)

    def of_paths(self, values: Mapping[str, Any]) -> Dict[str, Dict[str, Any]]:
        """Return the contents of all inputs in the section [paths] of a config, by dotted name."""
        paths = {k: Path(v) for k, v in values.items() if k.startswith("paths.") and isinstance(v, str) and v}
        return {key: self.contents(path) for key, path in paths.items()}

    def _contents(self, path: Path) -> Dict[str, Any]:
        found: Dict[str, Any] = {"path": path.as_posix(), "sha256": None}
        if names_input("paths.", str(path)):
            found["sha256"] = self.hash(path)
        if found["sha256"] and (path.suffix == ".spacy" or found_files(path)):
            files = corpus_files(path)
            receipts = [Receipt.read(receipt_path(file_)) for file_ in files]
            rules = sorted({rule for receipt in receipts if receipt for rule in receipt.report.get("rules", ())})
            found["sentences"] = sum(len(read_bin(file_)) for file_ in files)
            found.update({"rules": rules} if rules else {})
        return found
