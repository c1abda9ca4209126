"""Fitting of subword (piece) vectors whose means are the vectors of words."""

from typing import Callable, Sequence

import numpy
from numpy.typing import NDArray

from ..linear.pieces import Vectors

Ids = NDArray[numpy.int64]
Products = NDArray[numpy.float64]
# Words whose vectors are in memory at a time.
_CHUNK = 10_000
_ITERATIONS = 100
# Relative to the length of the initial residuals.
_TOLERANCE = 1e-4


class Cuts:
    """Words as pieces, at least one each: a matrix A with one row per word, which averages the word's pieces."""

    def __init__(self, words: Sequence[Sequence[int]]) -> None:
        self.lengths: Ids = numpy.asarray([len(pieces) for pieces in words], dtype="int64")
        flat: Ids = numpy.asarray([piece for pieces in words for piece in pieces], dtype="int64")
        # Only pieces that occur: the others are not changed.
        self.pieces, self._columns = numpy.unique(flat, return_inverse=True)
        self._rows = numpy.repeat(numpy.arange(len(words)), self.lengths)
        self._starts = numpy.cumsum(self.lengths) - self.lengths
        self._order = numpy.argsort(self._columns, kind="stable")
        self._firsts = numpy.searchsorted(self._columns[self._order], numpy.arange(len(self.pieces)))

    def means(self, vectors: Vectors) -> Vectors:
        """Return A X: from vectors of `pieces` to vectors of words."""
        sums: Vectors = numpy.add.reduceat(vectors[self._columns], self._starts)
        return sums / self.lengths[:, None].astype("float32")

    def back(self, words: Vectors) -> Vectors:
        """Return A' Y: from vectors of words to their sums at `pieces`."""
        shares: Vectors = words / self.lengths[:, None].astype("float32")
        sums: Vectors = numpy.add.reduceat(shares[self._rows[self._order]], self._firsts)
        return sums


def fit_pieces(vectors: Vectors, words: Sequence[Sequence[int]], targets: Vectors, strength: float) -> Vectors:
    """Fit piece vectors so that their means approximate the vectors of words, by ridge regression towards the initial
    vectors:

        min_E  sum_w | mean_{p in w} e_p - y_w |^2  +  strength * sum_p | e_p - e0_p |^2

    The vectors e0 and the result have shape (n_pieces, width), the targets y (n_words, width). Each word has at least
    one piece; pieces of no word are not changed.
    """
    fitted = vectors.copy()
    if len(words):
        cuts = Cuts(words)
        start = vectors[cuts.pieces]
        wanted = cuts.back(targets - cuts.means(start))
        fitted[cuts.pieces] += solve(lambda x: cuts.back(cuts.means(x)) + numpy.float32(strength) * x, wanted)
    return fitted


def solve(times: Callable[[Vectors], Vectors], wanted: Vectors) -> Vectors:
    """Solve M X = B by conjugate gradients, for all columns in parallel; `times` multiplies by M, which is symmetric
    and positive definite."""
    found = numpy.zeros_like(wanted)
    residual, direction = wanted.copy(), wanted.copy()
    size = (residual**2).sum(axis=0)
    enough = _TOLERANCE**2 * size
    for _ in range(_ITERATIONS):
        if (size <= enough).all():
            break
        ahead = times(direction)
        step = size / numpy.maximum((direction * ahead).sum(axis=0), numpy.finfo("float32").tiny)
        found += step * direction
        residual -= step * ahead
        last, size = size, (residual**2).sum(axis=0)
        direction = residual + size / numpy.maximum(last, numpy.finfo("float32").tiny) * direction
    return found


def products(vectors: Vectors, words: Sequence[Sequence[int]]) -> Products:
    """Return X' X, shape (width, width), where the rows of X are the means of words' pieces."""
    total: Products = numpy.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(words), _CHUNK):
        part = means(vectors, words[start : start + _CHUNK]).astype("float64")
        total += part.T @ part
    return total


def principal(products: Products, width: int) -> Vectors:
    """Return the directions in which vectors with mean 0 vary most, given their `products`. Shape (old width, width),
    with orthonormal columns; the largest component of each is positive."""
    _, directions = numpy.linalg.eigh(products)
    directions = directions[:, ::-1][:, :width]
    largest = directions[numpy.abs(directions).argmax(axis=0), numpy.arange(directions.shape[1])]
    return (directions * numpy.sign(largest)).astype("float32")


def similarity(one: Vectors, other: Vectors) -> float:
    """Return the mean cosine of rows, shape (n, width) each; 1 if there are none."""
    if not len(one):
        return 1.0
    lengths = numpy.linalg.norm(one, axis=1) * numpy.linalg.norm(other, axis=1)
    return float(((one * other).sum(axis=1) / numpy.maximum(lengths, numpy.finfo("float32").tiny)).mean())


def means(vectors: Vectors, words: Sequence[Sequence[int]]) -> Vectors:
    """Return the means of pieces, shape (n_words, width). Each word has at least one piece."""
    cuts = Cuts(words)
    return cuts.means(vectors[cuts.pieces])
