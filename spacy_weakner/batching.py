"""Putting sequences together that are about as long, since a padded batch costs as much as its longest times their
number."""

from typing import List, Sequence


def group_by_length(lengths: Sequence[int], padded: int) -> List[List[int]]:
    """Group sequences.

    lengths (Sequence[int]): Their lengths; those of length 0 are left out.
    padded (int): Size of a group when padded, at most, unless one sequence alone is longer.
    RETURNS (List[List[int]]): Indices, the shortest first.
    """
    groups: List[List[int]] = []
    for i in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
        if not groups or lengths[i] * (len(groups[-1]) + 1) > padded:
            groups.append([])
        groups[-1].append(i)
    return groups
