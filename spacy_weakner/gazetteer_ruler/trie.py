"""Finds all phrases of a table in many sequences of token ids at once.

Phrases are paths of a trie. A step from a node along a token is one look-up of the key (node, token) in a hash table.
Whole keys are compared, so hits are exact, and the search from a position stops as soon as no phrase continues.
Ids are 64-bit values of token attributes; the first look-up discards tokens that occur in no phrase.
"""

from dataclasses import dataclass
from typing import Any, List, NamedTuple

import numpy
from numpy.typing import NDArray

from ..ty import Hashes, Ints
from .array_file import ArrayFile, Arrays

NodeArray = NDArray[numpy.uint32]
# Odd, near 2**64 / golden ratio: spreads keys that are close together (Knuth, The Art of Computer Programming 3, 6.4).
_SPREAD = numpy.uint64(0x9E3779B97F4A7C15)
_HALF = numpy.uint64(32)


class Hits(NamedTuple):
    """The places where phrases were found, unsorted, with a row for each label."""

    places: Ints  # index of the first token
    lengths: Ints
    labels: Ints


@dataclass(frozen=True, eq=False)
class HashTable:
    """A hash table from uint64 keys to numbers with open addressing, which looks up many keys at once. If a slot is
    taken, the slots 1, 1 + 2, 1 + 2 + 3, ... after it are tried; since the number of slots is a power of two, this
    reaches all of them. A key of 0 marks an empty slot, so no key is 0."""

    keys: Hashes
    numbers: NodeArray

    @classmethod
    def build(cls, keys: Hashes, first: int = 1) -> "HashTable":
        """Number unique keys from `first` on. At least half of the slots stay empty, so that few slots are tried."""
        n_slots = 1 << max(3, (2 * len(keys) - 1).bit_length())
        table = cls(numpy.zeros(n_slots, dtype="uint64"), numpy.zeros(n_slots, dtype="uint32"))
        slots = table._slots(keys)
        pending, step = numpy.arange(len(keys)), 0
        while len(pending):
            free = pending[table.keys[slots[pending]] == 0]
            # If several keys need the same slot, the first gets it: the last assignment counts.
            table.keys[slots[free[::-1]]] = keys[free[::-1]]
            settled = table.keys[slots[pending]] == keys[pending]
            placed = pending[settled]
            table.numbers[slots[placed]] = placed + first
            pending = pending[~settled]
            step += 1
            slots[pending] = (slots[pending] + step) & (n_slots - 1)
        return table

    def find(self, keys: Hashes) -> NodeArray:
        """Return the numbers of keys; 0 for keys that are not in the table."""
        slots = self._slots(keys)
        occupants = self.keys[slots]
        hit = occupants == keys
        found = numpy.where(hit, self.numbers[slots], numpy.uint32(0))
        # If a slot has another key, try further slots until the key or an empty slot is found.
        rows = numpy.flatnonzero(~hit & (occupants != 0))
        slots, step = slots[rows], 0
        while len(rows):
            step += 1
            slots = (slots + step) & (len(self.keys) - 1)
            occupants = self.keys[slots]
            hit = occupants == keys[rows]
            found[rows[hit]] = self.numbers[slots[hit]]
            continued = ~hit & (occupants != 0)
            rows, slots = rows[continued], slots[continued]
        return found

    def _slots(self, keys: Hashes) -> NDArray[numpy.int64]:
        spread = (keys * _SPREAD) >> _HALF
        slots: NDArray[numpy.int64] = ((spread * numpy.uint64(len(self.keys))) >> _HALF).astype("int64")
        return slots


@dataclass(frozen=True, eq=False)
class Trie:
    """A trie of phrases with their labels. Nodes are numbered from 1 on; 0 means no node."""

    tokens: HashTable  # from each id to the node of phrases that begin with it, whose number is also the token's number
    edges: HashTable  # from (node << 32 | token number) to the next node
    offsets: NodeArray  # shape (n_nodes + 2,): start in `labels` of the labels of the phrase that ends in a node
    labels: NodeArray

    @classmethod
    def build(cls, ids: Hashes, offsets: Ints, labels: Ints, *, only_first: bool = False) -> "Trie":
        """Build a trie, one level at a time. The order of phrases makes no difference, unless phrases keep only the
        first of several labels. No id of a token may be 0, and no phrase from offset to offset may be empty."""
        vocabulary, places = numpy.unique(ids, return_inverse=True)
        tokens = places.astype("uint64") + numpy.uint64(1)
        begins, lengths = offsets[:-1], numpy.diff(offsets)
        last = tokens[begins]  # the node reached by each phrase
        keys: List[Hashes] = [numpy.zeros(0, dtype="uint64")]
        rows, n_nodes, depth = numpy.arange(len(lengths)), len(vocabulary), 1
        while len(rows := rows[lengths[rows] > depth]):
            level, nodes = numpy.unique((last[rows] << _HALF) | tokens[begins[rows] + depth], return_inverse=True)
            last[rows] = (nodes + n_nodes + 1).astype("uint64")
            keys.append(level)
            n_nodes, depth = n_nodes + len(level), depth + 1
        pairs = numpy.stack([last.astype("int64"), labels], axis=1)
        if only_first:
            pairs = pairs[numpy.unique(pairs[:, 0], return_index=True)[1]]
        elif len(pairs):
            pairs = numpy.unique(pairs, axis=0)
        starts = numpy.searchsorted(pairs[:, 0], numpy.arange(n_nodes + 2)).astype("uint32")
        edges = HashTable.build(numpy.concatenate(keys), len(vocabulary) + 1)
        return cls(HashTable.build(vocabulary), edges, starts, pairs[:, 1].astype("uint32"))

    def __len__(self) -> int:
        """Return the number of phrases; one with two labels counts once."""
        return int(numpy.count_nonzero(numpy.diff(self.offsets)))

    def find(self, ids: Hashes) -> Hits:
        """Find all phrases, including overlapping ones. A 0 must follow each sequence, so that no phrase crosses it."""
        tokens = self.tokens.find(ids)
        at = numpy.flatnonzero(tokens)
        nodes = tokens[at]
        found = [(at[:0], at[:0], at[:0])]
        depth = 1
        while len(at):
            first, end = (self.offsets[nodes + i].astype("int64") for i in (0, 1))
            ends = numpy.repeat(numpy.arange(len(at)), end - first)
            within = numpy.arange(len(ends)) - numpy.searchsorted(ends, ends)
            labels = self.labels[first[ends] + within].astype("int64")
            found.append((at[ends], numpy.full(len(ends), depth), labels))
            following = tokens[at + depth]
            at, nodes, following = _where(following != 0, at, nodes, following)
            nodes = self.edges.find((nodes.astype("uint64") << _HALF) | following)
            at, nodes = _where(nodes != 0, at, nodes)
            depth += 1
        return Hits(*map(numpy.concatenate, zip(*found, strict=True)))

    # Storage

    def to_arrays(self, name: str) -> Arrays:
        """Return the arrays for a file; their names begin with `name`."""
        arrays: Arrays = {
            "token_keys": self.tokens.keys,
            "token_numbers": self.tokens.numbers,
            "edge_keys": self.edges.keys,
            "edge_numbers": self.edges.numbers,
            "offsets": self.offsets,
            "labels": self.labels,
        }
        return {f"{name}.{key}": array for key, array in arrays.items()}

    @classmethod
    def from_arrays(cls, file_: ArrayFile, name: str, n_labels: int) -> "Trie":
        """Use the arrays of a file without copying them. Only values that are indices are checked."""
        tokens, edges = (
            HashTable(file_.get(f"{name}.{part}_keys", "<u8"), file_.get(f"{name}.{part}_numbers", "<u4"))
            for part in ("token", "edge")
        )
        offsets, labels = (file_.get(f"{name}.{part}", "<u4") for part in ("offsets", "labels"))
        last = max(int(table.numbers.max(initial=0)) for table in (tokens, edges))
        is_sound = last + 2 == len(offsets) and len(labels) == offsets[-1] and (offsets[:-1] <= offsets[1:]).all()
        if not is_sound or (labels >= n_labels).any():
            raise file_.damaged(f"the arrays of '{name}' do not fit each other")
        return cls(tokens, edges, offsets, labels)


def _where(mask: NDArray[numpy.bool_], *arrays: Any) -> List[Any]:
    return [array[mask] for array in arrays]
