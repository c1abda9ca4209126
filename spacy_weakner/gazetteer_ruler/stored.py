"""Storage of components that wrap a `GazetteerRuler`."""

from pathlib import Path
from typing import Iterable, TypeVar, Union

from .component import GazetteerRuler

T = TypeVar("T", bound="StoredAsTerms")


class StoredAsTerms:
    """A base of components that store nothing but the terms of a `GazetteerRuler`."""

    _ruler: GazetteerRuler

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the terms."""
        return self._ruler.to_bytes(exclude=exclude)

    def from_bytes(self: T, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> T:
        """Load the output of `to_bytes`, replacing earlier terms."""
        self._ruler.from_bytes(bytes_data, exclude=exclude)
        return self

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write the terms to a folder."""
        self._ruler.to_disk(path, exclude=exclude)

    def from_disk(self: T, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> T:
        """Load the output of `to_disk`, replacing earlier terms."""
        self._ruler.from_disk(path, exclude=exclude)
        return self
