"""Putting sequences together that are about as long, since a padded batch costs as much as its longest times their
number."""

from typing import List, Sequence


def group_by_length(lengths: Sequence[int], padded: int) -> List[List[int]]:
    """Group sequences of about the same length, the shortest first: lists of indices. Those of length 0 are left out. A
    group has at most the size `padded` when padded, unless one sequence alone is longer."""
    groups: List[List[int]] = []
    for i in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
        if not groups or lengths[i] * (len(groups[-1]) + 1) > padded:
            groups.append([])
        groups[-1].append(i)
    return groups
