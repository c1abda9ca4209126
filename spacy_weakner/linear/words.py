"""Features of single words as hashes."""

import re
from typing import Dict, List, Sequence

import numpy
from spacy.lang.lex_attrs import word_shape
from spacy.strings import StringStore, get_string_id

from ..ty import Hashes
from .word_clusters import NO_CLUSTERS, WordClusters, fold

# Hashes of padding beyond the ends of a Doc, of an affix as long as the word or longer, and of no cluster.
BEYOND, NO_AFFIX, NO_CLUSTER = 1, 2, 3
# Maximum number of cached words, so that the memory is bounded on a stream of text.
CAPACITY = 30_000
# Column with the kinds of letters in a word, as a sum; not itself a feature.
LETTERS, UPPER, LOWER, UNCASED = "letters", 1, 2, 4
_RUN = re.compile(r"(.)\1+", re.DOTALL)
_FLAGS = (str.isdigit, str.isupper, str.islower, str.istitle, str.isalpha, str.isalnum, str.isspace, str.isascii)


class WordFeatures:
    """A cached look-up of the features of words.

    affixes (int): Length of the longest prefixes and suffixes, in characters.
    levels (Sequence[int]): Numbers of clusters at each level.
    clusters (WordClusters): The clusters.
    """

    def __init__(self, affixes: int, levels: Sequence[int] = (), clusters: WordClusters = NO_CLUSTERS) -> None:
        self.affixes = affixes
        self._clusters = clusters
        self._none = [NO_CLUSTER] * len(levels)
        lengths = range(1, affixes + 1)
        self.names = ["orth", "lower", "shape", "collapsed", "flags"]
        self.names += [f"{kind}{n}" for n in lengths for kind in ("prefix", "suffix")]
        self.names += [f"cluster{level}" for level in levels] + [LETTERS]
        self._known: Dict[int, Hashes] = {}

    def __call__(self, orths: Hashes, strings: StringStore) -> Hashes:
        """Look up words.

        orths (Hashes): Shape (n_words,): their ids.
        strings (StringStore): Their strings.
        RETURNS (Hashes): Shape (n_words, n_features), columns as in `names`.
        """
        known = self._known if len(self._known) < CAPACITY else {}
        rows = []
        for orth in orths.tolist():
            row = known.get(orth)
            if row is None:
                row = known[orth] = numpy.asarray(self.features(strings[orth]), dtype="uint64")
            rows.append(row)
        self._known = known
        return numpy.stack(rows)

    def features(self, word: str) -> List[int]:
        """Compute the features of a word.

        word (str): The word.
        RETURNS (List[int]): Hashes of the features, in the order of `names`, and the kinds of its letters.
        """
        lower, shape = word.lower(), word_shape(word)
        flags = "".join("01"[is_so(word)] for is_so in _FLAGS)
        flags += "01"[any(map(str.isdigit, word))] + "01"[any(map(str.isupper, word[1:]))] + "01"["-" in word]
        found = [word, lower, shape, _RUN.sub(r"\1", shape), flags]
        hashes = [get_string_id(text) for text in found]
        for n in range(1, self.affixes + 1):
            for affix in (lower[:n], lower[-n:]):
                hashes.append(get_string_id(affix) if len(lower) > n else NO_AFFIX)
        if self._none:
            clusters = self._clusters.find((*hashes[:2], get_string_id(fold(word))))
            hashes += self._none if clusters is None else [NO_CLUSTER + 1 + cluster for cluster in clusters]
        kinds = {
            UPPER if letter != letter.lower() else LOWER if letter != letter.upper() else UNCASED
            for letter in word
            if letter.isalpha()
        }
        return [*hashes, sum(kinds)]


def mix_bits(hashes: Hashes) -> Hashes:
    """Spread differences between hashes over all bits (the finalizer of MurmurHash3).

    hashes (Hashes): Hashes of any shape.
    RETURNS (Hashes): Mixed hashes, of this shape.
    """
    mixed = hashes ^ (hashes >> numpy.uint64(33))
    mixed *= numpy.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> numpy.uint64(33)
    mixed *= numpy.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> numpy.uint64(33)
    return mixed
