"""Finding all phrases of a table in sequences of token ids, many sequences at once.

Phrases are paths of a trie. A step from a node along a token is one look-up in a hash table, under the key (node,
token), which is compared in full: hits are exact, and a position is given up as soon as no phrase goes on from it.
Ids are 64-bit values of token attributes; tokens that occur in no phrase are left behind by the first look-up.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

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
    """A map from uint64 keys to uint32 values, neither of them 0, that looks up many keys at once, by open addressing.
    If a slot is taken, those 1, 1 + 2, 1 + 2 + 3, ... behind it are tried: with a power of two as the number of slots
    that reaches them all. A key of 0 is an empty slot."""

    keys: Ids
    values: Ints

    @classmethod
    def build(cls, keys: Ids, values: Optional[Ints] = None) -> "HashTable":
        """Fill a table; the default values are 1, 2 and so on. At least half of the slots stay empty, so that few slots
        are tried."""
        if values is None:
            values = numpy.arange(1, len(keys) + 1, dtype="uint32")
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
            table.values[slots[placed]] = values[placed]
            pending = pending[~settled]
            step += 1
            slots[pending] = (slots[pending] + step) & (n_slots - 1)
        return table

    def find(self, keys: Ids) -> Ints:
        """The values of keys; 0 for those that are not in the table."""
        slots = self._slots(keys)
        occupants = self.keys[slots]
        hit = occupants == keys
        found = numpy.where(hit, self.values[slots], numpy.uint32(0))
        # Where another key sits, other slots are tried, until the key is found or a slot is empty.
        rows = numpy.flatnonzero(~hit & (occupants != 0))
        slots, step = slots[rows], 0
        while len(rows):
            step += 1
            slots = (slots + step) & (len(self.keys) - 1)
            occupants = self.keys[slots]
            hit = occupants == keys[rows]
            found[rows[hit]] = self.values[slots[hit]]
            continued = ~hit & (occupants != 0)
            rows, slots = rows[continued], slots[continued]
        return found

    def _slots(self, keys: Ids) -> NDArray[numpy.int64]:
        spread = (keys * _SPREAD) >> _HALF
        slots: NDArray[numpy.int64] = ((spread * numpy.uint64(len(self.keys))) >> _HALF).astype("int64")
        return slots


@dataclass(frozen=True, eq=False)
class Trie:
    """Phrases with their labels. Nodes are numbered from 1, parents before children; 0 is none, and the parent of the
    roots."""

    tokens: HashTable  # from ids to token numbers, 1 and up
    roots: Ints  # shape (n_tokens + 1,): the node of a phrase's first token; 0 if no phrase begins with it
    edges: HashTable  # from (node << 32 | token number) to the next node
    inner: int  # nodes up to this number have edges, those above have none
    label_sets: Ints  # shape (n_nodes + 1,): the set of labels of the phrase that ends in a node; 0 if none does
    set_offsets: Ints  # shape (n_sets + 2,): where the labels of a set begin in `set_labels`
    set_labels: Ints  # the labels of all sets

    @classmethod
    def build(cls, ids: Ids, offsets: Index, labels: Index, *, only_first: bool = False) -> "Trie":
        """Build a trie, one level at a time. It is the same for phrases in any order, unless a phrase with several
        labels keeps the first of them only. `ids` of all tokens are not 0; no phrase from offset to offset is empty."""
        vocabulary, tokens = numpy.unique(ids, return_inverse=True)
        steps = tokens.astype("uint64") + numpy.uint64(1)
        begins, lengths = offsets[:-1], numpy.diff(offsets)
        last = numpy.zeros(len(lengths), dtype="uint64")  # the node that each phrase has reached
        rows = numpy.arange(len(lengths))
        keys: List[Ids] = [numpy.zeros(0, dtype="uint64")]
        has_edges: List[NDArray[numpy.bool_]] = [numpy.zeros(1, dtype=bool)]
        n_nodes, depth = 0, 0
        while len(rows):
            level, nodes = numpy.unique((last[rows] << _HALF) | steps[begins[rows] + depth], return_inverse=True)
            last[rows] = (nodes + n_nodes + 1).astype("uint64")
            depth += 1
            going_on = lengths[rows] > depth
            goes_on = numpy.zeros(len(level), dtype=bool)
            goes_on[nodes[going_on]] = True
            keys.append(level)
            has_edges.append(goes_on)
            n_nodes += len(level)
            rows = rows[going_on]
        order = _inner_first(numpy.concatenate(has_edges))
        parents_tokens = numpy.concatenate(keys)
        parents = order[(parents_tokens >> _HALF).astype("int64")]
        along = parents_tokens & numpy.uint64(0xFFFFFFFF)
        nodes = order[1:]
        first = parents == 0
        roots = numpy.zeros(len(vocabulary) + 1, dtype="uint32")
        roots[along[first]] = nodes[first]
        edges = HashTable.build((parents[~first].astype("uint64") << _HALF) | along[~first], nodes[~first])
        sets = _label_sets(order[last.astype("int64")], labels, only_first)
        label_sets = numpy.zeros(n_nodes + 1, dtype="uint32")
        label_sets[sets.nodes] = sets.numbers
        inner = int(sum(flags.sum() for flags in has_edges))
        return cls(HashTable.build(vocabulary), roots, edges, inner, label_sets, sets.offsets, sets.labels)

    def __len__(self) -> int:
        """The number of phrases; one with two labels counts once."""
        return int(numpy.count_nonzero(self.label_sets))

    def labels(self) -> Index:
        """The numbers of the labels that phrases have."""
        used = numpy.zeros(len(self.set_offsets) - 1, dtype=bool)
        used[self.label_sets] = True
        sizes = numpy.diff(self.set_offsets.astype("int64"))
        return numpy.unique(self.set_labels[numpy.repeat(used, sizes)]).astype("int64")

    def find(self, ids: Ids) -> Hits:
        """Find all phrases, those that overlap included. A 0 stands behind every sequence: no phrase goes beyond it."""
        tokens = self.tokens.find(ids)
        nodes = self.roots[tokens]
        at = numpy.flatnonzero(nodes)
        nodes = nodes[at]
        places, lengths, sets = [], [], []
        depth = 1
        while len(at):
            found = self.label_sets[nodes]
            ends = numpy.flatnonzero(found)
            places.append(at[ends])
            lengths.append(numpy.full(len(ends), depth))
            sets.append(found[ends])
            at, nodes = _where(nodes <= self.inner, at, nodes)
            following = tokens[at + depth]
            at, nodes, following = _where(following != 0, at, nodes, following)
            nodes = self.edges.find((nodes.astype("uint64") << _HALF) | following)
            at, nodes = _where(nodes != 0, at, nodes)
            depth += 1
        return self._labeled(_joined(places), _joined(lengths), _joined(sets))

    def _labeled(self, places: Index, lengths: Index, sets: Index) -> Hits:
        """Replace each set by the labels in it."""
        first = self.set_offsets[sets].astype("int64")
        sizes = self.set_offsets[sets + 1].astype("int64") - first
        rows = numpy.repeat(numpy.arange(len(sets)), sizes)
        within = numpy.arange(len(rows)) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)
        return Hits(places[rows], lengths[rows], self.set_labels[first[rows] + within].astype("int64"))

    # Storage

    def to_arrays(self, name: str) -> Arrays:
        """The arrays, for a file; their names begin with `name`."""
        arrays: Arrays = {
            "token_keys": self.tokens.keys,
            "token_values": self.tokens.values,
            "roots": self.roots,
            "edge_keys": self.edges.keys,
            "edge_values": self.edges.values,
            "inner": numpy.asarray([self.inner], dtype="uint32"),
            "label_sets": self.label_sets,
            "set_offsets": self.set_offsets,
            "set_labels": self.set_labels,
        }
        return {f"{name}.{key}": array for key, array in arrays.items()}

    @classmethod
    def from_arrays(cls, file_: ArrayFile, name: str, n_labels: int) -> "Trie":
        """Use the arrays of a file, without copying them. Their values are checked only where they are indices."""

        def ints(part: str) -> Ints:
            return file_.get(f"{name}.{part}", "<u4")

        tokens = HashTable(file_.get(f"{name}.token_keys", "<u8"), ints("token_values"))
        edges = HashTable(file_.get(f"{name}.edge_keys", "<u8"), ints("edge_values"))
        roots, label_sets, set_offsets, set_labels = map(ints, ("roots", "label_sets", "set_offsets", "set_labels"))
        bounds = (
            (tokens.values, len(roots)),
            (edges.values, len(label_sets)),
            (roots, len(label_sets)),
            (label_sets, len(set_offsets) - 1),
            (set_offsets, len(set_labels) + 1),
            (set_labels, n_labels),
        )
        if any(int(values.max(initial=0)) >= max(bound, 1) for values, bound in bounds):
            raise file_.damaged(f"the arrays of '{name}' do not fit each other")
        return cls(tokens, roots, edges, int(ints("inner")[0]), label_sets, set_offsets, set_labels)


class _LabelSets(NamedTuple):
    nodes: Index
    numbers: Index
    offsets: Ints
    labels: Ints


def _label_sets(nodes: Index, labels: Index, only_first: bool) -> _LabelSets:
    """Number the different sets of labels that nodes have, from 1."""
    pairs = numpy.stack([nodes, labels], axis=1)
    if only_first:
        pairs = pairs[numpy.unique(nodes, return_index=True)[1]]
    else:
        pairs = numpy.unique(pairs, axis=0) if len(pairs) else pairs
    ended, first, sizes = numpy.unique(pairs[:, 0], return_index=True, return_counts=True)
    known: Dict[Tuple[int, ...], int] = {}
    n_labels = int(labels.max(initial=-1)) + 1
    # A single label is the set of its number + 1; the others, of which there are few, are numbered as they come.
    numbers = pairs[first, 1] + 1
    for i in numpy.flatnonzero(sizes > 1):
        key = tuple(pairs[first[i] : first[i] + sizes[i], 1].tolist())
        numbers[i] = known.setdefault(key, n_labels + 1 + len(known))
    offsets = numpy.cumsum([0, 0, *[1] * n_labels, *map(len, known)], dtype="uint32")
    members = numpy.fromiter(chain(range(n_labels), *known), dtype="uint32")
    return _LabelSets(ended, numbers, offsets, members)


def _inner_first(inner: NDArray[numpy.bool_]) -> Index:
    """New numbers of nodes: those with edges first. Node 0 stays."""
    order = numpy.zeros(len(inner), dtype="int64")
    order[inner] = numpy.arange(1, inner.sum() + 1)
    rest = ~inner
    rest[0] = False
    order[rest] = numpy.arange(inner.sum() + 1, len(inner))
    return order


def _where(mask: NDArray[numpy.bool_], *arrays: Any) -> List[Any]:
    return [array[mask] for array in arrays]


def _joined(parts: List[Any]) -> Index:
    return numpy.concatenate(parts).astype("int64") if parts else numpy.zeros(0, dtype="int64")
