"""Counts of neighboring words in a text, and word vectors computed from them."""

from random import Random
from typing import Any, Dict, List, Sequence

import numpy
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.tokens import Doc

from ..linear.word_clusters import fold

WordIds = NDArray[numpy.int32]
Matrix = NDArray[numpy.float32]
OFFSETS = (-2, -1, 1, 2)
# Tokens that are counted at a time.
_CHUNK = 1_000_000
_BEYOND = -1


class SentenceSample:
    """A sample of sentences as ids of their folded words (see `fold`), all with the same probability. Of more than
    `limit` sentences, it holds about `limit` / 2 to `limit`."""

    def __init__(self, limit: int, seed: int) -> None:
        self.limit = limit
        self.sentences: List[WordIds] = []
        self.words: List[str] = []
        self.read = 0
        # Ids of words as they are written.
        self.forms: Dict[str, int] = {}
        self._share = 1.0
        self._random = Random(seed)
        self._ids: Dict[str, int] = {}
        self._known: Dict[int, int] = {}

    def add(self, doc: Doc) -> None:
        """Add a sentence, if it is drawn."""
        self.read += 1
        if self._share < 1.0 and self._random.random() >= self._share:
            return
        orths = doc.to_array(ORTH).tolist()
        ids = [self._known[orth] if orth in self._known else self._add_word(doc, orth) for orth in orths]
        ids = [kept for kept in ids if kept != _BEYOND]
        if ids:
            self.sentences.append(numpy.asarray(ids, dtype="int32"))
        if len(self.sentences) > self.limit:
            self.sentences = [kept for kept in self.sentences if self._random.random() < 0.5]
            self._share /= 2

    def _add_word(self, doc: Doc, orth: int) -> int:
        word = doc.vocab.strings[orth]
        found = _BEYOND
        if word.strip():
            found = self.forms[word] = self._ids.setdefault(fold(word), len(self._ids))
            if found == len(self.words):
                self.words.append(fold(word))
        self._known[orth] = found
        return found

    def frequent(self, min_count: int) -> WordIds:
        """Return the words that occur at least `min_count` times, the most frequent first."""
        counts = numpy.zeros(len(self.words), dtype="int64")
        for part in _chunks(self.sentences):
            counts += numpy.bincount(part[part != _BEYOND], minlength=len(counts))
        order = numpy.argsort(-counts, kind="stable")
        return order[counts[order] >= min_count].astype("int32")


def _chunks(sentences: Sequence[WordIds]) -> Any:
    """Yield sentences concatenated with padding between them."""
    beyond, parts, size = numpy.full(max(OFFSETS), _BEYOND, dtype="int32"), [], 0
    for ids in sentences:
        parts += [ids, beyond]
        size += len(ids)
        if size >= _CHUNK:
            yield numpy.concatenate([beyond, *parts])
            parts, size = [], 0
    if parts:
        yield numpy.concatenate([beyond, *parts])


def count_neighbors(sentences: Sequence[WordIds], words: WordIds, contexts: int) -> Any:
    """Count how often words, the most frequent first, have each of the first `contexts` words at each of `OFFSETS`: a
    csr_matrix of shape (n_words, n_offsets * n_contexts)."""
    from scipy.sparse import csr_matrix

    n_contexts = min(contexts, len(words))
    shape = (len(words), len(OFFSETS) * n_contexts)
    total = csr_matrix(shape, dtype="float32")
    n_ids = 1 + max((int(ids.max()) for ids in sentences), default=0)
    rows = numpy.full(n_ids + 1, _BEYOND, dtype="int32")  # the last row is for the padding
    rows[words] = numpy.arange(len(words))
    for part in _chunks(sentences):
        part = rows[part]
        pairs = []
        for n, offset in enumerate(OFFSETS):
            near = numpy.roll(part, -offset)
            used = (part != _BEYOND) & (near != _BEYOND) & (near < n_contexts)
            pairs.append((part[used], n * n_contexts + near[used]))
        found = numpy.concatenate(pairs, axis=1)
        total = total + csr_matrix((numpy.ones(found.shape[1], dtype="float32"), found), shape=shape)
    return total


def information(counts: Any) -> Any:
    """Return the positive pointwise mutual information, max(0, log(n_ij n / (n_i n_j)))."""
    found = counts.tocoo()
    rows, columns = (numpy.asarray(counts.sum(axis=axis), dtype="float64").ravel() for axis in (1, 0))
    values = found.data * rows.sum() / (rows[found.row] * columns[found.col])
    found.data = numpy.maximum(numpy.log(values), 0.0).astype("float32")
    found = found.tocsr()
    found.eliminate_zeros()
    return found


def decompose(matrix: Any, width: int, seed: int) -> Matrix:
    """Return the left singular vectors times the (at most `width`) largest singular values of a csr_matrix, shape (n,
    width). The decomposition is approximate."""
    from sklearn.utils.extmath import randomized_svd

    width = min(width, *matrix.shape)
    if not width or not matrix.nnz:
        return numpy.zeros((matrix.shape[0], width), dtype="float32")
    left, values, _ = randomized_svd(matrix, width, n_iter=4, random_state=seed)
    made: Matrix = (left * values).astype("float32")
    return made
