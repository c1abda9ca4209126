"""Enumerates the spans of a sentence to classify."""

from functools import lru_cache
from typing import Iterable, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..ty import SpanArray

# Maximum number of spans of a sentence that are cached.
_SMALL = 5_000
# Without a maximum width of entities: maximum number of spans of a Doc, and the width of spans that is always tried.
# They bound time and memory, which would grow with the square of the length.
MOST = 1_000_000
LEAST_WIDTH = 10


def widest(n_tokens: int, max_width: Optional[int] = None) -> int:
    """Return the maximum width of spans to classify.

    n_tokens (int): Number of tokens of the sentence.
    max_width (Optional[int]): The setting. None: any width in sentences of up to 1,000 tokens; in longer ones, the
        width at which there are a million spans, but at least 10.
    RETURNS (int): The number of tokens.
    """
    limit = max(LEAST_WIDTH, MOST // max(1, n_tokens)) if max_width is None else max_width
    return min(n_tokens, limit)


def enumerate_spans(n_tokens: int, max_width: Optional[int] = None) -> SpanArray:
    """Enumerate all spans of a sentence, by start and then by end.

    n_tokens (int): Number of tokens of the sentence.
    max_width (Optional[int]): Maximum number of tokens of a span; None: see `widest`.
    RETURNS (SpanArray): Shape (n_spans, 2): start and end (exclusive); read-only.
    """
    width = widest(n_tokens, max_width)
    return _remembered(n_tokens, width) if n_tokens * width <= _SMALL else _enumerate(n_tokens, width)


def _enumerate(n_tokens: int, width: int) -> SpanArray:
    starts, widths = numpy.divmod(numpy.arange(n_tokens * width, dtype="int64"), max(1, width))
    spans = numpy.stack([starts, starts + widths + 1], axis=1)
    spans = spans[spans[:, 1] <= n_tokens]
    spans.flags.writeable = False
    return spans


_remembered = lru_cache(maxsize=256)(_enumerate)


def span_index(spans: Iterable[Tuple[int, int]], n_tokens: int, max_width: Optional[int] = None) -> SpanArray:
    """Return the indices of spans in the list of `enumerate_spans`.

    spans (Iterable[Tuple[int, int]]): Start and end; within the sentence and not wider than `max_width`.
    n_tokens, max_width: See `enumerate_spans`.
    RETURNS (SpanArray): Shape (n,).
    """
    given = numpy.asarray([(start, end) for start, end in spans], dtype="int64").reshape(-1, 2)
    width = widest(n_tokens, max_width)
    starts, widths = given[:, 0], given[:, 1] - given[:, 0]
    # Starts near the end of the sentence have fewer than `width` spans.
    short = numpy.maximum(0, starts - (n_tokens - width))
    result: SpanArray = starts * width - short * (short - 1) // 2 + widths - 1
    return result


def touches(spans: SpanArray, tokens: NDArray[numpy.bool_]) -> NDArray[numpy.bool_]:
    """Return a mask of the spans, shape (n_spans, 2), that contain any token of a mask, shape (n_tokens,)."""
    before = numpy.concatenate([[0], numpy.cumsum(tokens)])
    result: NDArray[numpy.bool_] = before[spans[:, 1]] > before[spans[:, 0]]
    return result


def without(n_spans: int, excluded: Sequence[SpanArray]) -> SpanArray:
    """Return the indices below `n_spans` that are in none of the lists of excluded indices."""
    left = numpy.ones(n_spans, dtype=bool)
    for indices in excluded:
        left[indices] = False
    return numpy.flatnonzero(left)
