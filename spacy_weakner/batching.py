"""Grouping of sequences of similar length: a padded batch costs as much as its longest sequence times its size."""

from typing import List, Sequence


def group_by_length(lengths: Sequence[int], padded: int) -> List[List[int]]:
    """Group sequences of similar length, the shortest first, as lists of indices. Sequences of length 0 are left out. A
    padded group has at most the size `padded`, unless a single sequence is longer."""
    groups: List[List[int]] = []
    for i in sorted((i for i, length in enumerate(lengths) if length), key=lambda i: lengths[i]):
        if not groups or lengths[i] * (len(groups[-1]) + 1) > padded:
            groups.append([])
        groups[-1].append(i)
    return groups
