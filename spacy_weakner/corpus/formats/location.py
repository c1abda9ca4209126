"""Where records stand, for messages."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, NamedTuple, Tuple

from ..jsonl import at_line

LINE, ITEM, ROW = "line", "item", "row"


class Place(NamedTuple):
    """Where a record stands.

    unit (str): "line", or "item" of an array, or "row" of a table.
    number (int): From 1.
    """

    unit: str
    number: int


Item = Tuple[Place, Any]


@contextmanager
def at(path: Path, place: Place) -> Iterator[None]:
    """Turn a `RowError` into an error that names file and place.

    path (Path): The file.
    place (Place): The place.
    """
    with at_line(path, place.number, place.unit):
        yield
