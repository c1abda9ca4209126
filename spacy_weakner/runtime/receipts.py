"""Receipts: records of what an output was made from, so that a later run need not make it again."""

import json
from dataclasses import field
from pathlib import Path
from typing import Any, Dict, List, Optional

from pydantic.dataclasses import dataclass

from ..files import parse_json, write_text
from .hashes import hash_file


@dataclass(frozen=True)
class Receipt:
    """The record beside an output."""

    made_from: Dict[str, Any]  # the stage, the version of the code, hashes of inputs and settings
    files: Dict[str, str] = field(default_factory=dict)  # SHA-256 of each output file, by name in the receipt's folder
    report: Dict[str, Any] = field(default_factory=dict)  # the report of the run

    @classmethod
    def read(cls, path: Path) -> Optional["Receipt"]:
        """Read a receipt. Return None if there is none, and an empty receipt if it is damaged."""
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
        except ValueError:  # of an earlier version, or damaged: the outputs are unknown
            return cls(data)

    def write(self, path: Path) -> None:
        """Write the receipt, whole or not at all."""
        data = {**self.made_from, "files": self.files, "report": self.report}
        write_text(path, json.dumps(data, indent=2, sort_keys=True) + "\n")

    def differences(self, made_from: Dict[str, Any]) -> List[str]:
        """Return the keys that are missing, or whose values differ from those of the current run."""
        there = self.made_from
        return [key for key, value in made_from.items() if key not in there or there[key] != value]

    def is_intact(self, folder: Path) -> bool:
        """Return True if all outputs exist and are unchanged."""
        found = ((folder / name, value) for name, value in self.files.items())
        return bool(self.files) and all(path.is_file() and hash_file(path) == value for path, value in found)
