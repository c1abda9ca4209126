"""The file of answers: rows are appended, each at once and whole."""

import json
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Optional, Type

from ...annotations.answers import is_answer, is_torn
from ...annotations.jsonl import at_line, parse_row
from ...annotations.rows import RowError
from ...errors import Errors, WeaknerError
from ...files import decode_line
from ...scratch import try_lock

_FOREIGN = "this is no row of 'ask'. Give another file for the answers"
_BEGINNING = b'{"key": "'


class Journal:
    """A file of answers. While it is open to write, no other process may write to it.

    path (Path): The file; it need not exist.
    see (Callable[[Dict[str, Any]], None]): Is told every row, those that are there and those that are added.
    write (bool): Whether anything is to be added. Without this, nothing is changed on disk.
    RAISES (WeaknerError): If another process writes to it, or it holds something else than answers.
    """

    def __init__(self, path: Path, see: Callable[[Dict[str, Any]], None], write: bool) -> None:
        self.path = path
        # Bytes of a last row that a killed process had not written to the end.
        self.torn = 0
        self._see = see
        self._lock = threading.Lock()
        self._file: Optional[BinaryIO] = self._open(write)
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def append(self, row: Dict[str, Any]) -> None:
        """Add a row.

        row (Dict[str, Any]): The row.
        """
        assert self._file is not None
        line = (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8")
        with self._lock:
            end = self._file.seek(0, os.SEEK_END)
            try:
                # Not buffered: what a process has written survives it.
                _write(self._file, line)
            except OSError as error:
                self._file.truncate(end)
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            self._see(row)

    def close(self) -> None:
        """Close the file, for others to write."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        self.close()

    def _open(self, write: bool) -> Optional[BinaryIO]:
        if self.path.is_dir():
            raise WeaknerError(Errors.WK109.format(path=self.path))
        if not write:
            return None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file_ = self.path.open("ab+", buffering=0)
        # The system frees it however this process ends.
        if try_lock(file_) is False:
            file_.close()
            raise WeaknerError(Errors.WK768.format(path=self.path))
        return file_

    def _read(self) -> None:
        if not self.path.exists():
            return
        number = position = 0
        # With a buffer of its own.
        with self.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                if is_torn(raw):
                    self._cut(raw, number, position)
                    return
                text = decode_line(raw, self.path, number, position)
                if text.strip():
                    with at_line(self.path, number):
                        self._see(_answer(text))
                position += len(raw)
        if self._file is not None and number and not raw.endswith(b"\n"):
            _write(self._file, b"\n")

    def _cut(self, raw: bytes, number: int, position: int) -> None:
        if raw[: len(_BEGINNING)] != _BEGINNING[: len(raw)]:
            with at_line(self.path, number):
                raise RowError(_FOREIGN)
        self.torn = len(raw)
        if self._file is not None:
            self._file.truncate(position)


def _answer(line: str) -> Dict[str, Any]:
    row = parse_row(line)
    if not is_answer(row):
        raise RowError(_FOREIGN)
    return row


def _write(file_: BinaryIO, data: bytes) -> None:
    while data:
        data = data[file_.write(data) :]
