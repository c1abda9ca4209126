"""Finding all phrases of a table in sequences of token ids, many sequences at once.

Phrases are paths of a trie. A step from a node along a token is one look-up in a hash table, under the key (node,
token), which is compared in full: hits are exact, and a position is given up as soon as no phrase goes on from it.
Ids are 64-bit values of token attributes; tokens that occur in no phrase are left behind by the first look-up.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy
from numpy.typing import NDArray

from .array_file import ArrayFile, Arrays
from .hash_table import HashTable, Ids, Ints

_HALF = numpy.uint64(32)
Index = NDArray[numpy.int64]


class Hits(NamedTuple):
    """Where phrases were found, in no particular order; a row for each label.

    places (Index): Index of the first token.
    lengths (Index): Number of tokens.
    labels (Index): Number of the label.
    """

    places: Index
    lengths: Index
    labels: Index


@dataclass(frozen=True, eq=False)
class Trie:
    """Phrases with their labels. Nodes are numbered from 1, parents before children; 0 is none, and the parent of the
    roots.

    tokens (HashTable): From ids to token numbers, 1 and up.
    roots (Ints): Shape (n_tokens + 1,): the node of a phrase's first token; 0 if no phrase begins with it.
    edges (HashTable): From (node << 32 | token number) to the next node.
    inner (int): Nodes up to this number have edges, those above have none.
    label_sets (Ints): Shape (n_nodes + 1,): the set of labels of the phrase that ends in a node; 0 if none does.
    set_offsets (Ints): Shape (n_sets + 2,): where the labels of a set begin in `set_labels`.
    set_labels (Ints): The labels of all sets.
    """

    tokens: HashTable
    roots: Ints
    edges: HashTable
    inner: int
    label_sets: Ints
    set_offsets: Ints
    set_labels: Ints

    @classmethod
    def build(cls, ids: Ids, offsets: Index, labels: Index, *, only_first: bool = False) -> "Trie":
        """Build a trie, one level at a time.

        ids (Ids): Ids of all tokens of all phrases; none is 0.
        offsets (Index): Shape (n_phrases + 1,): where a phrase begins in `ids`. None is empty.
        labels (Index): Shape (n_phrases,): number of its label.
        only_first (bool): Whether a phrase with several labels keeps the first of them only.
        RETURNS (Trie): The trie; the same for phrases in any order, unless the first label counts.
        """
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

    def __deepcopy__(self, memo: Any) -> "Trie":
        return self  # nothing in it ever changes

    def labels(self) -> Index:
        """RETURNS (Index): The numbers of the labels that phrases have."""
        used = numpy.zeros(len(self.set_offsets) - 1, dtype=bool)
        used[self.label_sets] = True
        sizes = numpy.diff(self.set_offsets.astype("int64"))
        return numpy.unique(self.set_labels[numpy.repeat(used, sizes)]).astype("int64")

    def find(self, ids: Ids) -> Hits:
        """Find all phrases, those that overlap included.

        ids (Ids): Ids of the tokens, of any number of sequences with a 0 behind each: no phrase reaches beyond a 0.
        RETURNS (Hits): The hits.
        """
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
        return self._labelled(_joined(places), _joined(lengths), _joined(sets))

    def _labelled(self, places: Index, lengths: Index, sets: Index) -> Hits:
        """Replace each set by the labels in it."""
        first = self.set_offsets[sets].astype("int64")
        sizes = self.set_offsets[sets + 1].astype("int64") - first
        rows = numpy.repeat(numpy.arange(len(sets)), sizes)
        within = numpy.arange(len(rows)) - numpy.repeat(numpy.cumsum(sizes) - sizes, sizes)
        return Hits(places[rows], lengths[rows], self.set_labels[first[rows] + within].astype("int64"))

    # Storage

    def to_arrays(self, name: str) -> Arrays:
        """RETURNS (Arrays): The arrays, for `ArrayFile`; names begin with `name`."""
        return {
            f"{name}.token_keys": self.tokens.keys,
            f"{name}.token_values": self.tokens.values,
            f"{name}.roots": self.roots,
            f"{name}.edge_keys": self.edges.keys,
            f"{name}.edge_values": self.edges.values,
            f"{name}.inner": numpy.asarray([self.inner], dtype="uint32"),
            f"{name}.label_sets": self.label_sets,
            f"{name}.set_offsets": self.set_offsets,
            f"{name}.set_labels": self.set_labels,
        }

    @classmethod
    def from_arrays(cls, file_: ArrayFile, name: str) -> "Trie":
        """Take the arrays of a file, without copying them.

        file_ (ArrayFile): The file.
        name (str): What `to_arrays` was given.
        RETURNS (Trie): The trie.
        RAISES (WeaknerError): If the arrays are damaged, or do not fit each other, so that a look-up could go astray.
        """

        def ints(part: str) -> Ints:
            return file_.typed(f"{name}.{part}", "<u4")

        tokens = HashTable(file_.typed(f"{name}.token_keys", "<u8"), ints("token_values"))
        edges = HashTable(file_.typed(f"{name}.edge_keys", "<u8"), ints("edge_values"))
        roots, inner, label_sets = ints("roots"), ints("inner"), ints("label_sets")
        set_offsets, set_labels = ints("set_offsets"), ints("set_labels")
        n_nodes = len(label_sets) - 1
        sound = (
            len(inner) == 1
            and len(roots) > 0
            and n_nodes >= 0
            and len(set_offsets) > 0
            and tokens.is_sound(len(roots) - 1)
            and edges.is_sound(n_nodes)
            # Parents come before their children: there is no way round in circles.
            and bool(((edges.keys >> _HALF < edges.values) | (edges.values == 0)).all())
            # No phrase begins with what is no token: what stands behind a sequence, too.
            and int(roots[0]) == 0
            and int(roots.max()) <= n_nodes
            and int(label_sets.max()) < len(set_offsets) - 1
            and int(set_offsets[0]) == 0
            and bool((set_offsets[1:] >= set_offsets[:-1]).all())
            and int(set_offsets[-1]) == len(set_labels)
        )
        if not sound:
            raise file_.damaged(f"the arrays of '{name}' do not fit each other")
        return cls(tokens, roots, edges, int(inner[0]), label_sets, set_offsets, set_labels)


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
    sets: List[Tuple[int, ...]] = [(), *((label,) for label in range(n_labels)), *known]
    offsets = numpy.cumsum([0, *map(len, sets)]).astype("uint32")
    return _LabelSets(ended, numbers, offsets, numpy.asarray([n for key in sets for n in key], dtype="uint32"))


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
