"""Names of tags that datasets hold as numbers."""

from functools import lru_cache
from typing import Sequence, Tuple

from ..conll import check_tag
from ..tags import OUTSIDE, TAG, UNTYPED

# What stands where nothing is known: in labels of Transformers, and in ClassLabel.
UNKNOWN = (-100, -1)


@lru_cache(maxsize=16)
def tag_names(names: Tuple[str, ...]) -> Tuple[str, ...]:
    """Names as tags: where no one of them has a prefix, they are types, and neighbours of one type are one entity.

    names (Tuple[str, ...]): The names.
    RETURNS (Tuple[str, ...]): The tags; prefixes alone are left as they are.
    RAISES (RowError): If some have a prefix, and others not.
    """
    types = [name for name in names if name != OUTSIDE]
    if all(map(UNTYPED.fullmatch, types)):
        return names
    if not any(map(TAG.fullmatch, types)):
        return tuple(name if name == OUTSIDE else f"I-{name}" for name in names)
    return tuple(name if name == OUTSIDE else check_tag(name) for name in names)


def is_tag_names(names: Sequence[str]) -> bool:
    """Whether names of classes may be those of tags: one of them is "O"."""
    return OUTSIDE in names
