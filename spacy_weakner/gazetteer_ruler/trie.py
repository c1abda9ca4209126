"""Finding all phrases of a table in sequences of token ids, many sequences at once.

Phrases are paths of a trie. A step from a node along a token is one look-up in a hash table, under the key (node,
token), which is compared in full: hits are exact, and a position is given up as soon as no phrase goes on from it.
Ids are 64-bit values of token attributes; tokens that occur in no phrase are left behind by the first look-up.
"""

from dataclasses import dataclass
from typing import Any, List, NamedTuple

import numpy
from numpy.typing import NDArray

from .array_file import ArrayFile, Arrays

Ids = NDArray[numpy.uint64]
Ints = NDArray[numpy.uint32]
Index = NDArray[numpy.int64]
# Odd, near 2**64 / golden ratio: spreads keys that lie close together (Knuth, The Art of Computer Programming 3, 6.4).
_SPREAD = numpy.uint64(0x9E3779B97F4A7C15)
_HALF = numpy.uint64(32)


class Hits(NamedTuple):
    """Where phrases were found, in no particular order; a row for each label."""

    places: Index  # of the first token
    lengths: Index
    labels: Index


@dataclass(frozen=True, eq=False)
class HashTable:
    """Numbers uint64 keys, none of them 0, and looks up many at once, by open addressing. If a slot is taken, those 1,
    1 + 2, 1 + 2 + 3, ... behind it are tried: with a power of two as the number of slots that reaches them all. A key
    of 0 is an empty slot."""

    keys: Ids
    numbers: Ints

    @classmethod
    def build(cls, keys: Ids, first: int = 1) -> "HashTable":
        """Number different keys, from `first`. At least half of the slots stay empty, so that few slots are tried."""
        n_slots = 1 << max(3, (2 * len(keys) - 1).bit_length())
        table = cls(numpy.zeros(n_slots, dtype="uint64"), numpy.zeros(n_slots, dtype="uint32"))
        slots = table._slots(keys)
        pending, step = numpy.arange(len(keys)), 0
        while len(pending):
            free = pending[table.keys[slots[pending]] == 0]
            # Of keys that want the same slot the first gets it: the last assignment counts.
            table.keys[slots[free[::-1]]] = keys[free[::-1]]
            settled = table.keys[slots[pending]] == keys[pending]
            placed = pending[settled]
            table.numbers[slots[placed]] = placed + first
            pending = pending[~settled]
            step += 1
            slots[pending] = (slots[pending] + step) & (n_slots - 1)
        return table

    def find(self, keys: Ids) -> Ints:
        """The numbers of keys; 0 for those that are not in the table."""
        slots = self._slots(keys)
        occupants = self.keys[slots]
        hit = occupants == keys
        found = numpy.where(hit, self.numbers[slots], numpy.uint32(0))
        # Where another key sits, other slots are tried, until the key is found or a slot is empty.
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

    def _slots(self, keys: Ids) -> NDArray[numpy.int64]:
        spread = (keys * _SPREAD) >> _HALF
        slots: NDArray[numpy.int64] = ((spread * numpy.uint64(len(self.keys))) >> _HALF).astype("int64")
        return slots


@dataclass(frozen=True, eq=False)
class Trie:
    """Phrases with their labels. Nodes are numbered from 1; 0 is none."""

    tokens: HashTable  # from each id to the node of phrases that begin with it, which is its number as a token, too
    edges: HashTable  # from (node << 32 | token number) to the next node
    offsets: Ints  # shape (n_nodes + 2,): where the labels of the phrase that ends in a node begin in `labels`
    labels: Ints

    @classmethod
    def build(cls, ids: Ids, offsets: Index, labels: Index, *, only_first: bool = False) -> "Trie":
        """Build a trie, one level at a time. It is the same for phrases in any order, unless a phrase with several
        labels keeps the first of them only. `ids` of all tokens are not 0; no phrase from offset to offset is empty."""
        vocabulary, places = numpy.unique(ids, return_inverse=True)
        tokens = places.astype("uint64") + numpy.uint64(1)
        begins, lengths = offsets[:-1], numpy.diff(offsets)
        last = tokens[begins]  # the node that each phrase has reached
        keys: List[Ids] = [numpy.zeros(0, dtype="uint64")]
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
        """The number of phrases; one with two labels counts once."""
        return int(numpy.count_nonzero(numpy.diff(self.offsets)))

    def used_labels(self) -> Index:
        """The numbers of the labels that phrases have."""
        return numpy.unique(self.labels).astype("int64")

    def find(self, ids: Ids) -> Hits:
        """Find all phrases, those that overlap included. A 0 stands behind every sequence: no phrase goes beyond it."""
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
        """The arrays, for a file; their names begin with `name`."""
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
        """Use the arrays of a file, without copying them. Their values are checked only where they are indices."""
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
