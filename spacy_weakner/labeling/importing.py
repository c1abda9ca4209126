"""Labels made elsewhere (by an LLM, by GLiNER, by hand), put onto the Docs of a corpus.

The file is JSONL in any order; rows are found by "id", or by their text. In memory are only hashes and places of rows:
20 bytes for every key (id, text) and 8 for every line, in a file that processes share.
"""

import gzip
import shutil
import zlib
from array import array
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.jsonl import at_line, parse_row
from ..corpus.rows import Row, RowError, read_identifier
from ..corpus.sentences import sentence_key
from ..corpus.weak import get_id
from ..errors import Errors, WeaknerError
from ..files import decode_line, existing
from ..gazetteer_ruler.array_file import open_arrays, write_arrays
from .mentions import Found, find_mentions, read_mentions, row_text

_INDEX = "{}.rows"
_UNPACKED = "{}.jsonl"


class Lookup(NamedTuple):
    """What a file says about a Doc.

    line (int): The line of its row, from 1; 0 if there is none.
    found (Optional[Found]): The spans; None if there is no row.
    other_text (bool): Whether the row with the Doc's id was passed over because it has another text.
    """

    line: int
    found: Optional[Found]
    other_text: bool


class LabelFile:
    """The rows of a file, by id and by text.

    path (Path): The file as its user knows it.
    folder (Path): Where `index_labels` has put what belongs to it.
    key (str): Under which name.
    source (str): Name of the source, for rows that hold labels of several.
    misaligned (str): What to do with spans that do not end at token borders; see `mentions.align`.
    """

    def __init__(self, path: Path, folder: Path, key: str, source: str, misaligned: str) -> None:
        self.path = path
        self.source = source
        self.misaligned = misaligned
        index = open_arrays(folder / _INDEX.format(key))
        self.n_rows: int = index.meta["rows"]
        self.repeated: int = index.meta["repeated"]
        self._hashes = index.get("hashes", "<u8")
        self._lines = index.get("lines", "<u4")
        self._offsets = index.get("offsets", "<u8")
        unpacked = folder / _UNPACKED.format(key)
        self._file = (unpacked if unpacked.exists() else path).open("rb")

    def look_up(self, docs: Sequence[Doc]) -> Iterator[Lookup]:
        """Find the rows of some Docs. Of several rows for a Doc the first in the file counts.

        docs (Sequence[Doc]): The Docs.
        YIELDS (Lookup): One per Doc.
        RAISES (WeaknerError): If a span does not fit the tokens, and that is to be an error.
        """
        texts = [sentence_key(doc.text) for doc in docs]
        ids = [get_id(doc) for doc in docs]
        by_id = self._first_places(["" if id_ is None else _id_key(id_) for id_ in ids])
        by_text = self._text_places(texts)
        for doc, id_, text, id_place, text_place in zip(docs, ids, texts, by_id, by_text, strict=True):
            other_text = False
            line, row = (0, None) if id_ is None else self._row(id_place, id_=id_)
            if row is not None and row_text(row) not in (None, text):
                line, row, other_text = 0, None, True
            if row is None:
                line, row = self._row(text_place, text=text)
            if row is None:
                yield Lookup(0, None, other_text)
                continue
            with at_line(self.path, line):
                mentions = read_mentions(row, self.source)
                yield Lookup(line, find_mentions(doc, mentions or [], self.misaligned), other_text)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _text_places(self, texts: Sequence[str]) -> List[int]:
        return self._first_places([_text_key(text) for text in texts])

    def _first_places(self, keys: Sequence[str]) -> List[int]:
        wanted = numpy.asarray([_hash(key) for key in keys], dtype="uint64")
        places: List[int] = numpy.searchsorted(self._hashes, wanted).tolist()
        return places

    def _row(self, place: int, *, id_: Optional[str] = None, text: Optional[str] = None) -> Tuple[int, Optional[Row]]:
        """The first row behind a place of the index that really has this id or text."""
        return next(self._rows(place, id_=id_, text=text), (0, None))

    def _rows(self, place: int, *, id_: Optional[str] = None, text: Optional[str] = None) -> Iterator[Tuple[int, Row]]:
        """All of them, in the order of the file."""
        key = _text_key(text or "") if id_ is None else _id_key(id_)
        hash_ = _hash(key)
        while place < len(self._hashes) and int(self._hashes[place]) == hash_:
            line = int(self._lines[place])
            self._file.seek(int(self._offsets[line - 1]))
            row = parse_row(self._file.readline().decode("utf-8-sig"))
            if (row_text(row) == text) if id_ is None else (read_identifier(row.get("id")) == id_):
                yield line, row
            place += 1


def index_labels(
    path: Path, folder: Path, key: str, source: str, is_wanted: Optional[Callable[[Row], bool]] = None
) -> None:
    """Check all rows of a file, and write down where they are. A `.gz` file is unpacked.

    path (Path): The file.
    folder (Path): Where to write.
    key (str): Name of the files there.
    source (str): Name of the source, for rows that hold labels of several.
    is_wanted (Optional[Callable[[Row], bool]]): Which rows count; None: all.
    RAISES (WeaknerError): For anything malformed, with file, line and reason.
    """
    if path.suffix.lower() == ".gz":
        plain = folder / _UNPACKED.format(key)
        _unpack(path, plain)
    else:
        plain = path
    hashes, lines, offsets, primary = array("Q"), array("I"), array("Q"), array("Q")
    with existing(plain).open("rb") as file_:
        for line, (offset, raw) in enumerate(_raw_lines(file_), start=1):
            offsets.append(offset)
            text = decode_line(raw, path, line, offset)
            if not text.strip():
                continue
            with at_line(path, line):
                row = parse_row(text)
                keys = _row_keys(row, source) if is_wanted is None or is_wanted(row) else []
            for row_key in keys:
                hashes.append(_hash(row_key))
                lines.append(line)
            primary.extend(map(_hash, keys[:1]))
    order = numpy.argsort(numpy.frombuffer(hashes, dtype="uint64"), kind="stable")
    rows = len(numpy.unique(numpy.frombuffer(primary, dtype="uint64")))
    arrays = {
        "hashes": numpy.frombuffer(hashes, dtype="uint64")[order],
        "lines": numpy.asarray(lines, dtype="uint32")[order],
        "offsets": numpy.frombuffer(offsets, dtype="uint64"),
    }
    write_arrays(folder / _INDEX.format(key), {"rows": rows, "repeated": len(primary) - rows}, arrays)


def _row_keys(row: Row, source: str) -> List[str]:
    """The keys under which a row is found; none if it says that nobody has looked. Checks the whole row."""
    mentions = read_mentions(row, source)
    id_, text = read_identifier(row.get("id")), row_text(row)
    if id_ is None and text is None:
        raise RowError("neither 'id' nor 'text' nor 'tokens', so the row belongs to no document")
    if mentions is None:
        return []
    keys = [] if id_ is None else [_id_key(id_)]
    return keys if text is None else [*keys, _text_key(text)]


def _id_key(id_: str) -> str:
    return f"id {id_}"


def _text_key(text: str) -> str:
    return f"text {text}"


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode("utf-8"), digest_size=8).digest(), "little")


def _raw_lines(file_: BinaryIO) -> Iterator[Tuple[int, bytes]]:
    offset = 0
    for raw in file_:
        yield offset, raw
        offset += len(raw)


def _unpack(path: Path, target: Path) -> None:
    try:
        with gzip.open(existing(path), "rb") as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise WeaknerError(Errors.WK206.format(path=path, reason=error)) from error
