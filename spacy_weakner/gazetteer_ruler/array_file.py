"""Named arrays in one file that is mapped into memory, not read: no pickle, nothing in it is executed.

8 bytes   magic
4 bytes   length of the header, little-endian
4 bytes   CRC-32 of the header, little-endian
header    JSON: {"meta": {...}, "arrays": [{"name", "dtype", "size", "offset", "crc32"}, ...], "length": ...}
arrays    one-dimensional, little-endian, each at an offset that is a multiple of 64
"""

import io
import json
import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import IO, Any, Dict, List, NamedTuple, Tuple, Union

import numpy

from ..errors import Errors, WeaknerError
from ..files import atomic_path, existing, parse_json

MAGIC = b"wknrarr1"
DTYPES = ("<u1", "<u2", "<u4", "<u8")
_ALIGNMENT = 64
_PREFIX = len(MAGIC) + 8
_MISSING = "a pipeline without this file is incomplete: copy the pipeline again, or initialise it anew"

Arrays = Dict[str, numpy.ndarray]


class _Item(NamedTuple):
    name: str
    dtype: str
    size: int
    offset: int
    crc32: int


class ArrayFile:
    """Arrays that were stored together, with a description. They are checked when they are asked for.

    meta (Dict[str, Any]): What else was stored: anything JSON can hold.
    """

    def __init__(self, buffer: Union[bytes, mmap.mmap], name: str) -> None:
        """Check the header, and that every array lies within the contents.

        buffer (Union[bytes, mmap.mmap]): The contents.
        name (str): What to call it in error messages.
        RAISES (WeaknerError): If the header is malformed or does not fit the contents.
        """
        self._buffer = buffer
        self._name = name
        text = self._header()
        try:
            header = parse_json(text)
            self.meta: Dict[str, Any] = dict(header["meta"])
            self._items = {item["name"]: _Item(**item) for item in header["arrays"]}
            length = header["length"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self.damaged(f"unexpected header: {error}") from error
        if length != len(buffer):
            raise self.damaged(f"{len(buffer)} bytes instead of {length}")
        for item in self._items.values():
            self._check_bounds(item)

    def __getitem__(self, name: str) -> numpy.ndarray:
        """Get an array, read-only, after a check of its contents against the stored checksum.

        name (str): Its name.
        RETURNS (numpy.ndarray): A view of the file.
        RAISES (WeaknerError): If there is none, or it is damaged.
        """
        item = self._items.get(name)
        if item is None:
            raise self.damaged(f"no array '{name}'")
        view = numpy.frombuffer(self._buffer, dtype=item.dtype, count=item.size, offset=item.offset)
        if zlib.crc32(view.data) != item.crc32:
            raise self.damaged(f"wrong checksum of '{name}'")
        return view

    def typed(self, name: str, dtype: str) -> numpy.ndarray:
        """Get an array as `[]` does, and check its type.

        name (str): Its name.
        dtype (str): One of `DTYPES`.
        RETURNS (numpy.ndarray): A view of the file.
        RAISES (WeaknerError): If there is none, it is of another type, or it is damaged.
        """
        view = self[name]
        if view.dtype != numpy.dtype(dtype):
            raise self.damaged(f"'{name}' is of the type {view.dtype.str} instead of {dtype}")
        return view

    def _header(self) -> bytes:
        start = self._buffer[:_PREFIX]
        if len(start) < _PREFIX or not start.startswith(MAGIC):
            raise self.damaged("it does not begin as such a file does")
        length, crc32 = struct.unpack_from("<II", start, len(MAGIC))
        header = self._buffer[_PREFIX : _PREFIX + length]
        if len(header) < length:
            raise self.damaged("the header is cut off")
        if zlib.crc32(header) != crc32:
            raise self.damaged("wrong checksum of the header")
        return header

    def _check_bounds(self, item: _Item) -> None:
        numbers = (item.size, item.offset, item.crc32)
        if item.dtype not in DTYPES or any(type(n) is not int or n < 0 for n in numbers):
            raise self.damaged(f"unexpected header of '{item.name}'")
        if item.offset % _ALIGNMENT or item.offset + item.size * int(item.dtype[2:]) > len(self._buffer):
            raise self.damaged(f"'{item.name}' lies outside of it")

    def __deepcopy__(self, memo: Any) -> "ArrayFile":
        return self  # nothing in it ever changes

    def damaged(self, reason: str) -> WeaknerError:
        """RETURNS (WeaknerError): The error to raise if the contents are not what they should be."""
        return WeaknerError(Errors.WK210.format(path=self._name, reason=reason))


def open_arrays(path: Path) -> ArrayFile:
    """Map a file into memory. It may be replaced (renamed over) or removed while it is in use.

    path (Path): The file.
    RETURNS (ArrayFile): Its arrays.
    RAISES (WeaknerError): If it does not exist or is malformed.
    """
    with existing(path, _MISSING).open("rb") as file_:
        if os.fstat(file_.fileno()).st_size == 0:
            return ArrayFile(b"", str(path))
        return ArrayFile(mmap.mmap(file_.fileno(), 0, access=mmap.ACCESS_READ), str(path))


def write_arrays(path: Path, meta: Dict[str, Any], arrays: Arrays) -> None:
    """Write arrays to a file, whole or not at all.

    path (Path): The file.
    meta (Dict[str, Any]): What else to store: anything JSON can hold.
    arrays (Arrays): One-dimensional arrays of unsigned integers, by name.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as file_:
        _write(file_, meta, arrays)


def dump_arrays(meta: Dict[str, Any], arrays: Arrays) -> bytes:
    """The contents that `write_arrays` would write, for `ArrayFile`."""
    stream = io.BytesIO()
    _write(stream, meta, arrays)
    return stream.getvalue()


def _write(stream: IO[bytes], meta: Dict[str, Any], arrays: Arrays) -> None:
    header, offsets = _layout(meta, arrays)
    stream.write(header)
    for array, offset in zip(arrays.values(), offsets, strict=True):
        stream.write(b"\0" * (offset - stream.tell()))
        stream.write(_little(array).data)


def _layout(meta: Dict[str, Any], arrays: Arrays) -> Tuple[bytes, List[int]]:
    """What stands before the arrays, and where each of them goes. Offsets depend on the header's length, which depends
    on the offsets: it is padded to what the longest offsets could need."""
    little = {name: _little(array) for name, array in arrays.items()}
    crcs = [zlib.crc32(array.data) for array in little.values()]

    def render(start: int) -> Tuple[bytes, List[int]]:
        offsets, end = [], start
        for array in little.values():
            offsets.append(-(-end // _ALIGNMENT) * _ALIGNMENT)
            end = offsets[-1] + array.nbytes
        items = [
            _Item(name, array.dtype.str.replace("|", "<"), array.size, offset, crc)._asdict()
            for (name, array), offset, crc in zip(little.items(), offsets, crcs, strict=True)
        ]
        text = json.dumps({"meta": meta, "arrays": items, "length": max(end, start)})
        return text.encode("utf-8"), offsets

    longest = len(render(1 << 40)[0])
    text, offsets = render(_PREFIX + longest)
    text = text.ljust(longest)
    return MAGIC + struct.pack("<II", longest, zlib.crc32(text)) + text, offsets


def _little(array: numpy.ndarray) -> numpy.ndarray:
    return numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
