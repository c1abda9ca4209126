"""A sample of a corpus that depends on its contents alone."""

import hashlib
import heapq
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.tags import IntTags, TagScheme
from .observations import Answer, answers, encode_answers


class Answered(NamedTuple):
    """A Doc without its words.

    length (int): Number of tokens.
    answers (Dict[str, Answer]): What the sources say about it.
    """

    length: int
    answers: Dict[str, Answer]


class Sample:
    """Keeps the Docs with the smallest hashes of their contents: the same ones in any order, and however the corpus is
    cut into shards. Docs that no source has looked at teach nothing and are not kept. Of a corpus that is larger than
    the sample, Docs with the same words and answers are kept once: else chance would fill the sample with the copies
    of a sentence, or leave out all of them.

    size (int): How many Docs to keep.
    seed (int): Another seed gives another sample.
    names (Sequence[str]): Sources to ask; empty: all.
    """

    def __init__(self, size: int, seed: int = 0, names: Sequence[str] = ()) -> None:
        self.size = size
        self.seed = seed
        self.names = names
        # The largest hash first.
        self._heap: List[Tuple[int, Answered]] = []
        # Copies of the Docs in the heap. Its bound only falls, so what is there at the end came with its first copy.
        self._copies: Dict[int, int] = {}
        self._seen = 0

    def add(self, doc: Doc) -> None:
        """Keep a Doc, if its hash is small enough."""
        given = answers(doc, self.names or weak.weak_sources(doc))
        if not given or not len(doc):
            return
        self._seen += 1
        key = self._hash(doc, given)
        if key in self._copies:
            self._copies[key] += 1
            return
        item = (-key, Answered(len(doc), given))
        self._copies[key] = 1
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, item)
        else:
            del self._copies[-heapq.heappushpop(self._heap, item)[0]]

    def observations(self, names: Sequence[str], scheme: TagScheme) -> List[IntTags]:
        """What the sources say about the Docs kept, in the order of the hashes.

        names (Sequence[str]): The sources, in the order of the columns.
        scheme (TagScheme): The tag scheme.
        RETURNS (List[IntTags]): Per Doc (n_tokens, n_sources), see `observations.observe`.
        """
        everything = self._seen <= self.size
        result = []
        for negated, kept in sorted(self._heap, key=lambda item: -item[0]):
            encoded = encode_answers(kept.answers, kept.length, names, scheme)
            result += [encoded] * (self._copies[-negated] if everything else 1)
        return result

    def _hash(self, doc: Doc, given: Dict[str, Answer]) -> int:
        content: Any = (self.seed, [token.text for token in doc], sorted(given.items()))
        return int.from_bytes(hashlib.blake2b(repr(content).encode("utf-8"), digest_size=16).digest(), "big")
