"""The file of completions: each row is appended at once and whole, so that a run that was killed can be resumed."""

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Optional, Set, Tuple

from ...corpus.answers import ASKED, KEY, is_answer, is_torn
from ...corpus.jsonl import at_line, parse_row
from ...corpus.rows import RowError, show
from ...corpus.sentences import sentence_key
from ...errors import Errors, WeaknerError
from ...files import decode_line
from ...scratch import try_lock
from .config import AskConfig

_FOREIGN = "this is no row of 'ask'. Give another file for the answers"
_BEGINNING = b'{"key": "'
_SHOWN = 3
_MAX_TOKENS = 1 << 53


@dataclass
class CacheCounts:
    """What is in a file of completions.

    rows (int): Completions of this prompt.
    unparsed (int): Those that could not be parsed; their texts count as not looked at.
    cut (int): Those of them that were cut off at the limit of tokens.
    mentions (Counter[str]): Mentions per label.
    others (Counter[str]): Mentions left out since their label (empty: none) was not asked for, per label.
    not_found (int): Mentions that are not in their texts.
    lost (List[str]): The first of those.
    answer_tokens (int): Tokens of the completions of this prompt.
    tokens_in, tokens_out (int): Tokens of all requests and completions, of all prompts.
    estimated (int): Rows whose tokens the server did not count.
    """

    rows: int = 0
    unparsed: int = 0
    cut: int = 0
    mentions: "Counter[str]" = field(default_factory=Counter)
    others: "Counter[str]" = field(default_factory=Counter)
    not_found: int = 0
    lost: List[str] = field(default_factory=list)
    answer_tokens: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0


class Cache:
    """The completions of a prompt, in a file that may hold those of others. While it is open for writing, no other
    process can write to it; otherwise nothing changes on disk."""

    def __init__(self, path: Path, config: AskConfig, write: bool) -> None:
        self.path = path
        self.config = config
        self.counts = CacheCounts()
        self.torn = 0  # bytes of a last row that a killed process left unfinished
        self._keys: Set[str] = set()
        self._file: Optional[BinaryIO] = None
        if path.is_dir():
            raise WeaknerError(Errors.WK109.format(path=path))
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab+", buffering=0)  # what is written survives the process
        try:
            # The system releases the lock however this process ends.
            if self._file is not None and try_lock(self._file) is False:
                raise WeaknerError(Errors.WK768.format(path=path))
            if path.exists():
                self._read()
        except BaseException:
            self.close()
            raise

    def __contains__(self, key: str) -> bool:
        """True if a request need not be sent."""
        return key in self._keys

    def append(self, row: Dict[str, Any]) -> None:
        """Add a row, whole or not at all."""
        assert self._file is not None
        end = self._file.seek(0, os.SEEK_END)
        try:
            _write(self._file, (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))
        except OSError as error:
            self._file.truncate(end)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._add(row)

    def close(self) -> None:
        """Close the file, for others to write."""
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
        # What was cut off at a lower limit is requested again.
        if not 0 < cut < (self.config.limit or 0):
            self._keys.add(row[KEY])
        counts.rows += 1
        counts.cut += bool(cut)
        counts.answer_tokens += tokens_out
        mentions, others = row.get("ents"), row.get("others") or []
        if not isinstance(mentions, list):
            counts.unparsed += 1
            return
        if not isinstance(others, list):
            raise RowError(f"'others' must be a list, got {show(others)}")
        counts.others.update(_phrase_and_label(other)[1] for other in others)
        text = sentence_key(str(row.get("text")))
        for phrase, label in map(_phrase_and_label, mentions):
            counts.mentions[label] += 1
            if phrase is not None and sentence_key(phrase) not in text:
                counts.not_found += 1
                if len(counts.lost) < _SHOWN and phrase not in counts.lost:
                    counts.lost.append(phrase)


def _phrase_and_label(item: Any) -> Tuple[Optional[str], str]:
    """Of a mention, or of another that was left out; a mention given by its offsets has no phrase."""
    phrase: Any = ""
    label: Any = None
    if isinstance(item, dict):
        phrase, label = item.get("text", ""), item.get("label")
    elif isinstance(item, list) and len(item) in (2, 3):
        phrase, label = item[0] if len(item) == 2 else None, item[-1]
    if not isinstance(label, str) or not (phrase is None or isinstance(phrase, str)):
        raise RowError(f"this is no mention of 'ask': {show(item)}")
    return phrase, label


def _tokens(value: Any) -> int:
    return value if type(value) is int and 0 < value < _MAX_TOKENS else 0


def _write(file_: BinaryIO, data: bytes) -> None:
    while data:
        data = data[file_.write(data) :]
