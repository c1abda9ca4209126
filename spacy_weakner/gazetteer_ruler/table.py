"""The compiled table of a term list: terms, what the settings make of them, and the tries that find them."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

import numpy
from numpy.typing import NDArray

from .array_file import ArrayFile, Arrays, dump_arrays, write_arrays
from .columns import Ragged, TableSettings, TermColumns, split_name
from .trie import Hits, Ids, Index, Trie

AMBIGUITY = ("all", "first", "drop")


class Matches(NamedTuple):
    """Matches in a batch of sequences, sorted by sequence, start, end and label: a row for each label and each of its
    ids, these in the order of the list. A label is a number in the list of names of the table."""

    sequences: Index
    starts: Index
    ends: Index
    labels: Index


class TermTable:
    """Finds terms; immutable.

    settings (TableSettings): What it was compiled with.
    names (Sequence[str]): Labels and ids in the order of their numbers in matches: sorted by label.
    plain (Trie): Terms that are matched on the component's attribute.
    exact (Trie): Terms that are matched on ORTH.
    columns (Union[TermColumns, ArrayFile]): All terms, or the file from which to read them when they are needed.
    """

    def __init__(
        self,
        settings: TableSettings,
        names: Sequence[str],
        plain: Trie,
        exact: Trie,
        columns: Union[TermColumns, ArrayFile],
    ) -> None:
        self.settings = settings
        pairs = [split_name(name) for name in names]
        self.names = [label for label, _ in pairs]
        self.ids = [identifier for _, identifier in pairs]
        self.has_ids = any(self.ids)
        # Of each name the number of its label.
        self._label_numbers = numpy.unique(numpy.asarray(self.names, dtype=object), return_inverse=True)[1]
        self.plain = plain
        self.exact = exact
        self.has_exact = len(exact) > 0
        self.is_empty = not len(plain) and not self.has_exact
        self._columns = columns

    @classmethod
    def build(cls, columns: TermColumns, settings: TableSettings) -> "TermTable":
        """Compile a table."""
        selection = columns.select(settings)
        names = _sorted_names(columns.names)
        places = {name: number for number, name in enumerate(names)}
        numbers = numpy.asarray([places[name] for name in columns.names], dtype="int64")
        only_first = settings.ambiguity == "first"

        def trie(ids: Ragged, rows: Index) -> Trie:
            labels = numbers[columns.labels[rows]]
            return Trie.build(ids.values, ids.offsets.astype("int64"), labels, only_first=only_first)

        others = numpy.flatnonzero(numpy.isin(columns.variant_of, selection.plain))
        every = columns.ids.take(selection.plain).plus(columns.variants.take(others))
        owners = numpy.concatenate([selection.plain, columns.variant_of[others]])
        in_order = numpy.argsort(owners, kind="stable")  # the order of the terms decides which label is the first
        plain = trie(every.take(in_order), owners[in_order])
        exact = trie(columns.exact.take(selection.exact), selection.exact)
        return cls(settings, names, plain, exact, columns)

    @property
    def columns(self) -> TermColumns:
        """All terms. Those of a stored table are read from it when they are needed."""
        if isinstance(self._columns, ArrayFile):
            self._columns = TermColumns.from_arrays(self._columns, _names(self._columns))
        return self._columns

    @property
    def labels(self) -> List[str]:
        """Labels of the phrases that are looked up, sorted."""
        numbers = {int(n) for trie in (self.plain, self.exact) for n in trie.labels()}
        return sorted({self.names[n] for n in numbers})

    def find(self, sequences: Sequence[Ids]) -> Matches:
        """Find all terms, those that overlap included.

        sequences (Sequence[Ids]): Per sequence the values of the matched attribute, shape (n_tokens,); or, if the table
            `has_exact` terms, shape (n_tokens, 2): these and the values of ORTH.
        RETURNS (Matches): The matches.
        """
        if not len(sequences):
            nothing = numpy.zeros(0, dtype="int64")
            return Matches(nothing, nothing, nothing, nothing)
        # A 0 behind every sequence, which is in no term.
        lengths = numpy.fromiter(map(len, sequences), dtype="int64", count=len(sequences))
        begins = numpy.cumsum(lengths + 1) - lengths - 1
        joined = numpy.concatenate(sequences)
        flat = numpy.zeros((len(joined) + len(sequences), *joined.shape[1:]), dtype="uint64")
        flat[numpy.arange(len(joined)) + numpy.repeat(numpy.arange(len(sequences)), lengths)] = joined
        hits = self._find_both(flat) if self.has_exact else self.plain.find(flat)
        hits = _sorted(hits, len(self.names))
        if self.settings.ambiguity == "drop":
            hits = _unambiguous(hits, self._label_numbers)
        numbers = numpy.searchsorted(begins, hits.places, side="right") - 1
        starts = hits.places - begins[numbers]
        return Matches(numbers, starts, starts + hits.lengths, hits.labels)

    def _find_both(self, flat: Ids) -> Hits:
        plain = self.plain.find(numpy.ascontiguousarray(flat[:, 0]))
        exact = self.exact.find(numpy.ascontiguousarray(flat[:, 1]))
        if self.settings.ambiguity == "first":
            # Of a phrase that is found in both ways the label in exact case comes first.
            again = _in(plain, exact)
            plain = Hits(*(column[~again] for column in plain))
        return Hits(*(numpy.concatenate(pair) for pair in zip(plain, exact, strict=True)))

    # Storage

    def to_file(self, path: Path, meta: Dict[str, Any]) -> None:
        """Write the table with more metadata, whole or not at all."""
        write_arrays(path, *self._stored(meta))

    def to_bytes(self) -> bytes:
        """The contents of such a file."""
        return dump_arrays(*self._stored({}))

    def _stored(self, meta: Dict[str, Any]) -> Tuple[Dict[str, Any], Arrays]:
        arrays = {**self.plain.to_arrays("plain"), **self.exact.to_arrays("exact"), **self.columns.to_arrays()}
        return {**meta, "labels": list(self.columns.names), "settings": self.settings._asdict()}, arrays

    @classmethod
    def from_file(cls, file_: ArrayFile, settings: TableSettings) -> "TermTable":
        """Use a stored table; compile it anew if it was compiled with other settings.

        RAISES (WeaknerError): If the file is damaged.
        """
        if file_.meta.get("settings") != settings._asdict():
            return cls.build(TermColumns.from_arrays(file_, _names(file_)), settings)
        names = _sorted_names(_names(file_))
        plain, exact = (Trie.from_arrays(file_, name, len(names)) for name in ("plain", "exact"))
        return cls(settings, names, plain, exact, file_)

    def __deepcopy__(self, memo: Any) -> "TermTable":
        return self  # nothing in it ever changes

    def __getstate__(self) -> Dict[str, Any]:
        # A mapped file cannot be sent to another process, its contents can.
        return {**self.__dict__, "_columns": self.columns}


def _sorted_names(names: Sequence[str]) -> List[str]:
    """By label; the ids of a label in the order of the list."""
    return sorted(names, key=lambda name: split_name(name)[0])


def _names(file_: ArrayFile) -> List[str]:
    names = file_.meta.get("labels")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise file_.damaged("the labels are not a list of strings")
    return names


def _sorted(hits: Hits, n_labels: int) -> Hits:
    """Sort hits by place, length and label, and leave out what comes twice."""
    above = int(hits.lengths.max(initial=0)) + 1
    keys = numpy.unique((hits.places * above + hits.lengths) * n_labels + hits.labels)
    return Hits(keys // (above * n_labels), keys // n_labels % above, keys % n_labels)


def _unambiguous(hits: Hits, label_numbers: Index) -> Hits:
    """Of sorted hits those that share place and length with none of another label: phrases with one label."""
    labels = label_numbers[hits.labels]
    again = (hits.places[1:] == hits.places[:-1]) & (hits.lengths[1:] == hits.lengths[:-1])
    phrases = numpy.concatenate([numpy.zeros(min(1, len(labels)), dtype="int64"), numpy.cumsum(~again)])
    several = numpy.unique(phrases[1:][again & (labels[1:] != labels[:-1])])
    alone = ~numpy.isin(phrases, several)
    return Hits(*(column[alone] for column in hits))


def _in(hits: Hits, others: Hits) -> NDArray[numpy.bool_]:
    """Which hits have the place and length of one of the others."""
    above = max(int(h.lengths.max(initial=0)) for h in (hits, others)) + 1
    own, theirs = (h.places * above + h.lengths for h in (hits, others))
    return numpy.isin(own, theirs)
