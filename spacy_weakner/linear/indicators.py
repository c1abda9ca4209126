"""Indicator features of tokens, as an encoder without weights for linear models."""

from functools import partial
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Ints2d

from ..batching import split_rows
from ..caching import read_once
from ..errors import check_range
from ..ty import Hashes
from .sparse import ROWS
from .word_clusters import MOST, NO_CLUSTERS, WordClusters, cluster_vectors
from .words import BEYOND, LETTERS, LOWER, UNCASED, UPPER, WordFeatures, mix_bits

# A feature of a token: names of some `WordFeatures`, each with the relative position of its word; 0 is the token
# itself. Several of them form a conjunction.
Template = Tuple[Tuple[str, int], ...]
# Length of the affixes of neighbors.
CONTEXT_AFFIX = 3
# Distance up to which clusters of neighbors are features.
CONTEXT_CLUSTERS = 1
# Features that have a different meaning in sentences in lower case or in upper case.
_CASED = ("orth", "shape", "collapsed", "flags")


_KEYS, _IDS = "cluster_keys", "cluster_ids"


def build_indicator_features(
    rows: int = 2**16, window: int = 1, affixes: int = 5, clusters: Sequence[int] = ()
) -> Model[List[Doc], List[Ints2d]]:
    """Describe every token by its indicator features: word, lower case, affixes, shape, kinds of characters, and words,
    affixes and shapes around it (also conjunctions of shapes). Every feature is hashed to a row of a table in the model
    that uses the features: `spacy_weakner.CRFTagger.v1` and `spacy_weakner.TokenClassifier.v1` then have a weight for
    each row and tag, and no layers between features and scores. Registered as `spacy_weakner.IndicatorFeatures.v1`.

    In a sentence without case (all in lower case, or in upper case), words, shapes and kinds of characters are separate
    features, since their meaning differs from that in a sentence with case.

    If the vocabulary has word vectors (`[initialize] vectors`) when the model is initialized, k-means assigns every
    word to a cluster at several levels; the clusters of a token and its neighbors are features. The clusters are stored
    with the model; the vectors are no longer needed.

    Otherwise, only the words are used, so that features are the same in any process and with any vocabulary. A Doc is
    treated as one sentence, with padding words beyond its ends.

    rows (int): Rows of the table. Features that share a row share their weights.
    window (int): Number of words on either side to use. With little gold, a larger window leads to overfitting; 2 is
        better if tokens are characters, as in Chinese.
    affixes (int): Length of the longest prefixes and suffixes, in characters; 0: none.
    clusters (Sequence[int]): Numbers of clusters of word vectors, one for each level.
    RETURNS (Model[List[Doc], List[Ints2d]]): Rows of each Doc, shape (n_tokens, n_features), int32.
    RAISES (WeaknerError): If a setting is out of range.
    """
    check_range("rows", rows, 1, 2**31 - 1)
    check_range("window", window, 0, None)
    check_range("affixes", affixes, 0, None)
    for level in clusters:
        check_range("clusters", level, 1, MOST)
    return Model(
        "indicator_features",
        partial(_forward, FeatureReader(window, affixes, clusters)),
        init=partial(_init, clusters),
        attrs={ROWS: rows, _KEYS: NO_CLUSTERS.keys, _IDS: NO_CLUSTERS.ids},
    )


def _init(levels: Sequence[int], model: Model, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    found = cluster_vectors(X[0].vocab, levels) if X else NO_CLUSTERS
    model.attrs[_KEYS], model.attrs[_IDS] = found


def templates(window: int, affixes: int, clusters: Sequence[int] = ()) -> List[Template]:
    """Return the templates of a token's features.

    window (int): Number of words on either side to use.
    affixes (int): Length of the longest affixes.
    clusters (Sequence[int]): Levels of clusters.
    RETURNS (List[Template]): One template per feature.
    """
    kinds = ("prefix", "suffix")
    single = [(name, 0) for name in ("orth", "lower", "shape", "collapsed", "flags")]
    single += [(f"{kind}{n}", 0) for kind in kinds for n in range(1, affixes + 1)]
    for distance in range(1, window + 1):
        for place in (-distance, distance):
            single += [("lower", place), ("collapsed", place)]
            if distance == 1 and affixes >= CONTEXT_AFFIX:
                single += [(f"{kind}{CONTEXT_AFFIX}", place) for kind in kinds]
    near = min(window, CONTEXT_CLUSTERS)
    single += [(f"cluster{level}", place) for level in clusters for place in range(-near, near + 1)]
    found: List[Template] = [(name,) for name in single]
    if window:
        # Conjunctions of words are rare and lead to overfitting; conjunctions of shapes are few.
        before, here, after = (("collapsed", place) for place in (-1, 0, 1))
        found += [(before, here), (here, after), (before, here, after)]
    return found


def indicators(
    docs: Sequence[Doc], words: WordFeatures, templates: Sequence[Template], window: int, rows: int
) -> NDArray[numpy.int32]:
    """Compute the rows of the features of some Docs.

    docs (Sequence[Doc]): The Docs.
    words (WordFeatures): The features of single words.
    templates (Sequence[Template]): The features of a token.
    window (int): The largest distance in the templates.
    rows (int): Rows of the table.
    RETURNS (NDArray[numpy.int32]): Shape (n_tokens of all Docs, n_features).
    """
    lengths = [len(doc) for doc in docs]
    if not sum(lengths):
        return numpy.zeros((0, len(templates)), dtype="int32")
    orths = numpy.concatenate([doc.to_array(ORTH) for doc in docs])
    unique, inverse = numpy.unique(orths, return_inverse=True)
    known = words(unique, docs[0].vocab.strings)
    beyond = numpy.full((1, known.shape[1]), BEYOND, dtype="uint64")
    # All Docs are concatenated, with padding words between them.
    places = numpy.arange(len(orths)) + window * (1 + numpy.repeat(numpy.arange(len(docs)), lengths))
    which = numpy.full(int(places[-1]) + window + 1, len(unique))
    which[places] = inverse
    columns = dict(zip(words.names, numpy.concatenate([known, beyond]).T[:, which], strict=True))
    modes = numpy.repeat(case_modes(columns[LETTERS][places], lengths), lengths)
    if modes.any():
        for name in _CASED:
            columns[name][places] ^= modes
    hashes = numpy.empty((len(templates), len(orths)), dtype="uint64")
    for column, template in zip(hashes, templates, strict=True):
        column[:] = combine_hashes([columns[name][places + offset] for name, offset in template])
    hashes = mix_bits(hashes ^ salts(templates)[:, None])
    return numpy.ascontiguousarray((hashes % numpy.uint64(rows)).T.astype("int32"))


def case_modes(letters: Hashes, lengths: Sequence[int]) -> Hashes:
    """Find the sentences without case: most words with letters have cased letters, and all of these have the same case.

    letters (Hashes): Shape (n_tokens,): kinds of letters of each token, see `words.LETTERS`.
    lengths (Sequence[int]): Number of tokens of each sentence.
    RETURNS (Hashes): Shape (n_sentences,): 0 for sentences with case, or without letters; `LOWER`; `UPPER`.
    """
    of = numpy.repeat(numpy.arange(len(lengths)), lengths)
    upper, lower, uncased = (
        numpy.bincount(of, (letters & numpy.uint64(kind)) != 0, len(lengths)) for kind in (UPPER, LOWER, UNCASED)
    )
    modes = numpy.where((upper == 0) & (lower > uncased), LOWER, 0)
    return numpy.where((lower == 0) & (upper > uncased), UPPER, modes).astype("uint64")


def combine_hashes(hashes: Sequence[Hashes]) -> Hashes:
    """Combine hashes of several features; their order matters.

    hashes (Sequence[Hashes]): Hashes of the same shape.
    RETURNS (Hashes): Combined hashes, of this shape.
    """
    total = hashes[0]
    for other in hashes[1:]:
        total = mix_bits(total) ^ other
    return total


def salts(templates: Sequence[Template]) -> Hashes:
    """Return a hash that identifies each feature of a token.

    templates (Sequence[Template]): The features.
    RETURNS (Hashes): Shape (n_features,); each hash is independent of the other features.
    """
    return numpy.asarray([get_string_id(repr(template)) for template in templates], dtype="uint64")


class FeatureReader:
    """A reader of the features of Docs, with the clusters of a model. For the arguments see
    `build_indicator_features`."""

    def __init__(self, window: int, affixes: int, levels: Sequence[int]) -> None:
        self.window = window
        self.affixes = affixes
        self.levels = levels
        self._last = self._prepare(NO_CLUSTERS)

    def __call__(self, docs: Sequence[Doc], clusters: WordClusters, rows: int) -> NDArray[numpy.int32]:
        """Compute features of some Docs; see `indicators`."""
        last = self._last
        if not clusters.equals(last[0]):  # new clusters were made or loaded
            last = self._last = self._prepare(clusters)
        _, words, found = last
        return indicators(docs, words, found, self.window, rows)

    def _prepare(self, clusters: WordClusters) -> Tuple[WordClusters, WordFeatures, List[Template]]:
        levels = self.levels if len(clusters.keys) else ()
        return clusters, WordFeatures(self.affixes, levels, clusters), templates(self.window, self.affixes, levels)


def _forward(
    reader: FeatureReader, model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Ints2d], Callable[[Any], List[Doc]]]:
    def read() -> List[Ints2d]:
        clusters = WordClusters(model.attrs[_KEYS], model.attrs[_IDS])
        ops: Any = model.ops
        return split_rows(ops.asarray2i(reader(docs, clusters, model.attrs[ROWS])), docs)

    return read_once(model, docs, read), no_gradient


def no_gradient(_: Any) -> List[Doc]:
    """Return the gradient of a layer whose inputs are Docs."""
    return []
