"""Which spans of a sentence are classified."""

from functools import lru_cache
from typing import Iterable, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

Spans = NDArray[numpy.int64]
# Spans of a sentence that are made once and kept.
_SMALL = 5_000
# Where entities may be of any width: spans of a Doc up to which all are tried, and tokens of a span that are tried in
# any case. It bounds time and memory, which else grow with the square of the length.
MOST = 1_000_000
LEAST_WIDTH = 10


def widest(n_tokens: int, max_width: Optional[int] = None) -> int:
    """Tokens of the spans that are tried, at most.

    n_tokens (int): Tokens of the sentence.
    max_width (Optional[int]): The setting; None: any number, in sentences of up to 1,000 tokens. In longer ones as many
        as give a million spans, and at least 10.
    RETURNS (int): The number of tokens.
    """
    limit = max(LEAST_WIDTH, MOST // max(1, n_tokens)) if max_width is None else max_width
    return min(n_tokens, limit)


def enumerate_spans(n_tokens: int, max_width: Optional[int] = None) -> Spans:
    """All spans of a sentence, by start and then by end.

    n_tokens (int): Tokens of the sentence.
    max_width (Optional[int]): Tokens of a span, at most; None: see `widest`.
    RETURNS (Spans): Shape (n_spans, 2): start and end, exclusive. Not to be written to.
    """
    width = widest(n_tokens, max_width)
    return _remembered(n_tokens, width) if n_tokens * width <= _SMALL else _enumerate(n_tokens, width)


def _enumerate(n_tokens: int, width: int) -> Spans:
    starts, widths = numpy.divmod(numpy.arange(n_tokens * width, dtype="int64"), max(1, width))
    spans = numpy.stack([starts, starts + widths + 1], axis=1)
    spans = spans[spans[:, 1] <= n_tokens]
    spans.flags.writeable = False
    return spans


_remembered = lru_cache(maxsize=256)(_enumerate)


def span_index(spans: Iterable[Tuple[int, int]], n_tokens: int, max_width: Optional[int] = None) -> Spans:
    """Where spans stand in the list of `enumerate_spans`.

    spans (Iterable[Tuple[int, int]]): Start and end; within the sentence and not wider than `max_width`.
    n_tokens, max_width: As there.
    RETURNS (Spans): Shape (n,).
    """
    given = numpy.asarray([(start, end) for start, end in spans], dtype="int64").reshape(-1, 2)
    width = widest(n_tokens, max_width)
    starts, widths = given[:, 0], given[:, 1] - given[:, 0]
    # Starts near the end have fewer spans: width - 1 in all for the last but one, and so on.
    short = numpy.maximum(0, starts - (n_tokens - width))
    result: Spans = starts * width - short * (short - 1) // 2 + widths - 1
    return result


def touches(spans: Spans, tokens: NDArray[numpy.bool_]) -> NDArray[numpy.bool_]:
    """Which spans, shape (n_spans, 2), hold any of the tokens, shape (n_tokens,) of bool."""
    before = numpy.concatenate([[0], numpy.cumsum(tokens)])
    result: NDArray[numpy.bool_] = before[spans[:, 1]] > before[spans[:, 0]]
    return result


def without(n_spans: int, excluded: Sequence[Spans]) -> Spans:
    """Indices of the spans, of `n_spans`, that are in none of the lists of excluded ones."""
    left = numpy.ones(n_spans, dtype=bool)
    for indices in excluded:
        left[indices] = False
    return numpy.flatnonzero(left)
