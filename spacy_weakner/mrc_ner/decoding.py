"""From probabilities of boundaries to spans."""

from typing import List, Optional, Tuple

import numpy

from ..losses import Array


def nearest_ends(starts: Array, ends: Array, max_width: Optional[int] = None) -> List[Tuple[int, int]]:
    """Pair every start with the nearest end that does not come before it (Li et al. 2020; Xue et al. 2020). Several
    starts may share an end.

    starts (Array): Shape (n_tokens,): True where a span begins.
    ends (Array): Shape (n_tokens,): True where one ends (with this token).
    max_width (Optional[int]): Tokens of a span, at most; starts whose nearest end is further away have none.
    RETURNS (List[Tuple[int, int]]): Spans, ends exclusive, by start.
    """
    begins, closes = numpy.flatnonzero(starts), numpy.flatnonzero(ends)
    nearest = numpy.searchsorted(closes, begins)
    found = [(int(b), int(closes[i]) + 1) for b, i in zip(begins, nearest, strict=True) if i < len(closes)]
    return [(start, end) for start, end in found if max_width is None or end - start <= max_width]
