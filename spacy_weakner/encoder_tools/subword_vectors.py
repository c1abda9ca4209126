"""Fitting of subword (piece) vectors whose means are the vectors of words."""

from typing import Any, Callable, Sequence

import numpy
from numpy.typing import NDArray

from ..linear.pieces import Float32s

Products = NDArray[numpy.float64]
# Words whose vectors are in memory at a time.
_CHUNK = 10_000
_ITERATIONS = 100
# Relative to the length of the initial residuals.
_TOLERANCE = 1e-4


def averaging(words: Sequence[Sequence[int]], n_pieces: int) -> Any:
    """Return a sparse matrix with one row per word, which averages the word's pieces (at least one)."""
    from scipy.sparse import csr_matrix

    lengths = numpy.asarray([len(pieces) for pieces in words], dtype="int64")
    shares = numpy.repeat(1.0 / lengths, lengths).astype("float32")
    pieces = [piece for word in words for piece in word]
    return csr_matrix((shares, pieces, numpy.append(0, numpy.cumsum(lengths))), shape=(len(words), n_pieces))


def fit_pieces(vectors: Float32s, words: Sequence[Sequence[int]], targets: Float32s, strength: float) -> Float32s:
    """Fit piece vectors so that their means approximate the vectors of words, by ridge regression towards the initial
    vectors:

        min_E  sum_w | mean_{p in w} e_p - y_w |^2  +  strength * sum_p | e_p - e0_p |^2

    The vectors e0 and the result have shape (n_pieces, width), the targets y (n_words, width). Each word has at least
    one piece; pieces of no word are not changed.
    """
    fitted = vectors.copy()
    A = averaging(words, len(vectors))
    used = numpy.unique(A.indices)
    A = A[:, used]
    wanted = A.T @ (targets - A @ vectors[used])
    fitted[used] += solve(lambda x: A.T @ (A @ x) + numpy.float32(strength) * x, wanted)
    return fitted


def solve(times: Callable[[Float32s], Float32s], wanted: Float32s) -> Float32s:
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


def products(vectors: Float32s, words: Sequence[Sequence[int]]) -> Products:
    """Return X' X, shape (width, width), where the rows of X are the means of words' pieces."""
    total: Products = numpy.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(words), _CHUNK):
        part = means(vectors, words[start : start + _CHUNK]).astype("float64")
        total += part.T @ part
    return total


def principal(products: Products, width: int) -> Float32s:
    """Return the directions in which vectors with mean 0 vary most, given their `products`. Shape (old width, width),
    with orthonormal columns; the largest component of each is positive."""
    _, directions = numpy.linalg.eigh(products)
    directions = directions[:, ::-1][:, :width]
    largest = directions[numpy.abs(directions).argmax(axis=0), numpy.arange(directions.shape[1])]
    return (directions * numpy.sign(largest)).astype("float32")


def similarity(one: Float32s, other: Float32s) -> float:
    """Return the mean cosine of rows, shape (n, width) each; 1 if there are none."""
    if not len(one):
        return 1.0
    lengths = numpy.linalg.norm(one, axis=1) * numpy.linalg.norm(other, axis=1)
    return float(((one * other).sum(axis=1) / numpy.maximum(lengths, numpy.finfo("float32").tiny)).mean())


def means(vectors: Float32s, words: Sequence[Sequence[int]]) -> Float32s:
    """Return the means of pieces, shape (n_words, width). Each word has at least one piece."""
    found: Float32s = averaging(words, len(vectors)) @ vectors
    return found
