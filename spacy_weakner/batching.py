"""Batches of sequences. A padded batch costs as much as its longest sequence times its size."""

from typing import Any, List, Sequence

import numpy


def group_by_length(lengths: Sequence[int], padded: int) -> List[List[int]]:
    """Group sequences of similar length, the shortest first, as lists of indices. Sequences of length 0 are left out. A
    padded group has at most the size `padded`, unless a single sequence is longer."""
    groups: List[List[int]] = []
    for i in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
        if not groups or lengths[i] * (len(groups[-1]) + 1) > padded:
            groups.append([])
        groups[-1].append(i)
    return groups


def split_rows(rows: Any, like: Sequence[Any]) -> List[Any]:
    """Split an array into consecutive arrays with the lengths of the given ones (or Docs)."""
    ends = numpy.cumsum([len(other) for other in like]).tolist()
    return [rows[end - len(other) : end] for end, other in zip(ends, like, strict=True)]
