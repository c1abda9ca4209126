"""Names of tags that datasets hold as numbers."""

from functools import lru_cache
from typing import Sequence, Tuple

from ..annotations.rows import RowError
from ..annotations.tags import TAG

# What stands where nothing is known: in labels of Transformers, and in ClassLabel.
UNKNOWN = (-100, -1)
OUTSIDE = "O"


@lru_cache(maxsize=16)
def tag_names(names: Tuple[str, ...]) -> Tuple[str, ...]:
    """Names as tags: where no one of them has a prefix, they are types, and neighbours of one type are one entity.

    names (Tuple[str, ...]): The names.
    RETURNS (Tuple[str, ...]): The tags.
    RAISES (RowError): If some have a prefix, and others not.
    """
    types = [name for name in names if name != OUTSIDE]
    if not any(TAG.fullmatch(name) for name in types):
        return tuple(name if name == OUTSIDE else f"I-{name}" for name in names)
    return tuple(name if name == OUTSIDE else check_tag(name) for name in names)


def check_tag(tag: str) -> str:
    """Check a tag.

    tag (str): The tag.
    RETURNS (str): The tag.
    RAISES (RowError): If it is none.
    """
    if tag != OUTSIDE and not TAG.fullmatch(tag):
        raise RowError(f"'{tag}' is no tag: expected O, or one of B I E S L U with a type, like B-PER")
    return tag


def is_tag_names(names: Sequence[str]) -> bool:
    """Whether names of classes may be those of tags: one of them is "O"."""
    return OUTSIDE in names
