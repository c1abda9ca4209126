"""All terms of a list, tokenized, in columns: a million terms take tens of megabytes, and a file can hold them."""

from array import array
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from .array_file import ArrayFile, Arrays
from .forms import folded
from .terms import Term
from .trie import Ids, Index

Rows = NDArray[Any]
# The columns of a file, and the types of their values.
_FLAT = {"labels": "<u4", "characters": "<u4", "cased": "<u1", "variant_of": "<u4"}
_RAGGED = {"text": "<u1", "ids": "<u8", "exact": "<u8", "variants": "<u8", "preferred": "<u1"}


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different length."""

    values: Rows  # all of them, one row behind the other
    offsets: Ids  # shape (n_rows + 1,): where each row begins

    @classmethod
    def of(cls, values: Any, lengths: Any, dtype: str) -> "Ragged":
        """Rows of the given lengths."""
        offsets = numpy.concatenate([numpy.zeros(1, dtype="uint64"), numpy.cumsum(lengths, dtype="uint64")])
        return cls(numpy.asarray(values, dtype=dtype), offsets)

    @classmethod
    def of_texts(cls, texts: Sequence[bytes]) -> "Ragged":
        """Texts in UTF-8."""
        return cls.of(numpy.frombuffer(b"".join(texts), dtype="uint8"), list(map(len, texts)), "uint8")

    def __getitem__(self, row: int) -> Rows:
        """One row."""
        return self.values[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def take(self, rows: Index) -> "Ragged":
        """Some rows, in the order given."""
        lengths = numpy.diff(self.offsets)[rows].astype("int64")
        taken = Ragged.of([], lengths, self.values.dtype.str)
        moves = self.offsets[rows].astype("int64") - taken.offsets[:-1].astype("int64")
        return Ragged(self.values[numpy.repeat(moves, lengths) + numpy.arange(lengths.sum())], taken.offsets)

    def plus(self, other: "Ragged") -> "Ragged":
        """These rows, then others."""
        offsets = numpy.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]])
        return Ragged(numpy.concatenate([self.values, other.values]), offsets)


class TableSettings(NamedTuple):
    """Settings of the component that decide which terms are matched, and how."""

    acronym_length: int
    stop: List[str]
    min_length: int
    ambiguity: str


class Selection(NamedTuple):
    """Rows by how they are matched, or why they are not."""

    plain: Index  # matched on the component's attribute
    exact: Index  # matched in exact case
    short: Index  # skipped: too few characters
    stop: Index  # skipped: on the stop list
    empty: Index  # skipped: no tokens

    def sizes(self) -> Dict[str, int]:
        """The number of rows of each kind."""
        return {kind: len(rows) for kind, rows in self._asdict().items()}


@dataclass(frozen=True, eq=False)
class TermColumns:
    """Terms with their tokens: all that matching needs, so that nothing is tokenized twice.

    names (Tuple[str, ...]): The labels; with an id, as `name_of` writes them.
    labels (Rows): Shape (n_terms,): number of each term's name.
    text (Ragged): The terms as they were read, in UTF-8.
    characters (Rows): Shape (n_terms,): their length in characters.
    cased (Rows): Shape (n_terms,): 1 for those that are declared to match in exact case only.
    ids (Ragged): Values of the matched attribute, without white space tokens.
    variants (Ragged): Values of the matched attribute for other spellings of terms, which tokenizers split otherwise.
    variant_of (Rows): Shape (n_variants,): the row of the term that each belongs to, ascending.
    exact (Ragged): Values of ORTH for the terms that might match in exact case only: those that are declared so, and
        those with an upper-case letter after the first character, which the rule for short acronyms might want; unless
        ORTH is the matched attribute. None for the others.
    preferred (Ragged): Of each name with an id the preferred name of the concept, in UTF-8; empty where the list gives
        none.
    """

    names: Tuple[str, ...]
    labels: Rows
    text: Ragged
    characters: Rows
    cased: Rows
    ids: Ragged
    exact: Ragged
    variants: Ragged
    variant_of: Rows
    preferred: Ragged

    def __len__(self) -> int:
        """The number of terms."""
        return len(self.labels)

    def terms(self) -> Iterator[Term]:
        """All terms, in the order in which they were added."""
        for row, (label, cased) in enumerate(zip(self.labels.tolist(), self.cased.tolist(), strict=True)):
            name, identifier = split_name(self.names[label])
            preferred = _decoded(self.preferred, label) if identifier else ""
            yield Term(name, _decoded(self.text, row), bool(cased), identifier, preferred)

    def preferred_name(self, identifier: str) -> str:
        """Preferred name of an id: the first that the list gives, or else its first term; empty if no term has it."""
        number = self._numbers.get(identifier)
        if number is None:
            return ""
        return _decoded(self.preferred, number) or _decoded(self.text, int(numpy.argmax(self.labels == number)))

    @cached_property
    def _numbers(self) -> Dict[str, int]:
        """Of each id the number of the first name with it, preferably one with a preferred name."""
        order = sorted(range(len(self.names)), key=lambda number: not len(self.preferred[number]))
        return {identifier: n for n in reversed(order) if (identifier := split_name(self.names[n])[1])}

    @cached_property
    def used_names(self) -> List[str]:
        """The labels that terms have, sorted."""
        return sorted({split_name(self.names[label])[0] for label in numpy.unique(self.labels)})

    def plus(self, other: "TermColumns") -> "TermColumns":
        """These terms, then others that are not among them; each once."""
        numbers = {name: number for number, name in enumerate(dict.fromkeys((*self.names, *other.names)))}
        preferred = [b""] * len(numbers)
        for columns in (other, self):
            for number, name in enumerate(columns.names):
                preferred[numbers[name]] = columns.preferred[number].tobytes() or preferred[numbers[name]]
        moved = numpy.asarray([numbers[name] for name in other.names], dtype="uint32")
        both = TermColumns(
            tuple(numbers),
            numpy.concatenate([self.labels, moved[other.labels]]),
            self.text.plus(other.text),
            numpy.concatenate([self.characters, other.characters]),
            numpy.concatenate([self.cased, other.cased]),
            self.ids.plus(other.ids),
            self.exact.plus(other.exact),
            self.variants.plus(other.variants),
            numpy.concatenate([self.variant_of, other.variant_of + numpy.uint32(len(self))]),
            Ragged.of_texts(preferred),
        )
        return both.unique()

    def unique(self) -> "TermColumns":
        """Every term once, where it came first."""
        digests = b"".join(
            blake2b(f"{term.exact:d}\n{name_of(term)}\n{term.text}".encode(), digest_size=16).digest()
            for term in self.terms()
        )
        a, b = numpy.frombuffer(digests, dtype="uint64").reshape(-1, 2).T
        order = numpy.lexsort((a, b))  # stable: of equal terms the first comes first
        again = (a[order][1:] == a[order][:-1]) & (b[order][1:] == b[order][:-1])
        return self if not again.any() else self.take(numpy.sort(numpy.delete(order, 1 + numpy.flatnonzero(again))))

    def take(self, rows: Index) -> "TermColumns":
        """Some terms, in ascending order."""
        place = numpy.searchsorted(rows, self.variant_of)
        kept = numpy.flatnonzero(numpy.isin(self.variant_of, rows))
        return TermColumns(
            self.names,
            self.labels[rows],
            self.text.take(rows),
            self.characters[rows],
            self.cased[rows],
            self.ids.take(rows),
            self.exact.take(rows),
            self.variants.take(kept),
            place[kept].astype("uint32"),
            self.preferred,
        )

    def select(self, settings: TableSettings) -> Selection:
        """Sort all rows by how the settings treat them; each is of one kind."""
        short = self.characters < settings.min_length
        stopped = numpy.zeros(len(self), dtype=bool)
        if settings.stop:
            stops = {folded(text) for text in settings.stop}
            stopped = numpy.fromiter((folded(term.text) in stops for term in self.terms()), bool, len(self))
        empty = numpy.diff(self.ids.offsets) == 0
        wanted = (self.characters <= settings.acronym_length) | (self.cased != 0)
        exact = wanted & (numpy.diff(self.exact.offsets) > 0)
        left = numpy.ones(len(self), dtype=bool)
        kinds = {}
        for kind, mask in (("short", short), ("stop", stopped), ("empty", empty), ("exact", exact), ("plain", left)):
            kinds[kind] = numpy.flatnonzero(left & mask)
            left = left & ~mask
        return Selection(**kinds)

    # Storage

    def to_arrays(self) -> Arrays:
        """The columns, for a file."""
        arrays: Arrays = {name: getattr(self, name) for name in _FLAT}
        for name in _RAGGED:
            rows: Ragged = getattr(self, name)
            arrays.update({name: rows.values, f"{name}_offsets": rows.offsets})
        return arrays

    @classmethod
    def from_arrays(cls, file_: ArrayFile, names: Sequence[str]) -> "TermColumns":
        """Use the arrays of a file, without copying them."""
        columns: Dict[str, Any] = {name: file_.get(name, dtype) for name, dtype in _FLAT.items()}
        for name, dtype in _RAGGED.items():
            columns[name] = Ragged(file_.get(name, dtype), file_.get(f"{name}_offsets", "<u8"))
        if int(columns["labels"].max(initial=0)) >= max(1, len(names)):
            raise file_.damaged("a term has a label without a name")
        return cls(tuple(names), **columns)


class ColumnBuilder:
    """Collects tokenized terms."""

    def __init__(self) -> None:
        self._names: Dict[str, int] = {}
        self._labels, self._characters, self._variant_of = array("I"), array("I"), array("I")
        self._cased = bytearray()
        self._preferred: List[bytes] = []  # of each name
        # Values and lengths of rows.
        self._text, self._text_lengths = bytearray(), array("I")
        self._ids, self._ids_lengths = array("Q"), array("I")
        self._exact, self._exact_lengths = array("Q"), array("I")
        self._variants, self._variants_lengths = array("Q"), array("I")

    def add(self, term: Term, ids: Ids, orths: Optional[Ids], others: Sequence[Ids] = ()) -> None:
        """Add a term.

        term (Term): The term.
        ids (Ids): Values of the matched attribute of its tokens, none of them 0.
        orths (Optional[Ids]): Their values of ORTH, if the term might match in exact case only: see `TermColumns`.
        others (Sequence[Ids]): Values of the matched attribute for other spellings of it.
        """
        for other in {values.tobytes() for values in others if len(values)} - {ids.tobytes()}:
            self._variants.frombytes(other)
            self._variants_lengths.append(len(other) // 8)
            self._variant_of.append(len(self._labels))
        text = term.text.encode("utf-8")
        exact = ids[:0] if orths is None else orths
        number = self._names.setdefault(name_of(term), len(self._names))
        if number == len(self._preferred):
            self._preferred.append(b"")
        if term.name and not self._preferred[number]:
            self._preferred[number] = term.name.encode("utf-8")
        self._labels.append(number)
        self._characters.append(len(term.text))
        self._cased.append(term.exact)
        self._text += text
        self._text_lengths.append(len(text))
        self._ids.frombytes(ids.tobytes())
        self._ids_lengths.append(len(ids))
        self._exact.frombytes(exact.tobytes())
        self._exact_lengths.append(len(exact))

    def columns(self) -> TermColumns:
        """What was added, each term once. Nothing can be added after that."""
        return TermColumns(
            tuple(self._names),
            labels=numpy.asarray(self._labels, dtype="uint32"),
            characters=numpy.asarray(self._characters, dtype="uint32"),
            cased=numpy.frombuffer(self._cased, dtype="uint8"),
            variant_of=numpy.asarray(self._variant_of, dtype="uint32"),
            text=Ragged.of(numpy.frombuffer(self._text, dtype="uint8"), self._text_lengths, "uint8"),
            ids=Ragged.of(self._ids, self._ids_lengths, "uint64"),
            exact=Ragged.of(self._exact, self._exact_lengths, "uint64"),
            variants=Ragged.of(self._variants, self._variants_lengths, "uint64"),
            preferred=Ragged.of_texts(self._preferred),
        ).unique()


def _decoded(rows: Ragged, row: int) -> str:
    return rows[row].tobytes().decode("utf-8")


def name_of(term: Term) -> str:
    """What a table stores of a term's label and id: neither of them has a line end."""
    return f"{term.label}\n{term.id}" if term.id else term.label


def split_name(name: str) -> Tuple[str, str]:
    """Label and id; the id is empty if there is none."""
    label, _, identifier = name.partition("\n")
    return label, identifier


def has_inner_capital(text: str) -> bool:
    """Whether there is an upper-case letter after the first character, as in "AIDS" and "pH"."""
    return any(character.isupper() for character in text[1:])
