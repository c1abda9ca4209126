"""Receipts: what an output was made from, by which a later run knows that it need not be made again."""

import json
from dataclasses import field
from pathlib import Path
from typing import Any, Dict, List, Optional

from pydantic.dataclasses import dataclass

from ..files import parse_json, write_text
from .hashes import hash_file


@dataclass(frozen=True)
class Receipt:
    """What stands beside an output."""

    made_from: Dict[str, Any]  # the stage, the version of the code, hashes of inputs and settings
    files: Dict[str, str] = field(default_factory=dict)  # SHA-256 of what was made, by name in the receipt's folder
    report: Dict[str, Any] = field(default_factory=dict)  # what the run had to tell

    @classmethod
    def read(cls, path: Path) -> Optional["Receipt"]:
        """None if there is no receipt, an empty one if it is damaged."""
        try:
            data = parse_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError:
            data = None
        if not isinstance(data, dict):
            return cls({})
        files, report = data.pop("files", None), data.pop("report", None)
        try:
            return cls(data, files, report)
        except ValueError:  # of an earlier version, or damaged: nothing is known of what was made
            return cls(data)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        data = {**self.made_from, "files": self.files, "report": self.report}
        write_text(path, json.dumps(data, indent=2, sort_keys=True) + "\n")

    def differences(self, made_from: Dict[str, Any]) -> List[str]:
        """The keys that are missing or have another value than the output would be made from now."""
        there = self.made_from
        return [key for key, value in made_from.items() if key not in there or there[key] != value]

    def is_intact(self, folder: Path) -> bool:
        """True if all that was made is still there as it was."""
        found = ((folder / name, value) for name, value in self.files.items())
        return bool(self.files) and all(path.is_file() and hash_file(path) == value for path, value in found)
