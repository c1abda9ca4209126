"""A sample of a corpus that depends only on its contents."""

import hashlib
import heapq
from typing import Any, Dict, List, Sequence, Tuple

from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.tags import IntTags, TagScheme
from .observations import Answer, answers, encode_answers


class DocSample:
    """A sample of the Docs with the smallest hashes of their contents, regardless of their order and of the shards.
    Docs that no source has labeled are left out. If the corpus is larger than the sample, Docs with the same words and
    answers are kept once: otherwise the sample could consist of copies of one sentence, or have none of them.
    """

    def __init__(self, size: int, seed: int = 0, names: Sequence[str] = ()) -> None:
        self.size = size
        self.seed = seed
        self.names = names
        # A heap with the largest hash first.
        self._heap: List[Tuple[int, int, Dict[str, Answer]]] = []
        # Copies of the Docs in the heap. Its bound only falls, so a Doc kept to the end was added with its first copy.
        self._copies: Dict[int, int] = {}
        self._seen = 0

    def add(self, doc: Doc) -> None:
        """Keep a Doc if its hash is small enough."""
        given = answers(doc, self.names or weak.weak_sources(doc))
        if not given or not len(doc):
            return
        self._seen += 1
        key = self._hash(doc, given)
        if key in self._copies:
            self._copies[key] += 1
            return
        item = (-key, len(doc), given)
        self._copies[key] = 1
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, item)
        else:
            del self._copies[-heapq.heappushpop(self._heap, item)[0]]

    def observations(self, names: Sequence[str], scheme: TagScheme) -> List[IntTags]:
        """Return the votes of the sources on each Doc kept, in the order of hashes; see `observations.observe`."""
        everything = self._seen <= self.size
        result = []
        for negated, length, given in sorted(self._heap, key=lambda item: -item[0]):
            encoded = encode_answers(given, length, names, scheme)
            result += [encoded] * (self._copies[-negated] if everything else 1)
        return result

    def _hash(self, doc: Doc, given: Dict[str, Answer]) -> int:
        content: Any = (self.seed, [token.text for token in doc], sorted(given.items()))
        return int.from_bytes(hashlib.blake2b(repr(content).encode("utf-8"), digest_size=16).digest(), "big")
