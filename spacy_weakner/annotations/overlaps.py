"""Choosing among spans that overlap."""

from typing import Any, List, Sequence, Tuple

import numpy


def without_overlaps(spans: Sequence[Tuple[int, int]], ranks: Any, n_tokens: int) -> List[int]:
    """Keep spans one after the other, each if it overlaps none that is kept already.

    spans (Sequence[Tuple[int, int]]): Start and end in tokens.
    ranks (Any): Shape (n,): the highest comes first; of equal ones the first.
    n_tokens (int): Length of the sentence.
    RETURNS (List[int]): Indices of those that are kept, by start.
    """
    free = numpy.ones(n_tokens, dtype=bool)
    chosen: List[int] = []
    for i in numpy.argsort(-numpy.asarray(ranks), kind="stable").tolist():
        start, end = spans[i]
        if free[start:end].all():
            free[start:end] = False
            chosen.append(i)
    return sorted(chosen, key=lambda i: spans[i][0])
