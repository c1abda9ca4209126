"""The compiled table of a term list: its terms, the settings, and the tries that find the terms."""

from itertools import islice
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy
from numpy.typing import NDArray

from ..ty import Hashes, Ints
from .array_file import ArrayFile, Arrays, dump_arrays, write_arrays
from .columns import TableSettings, TermColumns
from .concepts import Concepts
from .ragged import Ragged
from .trie import Hits, Trie

AMBIGUITY = ("all", "first", "drop")


class MatchTable(NamedTuple):
    """Matches in a batch of sequences, sorted by sequence, start, end and label: a row for each label and id, with ids
    in the order of the list. A concept is the number of a label and id in the table's `concepts`."""

    sequences: Ints
    starts: Ints
    ends: Ints
    concepts: Ints


class UniqueMatches(NamedTuple):
    """Unique matches with their labels and ids, as lists."""

    counts: List[int]  # number of matches in each sequence
    starts: List[int]
    ends: List[int]
    labels: List[str]
    ids: List[List[str]]  # ids of each match, in the order of the term list; empty if the table has no ids


class TermTable:
    """An immutable table that finds terms. `plain` has the terms that are matched on the component's attribute, `exact`
    those matched on ORTH, `columns` all terms, or the file from which they are read when needed."""

    def __init__(
        self,
        settings: TableSettings,
        concepts: Concepts,
        plain: Trie,
        exact: Trie,
        columns: Union[TermColumns, ArrayFile],
    ) -> None:
        self.settings = settings
        self.concepts = concepts
        self.plain = plain
        self.exact = exact
        self.has_exact = len(exact) > 0
        self.is_empty = not len(plain) and not self.has_exact
        self._columns = columns

    @classmethod
    def build(cls, columns: TermColumns, settings: TableSettings) -> "TermTable":
        selection = columns.select(settings)
        only_first = settings.ambiguity == "first"

        def trie(values: Ragged, rows: Ints, cased: bool) -> Trie:
            """Index the values of some terms, and those of their other spellings."""
            others = numpy.flatnonzero(numpy.isin(columns.variant_of, rows) & (columns.variant_cased == cased))
            owners = numpy.concatenate([rows, columns.variant_of[others]])
            in_order = numpy.argsort(owners, kind="stable")  # the order of the terms determines the first label
            ids = values.take(rows).plus(columns.variants.take(others)).take(in_order)
            labels = columns.concept_of[owners[in_order]].astype("int64")
            return Trie.build(ids.values, ids.offsets.astype("int64"), labels, only_first=only_first)

        plain = trie(columns.ids, selection.plain, cased=False)
        exact = trie(columns.exact, selection.exact, cased=True)
        return cls(settings, columns.concepts, plain, exact, columns)

    @property
    def columns(self) -> TermColumns:
        """All terms. Those of a stored table are read when they are first needed."""
        if isinstance(self._columns, ArrayFile):
            self._columns = TermColumns.from_arrays(self._columns, self.concepts)
        return self._columns

    @property
    def labels(self) -> List[str]:
        """Labels of the phrases that are looked up, sorted."""
        return self.concepts.used_names(numpy.concatenate([self.plain.labels, self.exact.labels]))

    def find(self, values: Hashes, offsets: Ints) -> MatchTable:
        """Find all terms, including overlapping ones, in sequences that follow each other; `offsets` are their starts
        and the end, (n_sequences + 1,).

        A token has the value of the matched attribute, shape (n_tokens,); if the table `has_exact` terms, this and the
        value of ORTH, shape (n_tokens, 2).
        """
        # A 0 follows every sequence; it is in no term.
        numbers = numpy.arange(len(offsets) - 1)
        begins = offsets[:-1] + numbers
        flat = numpy.zeros((len(values) + len(numbers), *values.shape[1:]), dtype="uint64")
        flat[numpy.arange(len(values)) + numpy.repeat(numbers, numpy.diff(offsets))] = values
        hits = self._find_both(flat) if self.has_exact else self.plain.find(flat)
        hits = _sorted(hits, len(self.concepts))
        if self.settings.ambiguity == "drop":
            hits = _unambiguous(hits, self.concepts.labels)
        numbers = numpy.searchsorted(begins, hits.places, side="right") - 1
        starts = hits.places - begins[numbers]
        return MatchTable(numbers, starts, starts + hits.lengths, hits.labels)

    def described(
        self, matches: MatchTable, n_sequences: int, label_names: Optional[Dict[str, str]] = None
    ) -> UniqueMatches:
        """Look up labels and ids of matches. `label_names`, if given, selects labels and renames them."""
        names = self.concepts.names
        labels = self.concepts.labels[matches.concepts].astype("int64")
        if label_names is not None:
            numbers = {name: n for n, name in enumerate(sorted({*label_names.values()}))}
            renamed = [numbers[label_names[name]] if name in label_names else -1 for name in names]
            names, labels = list(numbers), numpy.asarray(renamed, dtype="int64")[labels]
            keys = [labels, matches.ends, matches.starts, matches.sequences]
            if self.concepts.has_ids:  # of several labels that become one, each may have ids
                keys.insert(0, self.columns.first_rows[matches.concepts])
            order = numpy.lexsort(keys)
            order = order[labels[order] >= 0]
            matches, labels = MatchTable(*(column[order] for column in matches)), labels[order]
        rows = numpy.stack([matches.sequences, matches.starts, matches.ends, labels])
        is_first = numpy.ones(len(labels), dtype=bool)
        is_first[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
        sequences, starts, ends, labels = rows[:, is_first]
        return UniqueMatches(
            numpy.bincount(sequences, minlength=n_sequences).tolist(),
            starts.tolist(),
            ends.tolist(),
            [names[label] for label in labels.tolist()],
            self._ids(matches.concepts, is_first) if self.concepts.has_ids else [],
        )

    def _ids(self, concepts: Ints, is_first: NDArray[numpy.bool_]) -> List[List[str]]:
        """Return the ids of each match, which has a row for each id, and possibly a row without an id."""
        has_id = numpy.diff(self.concepts.ids.offsets)[concepts] > 0
        counts = numpy.bincount((numpy.cumsum(is_first) - 1)[has_id], minlength=int(is_first.sum()))
        used, places = numpy.unique(concepts[has_id], return_inverse=True)
        ids = map(list(self.concepts.ids.take(used).texts()).__getitem__, places.tolist())
        return [list(dict.fromkeys(islice(ids, n))) for n in counts.tolist()]

    def _find_both(self, flat: Hashes) -> Hits:
        plain = self.plain.find(numpy.ascontiguousarray(flat[:, 0]))
        exact = self.exact.find(numpy.ascontiguousarray(flat[:, 1]))
        if self.settings.ambiguity == "first":
            # If a phrase is found in both ways, the label in exact case comes first.
            again = _in(plain, exact)
            plain = Hits(*(column[~again] for column in plain))
        return Hits(*(numpy.concatenate(pair) for pair in zip(plain, exact, strict=True)))

    # Storage

    def to_file(self, path: Path, meta: Dict[str, Any]) -> None:
        """Write the table with additional metadata, atomically."""
        write_arrays(path, *self._stored(meta))

    def to_bytes(self) -> bytes:
        return dump_arrays(*self._stored({}))

    def _stored(self, meta: Dict[str, Any]) -> Tuple[Dict[str, Any], Arrays]:
        arrays = {**self.plain.to_arrays("plain"), **self.exact.to_arrays("exact"), **self.columns.to_arrays()}
        arrays.update(self.concepts.to_arrays())
        return {**meta, "labels": self.concepts.names, "settings": self.settings._asdict()}, arrays

    @classmethod
    def from_file(cls, file_: ArrayFile, settings: TableSettings) -> "TermTable":
        """Use a stored table; compile it again if its settings differ."""
        concepts = Concepts.from_file(file_)
        if file_.meta.get("settings") != settings._asdict():
            return cls.build(TermColumns.from_arrays(file_, concepts), settings)
        plain, exact = (Trie.from_arrays(file_, name, len(concepts)) for name in ("plain", "exact"))
        return cls(settings, concepts, plain, exact, file_)

    def __deepcopy__(self, memo: Any) -> "TermTable":
        return self  # immutable

    def __getstate__(self) -> Dict[str, Any]:
        # A mapped file cannot be sent to another process; its contents can.
        return {**self.__dict__, "_columns": self.columns}


def _sorted(hits: Hits, n_labels: int) -> Hits:
    """Sort hits by place, length and label, and remove duplicates."""
    above = int(hits.lengths.max(initial=0)) + 1
    keys = numpy.unique((hits.places * above + hits.lengths) * n_labels + hits.labels)
    return Hits(keys // (above * n_labels), keys // n_labels % above, keys % n_labels)


def _unambiguous(hits: Hits, label_numbers: Ints) -> Hits:
    """Return the sorted hits of phrases with a single label: without hits of other labels on the same tokens."""
    labels = label_numbers[hits.labels]
    again = (hits.places[1:] == hits.places[:-1]) & (hits.lengths[1:] == hits.lengths[:-1])
    phrases = numpy.concatenate([numpy.zeros(min(1, len(labels)), dtype="int64"), numpy.cumsum(~again)])
    several = numpy.unique(phrases[1:][again & (labels[1:] != labels[:-1])])
    alone = ~numpy.isin(phrases, several)
    return Hits(*(column[alone] for column in hits))


def _in(hits: Hits, others: Hits) -> NDArray[numpy.bool_]:
    """Return a mask of the hits that have the place and length of one of the others."""
    above = max(int(h.lengths.max(initial=0)) for h in (hits, others)) + 1
    places, other_places = (h.places * above + h.lengths for h in (hits, others))
    return numpy.isin(places, other_places)
