"""Named arrays in a file in the safetensors format, which is mapped into memory instead of read. An additional key of
its metadata has checksums of the arrays, which the format lacks."""

import io
import json
import mmap
import os
import zlib
from pathlib import Path
from typing import IO, Any, Dict, NamedTuple, Union

import numpy

from ..errors import Errors, WeaknerError
from ..files import atomic_path, existing, parse_json

_DTYPES = {"U8": "<u1", "U16": "<u2", "U32": "<u4", "U64": "<u8"}
_KEY = "spacy_weakner"
_ALIGNMENT = 8
_MISSING = "a pipeline without this file is incomplete: copy the pipeline again, or initialize it again"

Arrays = Dict[str, numpy.ndarray]


class _Stored(NamedTuple):
    dtype: str
    start: int
    end: int
    crc32: int


class ArrayFile:
    """The arrays in a file. The checksum of an array is verified when it is looked up."""

    def __init__(self, buffer: Union[bytes, mmap.mmap], name: str) -> None:
        self._buffer = buffer
        self._name = name
        begin = 8 + int.from_bytes(buffer[:8], "little")
        try:
            header = parse_json(buffer[8:begin])
            described = header.pop("__metadata__")[_KEY]
            text, crc32 = described[8:], int(described[:8], 16)
            if zlib.crc32(text.encode("utf-8")) != crc32:
                raise self.damaged("wrong checksum of the header")
            described = parse_json(text)
            self.meta: Dict[str, Any] = described["meta"]
            self._arrays = {}
            for key, checksum in described["crc32"].items():
                start, end = header[key]["data_offsets"]
                self._arrays[key] = _Stored(
                    _DTYPES[header[key]["dtype"]], int(begin + start), int(begin + end), checksum
                )
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise self.damaged(f"unexpected header: {error}") from error
        length = max((stored.end for stored in self._arrays.values()), default=begin)
        if length != len(buffer):
            raise self.damaged(f"{len(buffer)} bytes instead of {length}")

    def get(self, name: str, dtype: str) -> numpy.ndarray:
        """Return a read-only view of an array, which must have the given type, such as "<u4"."""
        stored = self._arrays.get(name)
        if stored is None or stored.dtype != dtype:
            raise self.damaged(f"no array '{name}' of the type {dtype}")
        count = (stored.end - stored.start) // numpy.dtype(dtype).itemsize
        try:
            view = numpy.frombuffer(self._buffer, dtype=dtype, count=max(0, count), offset=stored.start)
        except (OverflowError, ValueError) as error:
            raise self.damaged(f"'{name}' is outside of the file") from error
        if zlib.crc32(view.data) != stored.crc32:
            raise self.damaged(f"wrong checksum of '{name}'")
        return view

    def damaged(self, reason: str) -> WeaknerError:
        """Return the error to raise for invalid contents."""
        cure = "Initialize the gazetteer_ruler again, or copy the pipeline again"
        return WeaknerError(Errors.WK206.format(path=self._name, reason=reason, cure=cure))


def open_arrays(path: Path) -> ArrayFile:
    """Map a file into memory. The file may be replaced (by renaming) or removed while it is in use."""
    with existing(path, _MISSING).open("rb") as file_:
        if os.fstat(file_.fileno()).st_size == 0:
            return ArrayFile(b"", str(path))
        return ArrayFile(mmap.mmap(file_.fileno(), 0, access=mmap.ACCESS_READ), str(path))


def write_arrays(path: Path, meta: Dict[str, Any], arrays: Arrays) -> None:
    """Write one-dimensional arrays of unsigned integers and JSON metadata to a file, atomically."""
    with atomic_path(path) as temporary, temporary.open("wb") as file_:
        _write(file_, meta, arrays)


def dump_arrays(meta: Dict[str, Any], arrays: Arrays) -> bytes:
    """Return the bytes that `write_arrays` would write, for `ArrayFile`."""
    stream = io.BytesIO()
    _write(stream, meta, arrays)
    return stream.getvalue()


def _write(stream: IO[bytes], meta: Dict[str, Any], arrays: Arrays) -> None:
    # Not with the library, which copies all arrays first.
    # As the format requires: without gaps, arrays with the largest items first, so that all are aligned.
    arrays = {name: numpy.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: Dict[str, Any] = {}
    end = 0
    for name in names:
        start, end = end, end + arrays[name].nbytes
        dtype = f"U{8 * arrays[name].itemsize}"
        header[name] = {"dtype": dtype, "shape": [arrays[name].size], "data_offsets": [start, end]}
    described = json.dumps({"meta": meta, "crc32": {name: zlib.crc32(arrays[name].data) for name in names}})
    checksum = zlib.crc32(described.encode("utf-8"))
    text = json.dumps({"__metadata__": {_KEY: f"{checksum:08x}{described}"}, **header}).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    stream.write(len(text).to_bytes(8, "little"))
    stream.write(text)
    for name in names:
        stream.write(arrays[name].data)
