"""Rows of different length in two arrays, which can be stored in a file."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Iterator, Sequence

import numpy

from ..ty import Array, Hashes, Ints
from .array_file import ArrayFile, Arrays


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different length."""

    values: Array  # the concatenated rows
    offsets: Hashes  # shape (n_rows + 1,): start of each row in `values`

    @classmethod
    def of(cls, values: Any, lengths: Any, dtype: str) -> "Ragged":
        offsets = numpy.concatenate([numpy.zeros(1, dtype="uint64"), numpy.cumsum(lengths, dtype="uint64")])
        return cls(numpy.asarray(values, dtype=dtype), offsets)

    @classmethod
    def of_texts(cls, texts: Sequence[bytes]) -> "Ragged":
        return cls.of(numpy.frombuffer(b"".join(texts), dtype="uint8"), list(map(len, texts)), "uint8")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Array:
        return self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def text(self, row: int) -> str:
        return self[row].tobytes().decode("utf-8")

    def encoded(self) -> Iterator[bytes]:
        """Yield the bytes of each row; all rows are copied."""
        data = self.values.tobytes()
        size = self.values.itemsize
        return (data[size * begin : size * end] for begin, end in pairwise(self.offsets.tolist()))

    def texts(self) -> Iterator[str]:
        return (text.decode("utf-8") for text in self.encoded())

    def take(self, rows: Ints) -> "Ragged":
        """Return some rows in the given order."""
        lengths = numpy.diff(self.offsets)[rows].astype("int64")
        taken = Ragged.of([], lengths, self.values.dtype.str)
        moves = self.offsets[rows].astype("int64") - taken.offsets[:-1].astype("int64")
        return Ragged(self.values[numpy.repeat(moves, lengths) + numpy.arange(lengths.sum())], taken.offsets)

    def plus(self, other: "Ragged") -> "Ragged":
        offsets = numpy.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]])
        return Ragged(numpy.concatenate([self.values, other.values]), offsets)

    def to_arrays(self, name: str) -> Arrays:
        return {name: self.values, f"{name}_offsets": self.offsets}

    @classmethod
    def from_arrays(cls, file_: ArrayFile, name: str, dtype: str) -> "Ragged":
        """Use the arrays of a file without copying them."""
        return cls(file_.get(name, dtype), file_.get(f"{name}_offsets", "<u8"))
