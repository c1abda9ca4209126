"""Clusters of the word vectors of a vocabulary, as features of words."""

import hashlib
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.vectors import Mode
from spacy.vocab import Vocab
from thinc.api import get_current_ops

Keys = NDArray[numpy.uint64]
ClusterIds = NDArray[numpy.uint16]
# Maximum number of clusters, given the type of ids.
MOST = 2**16
_BATCH, _ITERATIONS = 2048, 20
_DIGIT = re.compile(r"\d")
# Clusters of the last tables, by the digest of the vectors: all heads that a process trains share them.
_KEPT = 2
_found: Dict[Tuple[Any, ...], ClusterIds] = {}


def fold(word: str) -> str:
    """Convert a word to lower case and digits to 0: the form that `spacy weakner encoder vectors` counts."""
    return _DIGIT.sub("0", word.lower())


class WordClusters(NamedTuple):
    """Clusters of words, at several levels.

    keys (Keys): Shape (n_words,): hashes of the words, ascending.
    ids (ClusterIds): Shape (n_words, n_levels): their clusters.
    """

    keys: Keys = numpy.zeros(0, "uint64")
    ids: ClusterIds = numpy.zeros((0, 0), "uint16")

    def find(self, forms: Sequence[int]) -> Optional[List[int]]:
        """Find the clusters of a word.

        forms (Sequence[int]): Hashes of the word and of other forms of it; the first known one is used.
        RETURNS (Optional[List[int]]): Its cluster at each level; None for an unknown word.
        """
        for form in forms:
            at = int(numpy.searchsorted(self.keys, numpy.uint64(form)))
            if at < len(self.keys) and int(self.keys[at]) == form:
                clusters: List[int] = self.ids[at].tolist()
                return clusters
        return None

    def equals(self, other: "WordClusters") -> bool:
        """Return True if both have the same clusters for the same words."""
        return self.ids is other.ids or (
            numpy.array_equal(self.keys, other.keys) and numpy.array_equal(self.ids, other.ids)
        )


NO_CLUSTERS = WordClusters()


def cluster_vectors(vocab: Vocab, levels: Sequence[int]) -> WordClusters:
    """Cluster the words of a vocabulary by k-means of their vectors, normalized to length 1.

    vocab (Vocab): The vocabulary. If it has floret vectors, the words are all strings in it.
    levels (Sequence[int]): Numbers of clusters, each at most the number of words.
    RETURNS (WordClusters): The clusters; empty without vectors or levels.
    """
    rows_of, vectors = _vectors(vocab)
    lengths = numpy.linalg.norm(vectors, axis=1)
    known = lengths > 0
    # Words in the order of their hashes; several may share a vector.
    words = dict(sorted((word, row) for word, row in rows_of.items() if known[row]))
    if not words or not levels:
        return NO_CLUSTERS
    used, rows = numpy.unique(list(words.values()), return_inverse=True)
    scaled = vectors[used] / lengths[used, None]
    ids = _cluster(scaled, tuple(levels))
    return WordClusters(numpy.fromiter(words, "uint64"), ids[rows.ravel()])


def _vectors(vocab: Vocab) -> Tuple[Dict[int, int], NDArray[numpy.float32]]:
    """Return the rows of words by their hashes, and the vectors."""
    table, rows = vocab.vectors, vocab.vectors.key2row
    data = table.data
    if table.mode == Mode.floret:
        strings = [word for word in vocab.strings if word] if table.shape[0] else []
        rows = {get_string_id(word): row for row, word in enumerate(strings)}
        data = table.get_batch(strings) if strings else numpy.zeros((0, 0))
    return rows, numpy.asarray(get_current_ops().to_numpy(data), dtype="float32")


def _cluster(vectors: NDArray[numpy.float32], levels: Tuple[int, ...]) -> ClusterIds:
    key = hashlib.blake2b(vectors.tobytes()).digest(), vectors.shape, levels
    if key not in _found:
        from sklearn.cluster import MiniBatchKMeans

        found = []
        for level in levels:
            means = MiniBatchKMeans(
                min(level, len(vectors)), n_init=1, max_iter=_ITERATIONS, batch_size=_BATCH, random_state=0
            )
            found.append(means.fit_predict(vectors))
        _found[key] = numpy.stack(found, axis=1).astype("uint16")
        for old in [*_found][:-_KEPT]:
            del _found[old]
    return _found[key]
