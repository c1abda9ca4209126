"""Vectors of subwords (pieces) whose means are the vectors of words."""

from typing import Callable, List, Sequence

import numpy
from numpy.typing import NDArray

from ..linear.pieces import Vectors

Ids = NDArray[numpy.int64]
_ITERATIONS = 100
# Of the length that the residuals begin with.
_TOLERANCE = 1e-4


class Cuts:
    """Words as pieces, at least one each: a matrix A with a row per word that takes the mean of its pieces."""

    def __init__(self, words: Sequence[Sequence[int]]) -> None:
        self.lengths: Ids = numpy.asarray([len(pieces) for pieces in words], dtype="int64")
        flat: Ids = numpy.asarray([piece for pieces in words for piece in pieces], dtype="int64")
        # Of all pieces only those that occur: the others stay as they are.
        self.pieces, self._columns = numpy.unique(flat, return_inverse=True)
        self._rows = numpy.repeat(numpy.arange(len(words)), self.lengths)
        self._starts = numpy.cumsum(self.lengths) - self.lengths
        self._order = numpy.argsort(self._columns, kind="stable")
        self._firsts = numpy.searchsorted(self._columns[self._order], numpy.arange(len(self.pieces)))

    def means(self, vectors: Vectors) -> Vectors:
        """A X: from vectors of `pieces` to those of the words."""
        sums: Vectors = numpy.add.reduceat(vectors[self._columns], self._starts)
        return sums / self.lengths[:, None].astype("float32")

    def back(self, words: Vectors) -> Vectors:
        """A' Y: from vectors of words to sums of them at `pieces`."""
        shares: Vectors = words / self.lengths[:, None].astype("float32")
        sums: Vectors = numpy.add.reduceat(shares[self._rows[self._order]], self._firsts)
        return sums


def fit_pieces(vectors: Vectors, words: Sequence[Sequence[int]], targets: Vectors, strength: float) -> Vectors:
    """Change vectors of pieces so that their means come near the vectors of words: ridge regression towards what they
    were,

        min_E  sum_w | mean_{p in w} e_p - y_w |^2  +  strength * sum_p | e_p - e0_p |^2

    Vectors e0 and result: (n_pieces, width); targets y: (n_words, width). No word is without pieces; pieces of no word
    stay as they are.
    """
    fitted = vectors.copy()
    if len(words):
        cuts = Cuts(words)
        start = vectors[cuts.pieces]
        wanted = cuts.back(targets - cuts.means(start))
        fitted[cuts.pieces] += solve(lambda x: cuts.back(cuts.means(x)) + numpy.float32(strength) * x, wanted)
    return fitted


def solve(times: Callable[[Vectors], Vectors], wanted: Vectors) -> Vectors:
    """Solve M X = B by conjugate gradients, all columns side by side; `times` multiplies by M, which is symmetric and
    positive definite."""
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


def principal(vectors: Vectors, width: int) -> Vectors:
    """Directions in which vectors with a mean of 0 differ most. Shape (old width, width), orthonormal columns; of each
    the largest number is positive."""
    _, directions = numpy.linalg.eigh(vectors.T.astype("float64") @ vectors.astype("float64"))
    directions = directions[:, ::-1][:, :width]
    largest = directions[numpy.abs(directions).argmax(axis=0), numpy.arange(directions.shape[1])]
    return (directions * numpy.sign(largest)).astype("float32")


def similarity(one: Vectors, other: Vectors) -> float:
    """Mean cosine of rows, shape (n, width) each; 1 if there are none."""
    if not len(one):
        return 1.0
    lengths = numpy.linalg.norm(one, axis=1) * numpy.linalg.norm(other, axis=1)
    return float(((one * other).sum(axis=1) / numpy.maximum(lengths, numpy.finfo("float32").tiny)).mean())


def means(vectors: Vectors, words: Sequence[Sequence[int]]) -> Vectors:
    """Shape (n_words, width): means of pieces; 0 for a word without."""
    rows: List[Vectors] = [
        vectors[list(pieces)].mean(axis=0) if pieces else numpy.zeros_like(vectors[0]) for pieces in words
    ]
    return numpy.stack(rows) if rows else vectors[:0]
