"""The file of completions. Each row is appended at once and whole, so that a killed run can be resumed."""

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Optional, Set

from ...corpus.answers import ASKED, KEY, is_answer, is_torn
from ...corpus.counts import RowError, at_line, show_value
from ...corpus.jsonl import parse_row
from ...corpus.sentences import sentence_key
from ...errors import Errors, WeaknerError
from ...files import decode_line
from ..alignment import read_mentions
from .config import AskConfig

_FOREIGN = "this row was not written by 'ask'. Give another file for the answers"
_BEGINNING = b'{"key": "'
_SHOWN = 3
_MAX_TOKENS = 1 << 53


@dataclass
class CacheCounts:
    """The contents of a file of completions."""

    rows: int = 0  # completions of this prompt
    unparsed: int = 0  # of these, completions that could not be parsed; their texts count as not labeled
    cut: int = 0  # of these, completions that were cut off at the token limit
    mentions: "Counter[str]" = field(default_factory=Counter)  # by label
    others: "Counter[str]" = field(default_factory=Counter)  # left out because their label (or "") was not requested
    not_found: int = 0  # mentions that do not occur in their texts,
    lost: List[str] = field(default_factory=list)  # and the first of them
    answer_tokens: int = 0  # tokens of the completions of this prompt
    tokens_in: int = 0  # tokens of all requests,
    tokens_out: int = 0  # and of all completions, for all prompts
    estimated: int = 0  # rows whose tokens the server did not count


class Cache:
    """The completions of a prompt, in a file that may also hold completions of other prompts. Unless it is opened for
    writing, nothing changes on disk."""

    def __init__(self, path: Path, config: AskConfig, write: bool) -> None:
        self.path = path
        self.config = config
        self.counts = CacheCounts()
        self.torn = 0  # bytes of a last row left unfinished by a killed process
        self._keys: Set[str] = set()
        self._file: Optional[BinaryIO] = None
        if path.is_dir():
            raise WeaknerError(Errors.WK109.format(path=path))
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab+", buffering=0)  # unbuffered: what is written survives the process
        try:
            if path.exists():
                self._read()
        except BaseException:
            self.close()
            raise

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def append(self, row: Dict[str, Any]) -> None:
        """Append a row, whole or not at all."""
        assert self._file is not None
        end = self._file.seek(0, os.SEEK_END)
        try:
            _write(self._file, (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))
        except OSError as error:
            self._file.truncate(end)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._add(row)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self) -> None:
        raw, position = b"\n", 0
        with self.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                with at_line(self.path, number):
                    if is_torn(raw):
                        if raw[: len(_BEGINNING)] != _BEGINNING[: len(raw)]:
                            raise RowError(_FOREIGN)
                        self.torn = len(raw)
                        if self._file is not None:
                            self._file.truncate(position)
                        return
                    text = decode_line(raw, self.path, number, position)
                    if text.strip():
                        self._add(parse_row(text))
                position += len(raw)
        if self._file is not None and not raw.endswith(b"\n"):
            _write(self._file, b"\n")

    def _add(self, row: Dict[str, Any]) -> None:
        if not is_answer(row):
            raise RowError(_FOREIGN)
        counts = self.counts
        tokens_out, cut = _tokens(row.get("tokens_out")), _tokens(row.get("cut"))
        counts.tokens_in += _tokens(row.get("tokens_in"))
        counts.tokens_out += tokens_out
        counts.estimated += bool(row.get("estimated"))
        if row[ASKED] != self.config.asked:
            return
        # Completions that were cut off at a lower limit are requested again.
        if not 0 < cut < (self.config.limit or 0):
            self._keys.add(row[KEY])
        counts.rows += 1
        counts.cut += bool(cut)
        counts.answer_tokens += tokens_out
        mentions = read_mentions({"text": row.get("text"), "ents": row.get("ents")})
        others = row.get("others") or []
        if not isinstance(others, list) or not all(map(_is_pair, others)):
            raise RowError(f"'others' must be a list of pairs, got {show_value(others)}")
        counts.unparsed += mentions is None
        counts.others.update(label for _, label in others)
        text = sentence_key(str(row.get("text")))
        for mention in mentions or ():
            counts.mentions[mention.label] += 1
            if mention.phrase is not None and sentence_key(mention.phrase) not in text:
                counts.not_found += 1
                if len(counts.lost) < _SHOWN and mention.phrase not in counts.lost:
                    counts.lost.append(mention.phrase)


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)


def _tokens(value: Any) -> int:
    return value if type(value) is int and 0 < value < _MAX_TOKENS else 0


def _write(file_: BinaryIO, data: bytes) -> None:
    while data:
        data = data[file_.write(data) :]
