"""What the reader of a format offers."""

from dataclasses import dataclass, field
from typing import AbstractSet, Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from ..rows import RowCounts
from .location import Item, Place
from .offsets import CODE_POINTS
from .records import Record

NOT_TEXT = "records without a text, dropped"


@dataclass
class Context:
    """What readers of records may need.

    counts (RowCounts): Where to count.
    labels (Tuple[str, ...]): Names of tags that are numbers.
    """

    counts: RowCounts = field(default_factory=RowCounts)
    labels: Tuple[str, ...] = ()

    def pass_over(self, row: Dict[str, Any], known: AbstractSet[Any]) -> List[str]:
        """Count the keys that a reader does not know, and that may hold annotations: lists and objects.

        row (Dict[str, Any]): The row.
        known (AbstractSet[Any]): The keys that are read, or hold something else.
        RETURNS (List[str]): The keys.
        """
        unknown = [key for key, value in row.items() if value and isinstance(value, (list, dict)) and key not in known]
        self.counts.ignored.update(unknown)
        self.counts.lists.update(unknown)
        return unknown


class Tool(NamedTuple):
    """How the records of a tool are read, and made.

    read (Callable[[Any, Context], Optional[Record]]): Reads what is one record; None where there is nothing to keep.
    gather (Optional[Callable[[Iterable[Item]], Iterator[Item]]]): Brings rows together that are about one text: its
        items are lists of rows.
    unit (str): What the offsets of the tool count, where nothing in the file tells.
    sure (bool): Whether it always does.
    write (Optional[Callable]): Makes rows of a Doc: takes the Doc and a counter of what is lost.
    """

    read: Callable[[Any, Context], Optional[Record]]
    gather: Optional[Callable[[Iterable[Item]], Iterator[Tuple[Place, Any]]]] = None
    unit: str = CODE_POINTS
    sure: bool = True
    write: Optional[Callable[..., Iterable[Any]]] = None
