"""The tokenized terms of a list as columns, which take tens of megabytes for a million terms and can be stored."""

from array import array
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ..ty import Array, Hashes, Ints
from .array_file import ArrayFile, Arrays
from .concepts import Concepts
from .forms import folded
from .ragged import Ragged
from .terms import Term

# The columns of a file, and the types of their values.
_FLAT = {"concept_of": "<u4", "characters": "<u4", "cased": "<u1", "variant_of": "<u4", "variant_cased": "<u1"}
_RAGGED = {"text": "<u1", "ids": "<u8", "exact": "<u8", "variants": "<u8", "preferred": "<u1"}


class TableSettings(NamedTuple):
    """The settings of the component that determine which terms are matched, and how."""

    acronym_length: int
    stop: List[str]
    min_length: int
    ambiguity: str


class GroupedRows(NamedTuple):
    """Rows grouped by how they are matched, or why they are not."""

    plain: Ints  # matched on the component's attribute
    exact: Ints  # matched in exact case
    short: Ints  # skipped: too few characters
    stop: Ints  # skipped: on the stop list
    empty: Ints  # skipped: no tokens

    def sizes(self) -> Dict[str, int]:
        """Return the number of rows of each kind."""
        return {kind: len(rows) for kind, rows in self._asdict().items()}


@dataclass(frozen=True, eq=False)
class TermColumns:
    """Terms with their tokens, stored so that no term is tokenized twice."""

    concepts: Concepts
    concept_of: Array  # shape (n_terms,): number of each term's concept
    text: Ragged  # original texts of the terms, in UTF-8
    characters: Array  # shape (n_terms,): lengths of the texts in characters
    cased: Array  # shape (n_terms,): 1 for terms that are declared to match in exact case only
    ids: Ragged  # values of the matched attribute, without white space tokens
    # Values of ORTH for terms that may match in exact case only: those that are declared so, and those with an
    # upper-case letter after the first character, to which the rule for short acronyms may apply. Empty for other
    # terms, and if ORTH is the matched attribute.
    exact: Ragged
    variants: Ragged  # values of other spellings, which tokenizers split differently, as in `ids` or as in `exact`
    variant_of: Array  # shape (n_variants,): the row of the term that each variant belongs to, ascending
    variant_cased: Array  # shape (n_variants,): 1 for values as in `exact`
    preferred: Ragged  # preferred name of each concept, in UTF-8; empty if the list has none

    def __len__(self) -> int:
        return len(self.concept_of)

    def terms(self) -> Iterator[Term]:
        """Yield all terms in the order in which they were added."""
        concepts, preferred = list(self.concepts), list(self.preferred.texts())
        rows = zip(self.concept_of.tolist(), self.text.texts(), self.cased.tolist(), strict=True)
        for number, text, cased in rows:
            label, identifier = concepts[number]
            yield Term(label, text, bool(cased), identifier, preferred[number])

    def preferred_name(self, identifier: str) -> str:
        """Return the preferred name of an id: the first one in the list, else its first term; "" for an unknown id."""
        number = self._numbers.get(identifier)
        if number is None:
            return ""
        return self.preferred.text(number) or self.text.text(int(self.first_rows[number]))

    @cached_property
    def first_rows(self) -> Ints:
        """Shape (n_concepts,): the first row of each concept; -1 if it has none."""
        rows = numpy.full(len(self.concepts), -1, dtype="int64")
        numbers, first = numpy.unique(self.concept_of, return_index=True)
        rows[numbers] = first
        return rows

    @cached_property
    def _numbers(self) -> Dict[str, int]:
        """The number of each id's first concept, preferably one with a preferred name."""
        numbers = numpy.flatnonzero(self.first_rows >= 0)
        nameless = numpy.diff(self.preferred.offsets)[numbers] == 0
        ids = list(self.concepts.ids.texts())
        return {
            ids[n]: n for n in numbers[numpy.lexsort((self.first_rows[numbers], nameless))][::-1].tolist() if ids[n]
        }

    def plus(self, other: "TermColumns") -> "TermColumns":
        """Return these terms followed by others, without duplicates."""
        concepts, numbers = Concepts.of([*self.concepts, *other.concepts])
        preferred = [b""] * len(concepts)
        moved = []
        for columns in (other, self):
            places = [numbers[pair] for pair in columns.concepts]
            for number, name in zip(places, columns.preferred.encoded(), strict=True):
                preferred[number] = name or preferred[number]
            moved.append(numpy.asarray(places, dtype="uint32")[columns.concept_of])
        both = TermColumns(
            concepts,
            numpy.concatenate(moved[::-1]),
            self.text.plus(other.text),
            numpy.concatenate([self.characters, other.characters]),
            numpy.concatenate([self.cased, other.cased]),
            self.ids.plus(other.ids),
            self.exact.plus(other.exact),
            self.variants.plus(other.variants),
            numpy.concatenate([self.variant_of, other.variant_of + numpy.uint32(len(self))]),
            numpy.concatenate([self.variant_cased, other.variant_cased]),
            Ragged.of_texts(preferred),
        )
        return both.unique()

    def unique(self) -> "TermColumns":
        digests = b"".join(blake2b(text, digest_size=16).digest() for text in self.text.encoded())
        keys = (*numpy.frombuffer(digests, dtype="uint64").reshape(-1, 2).T, self.concept_of, self.cased)
        order = numpy.lexsort(keys)  # stable: equal terms keep their order
        again = numpy.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
        return self if not again.any() else self.take(numpy.sort(numpy.delete(order, 1 + numpy.flatnonzero(again))))

    def take(self, rows: Ints) -> "TermColumns":
        """Return the terms of some rows, which must be ascending."""
        place = numpy.searchsorted(rows, self.variant_of)
        kept = numpy.flatnonzero(numpy.isin(self.variant_of, rows))
        return TermColumns(
            self.concepts,
            self.concept_of[rows],
            self.text.take(rows),
            self.characters[rows],
            self.cased[rows],
            self.ids.take(rows),
            self.exact.take(rows),
            self.variants.take(kept),
            place[kept].astype("uint32"),
            self.variant_cased[kept],
            self.preferred,
        )

    def select(self, settings: TableSettings) -> GroupedRows:
        """Assign each row to the kind that the settings determine."""
        short = self.characters < settings.min_length
        stopped = numpy.zeros(len(self), dtype=bool)
        if settings.stop:
            stops = {folded(text) for text in settings.stop}
            stopped = numpy.fromiter((folded(text) in stops for text in self.text.texts()), bool, len(self))
        empty = numpy.diff(self.ids.offsets) == 0
        wanted = (self.characters <= settings.acronym_length) | (self.cased != 0)
        exact = wanted & (numpy.diff(self.exact.offsets) > 0)
        left = numpy.ones(len(self), dtype=bool)
        kinds = {}
        for kind, mask in (("short", short), ("stop", stopped), ("empty", empty), ("exact", exact), ("plain", left)):
            kinds[kind] = numpy.flatnonzero(left & mask)
            left = left & ~mask
        return GroupedRows(**kinds)

    # Storage

    def to_arrays(self) -> Arrays:
        """Return the columns as arrays for a file."""
        arrays: Arrays = {name: getattr(self, name) for name in _FLAT}
        for name in _RAGGED:
            arrays.update(getattr(self, name).to_arrays(name))
        return arrays

    @classmethod
    def from_arrays(cls, file_: ArrayFile, concepts: Concepts) -> "TermColumns":
        """Use the arrays of a file without copying them."""
        columns: Dict[str, Any] = {name: file_.get(name, dtype) for name, dtype in _FLAT.items()}
        columns.update({name: Ragged.from_arrays(file_, name, dtype) for name, dtype in _RAGGED.items()})
        if int(columns["concept_of"].max(initial=0)) >= max(1, len(concepts)):
            raise file_.damaged("a term has a label without a name")
        return cls(concepts, **columns)


class ColumnBuilder:
    """A builder of columns from tokenized terms."""

    def __init__(self) -> None:
        self._concepts: Dict[Tuple[str, str], int] = {}
        self._preferred: Dict[Tuple[str, str], bytes] = {}
        self._concept_of, self._characters, self._variant_of = array("I"), array("I"), array("I")
        self._cased, self._variant_cased = bytearray(), bytearray()
        # Values and lengths of rows.
        self._text, self._text_lengths = bytearray(), array("I")
        self._ids, self._ids_lengths = array("Q"), array("I")
        self._exact, self._exact_lengths = array("Q"), array("I")
        self._variants, self._variants_lengths = array("Q"), array("I")

    def add(
        self,
        term: Term,
        ids: Hashes,
        orths: Optional[Hashes],
        others: Sequence[Hashes] = (),
        exact_others: Sequence[Hashes] = (),
    ) -> None:
        """Add a term: its tokens as values (not 0) of the matched attribute, and of ORTH if it may match in exact case
        only (see `TermColumns`); and its other spellings as values of either."""
        exact = ids[:0] if orths is None else orths
        for cased, written, spellings in ((False, ids, others), (True, exact, exact_others)):
            for other in sorted({values.tobytes() for values in spellings if len(values)} - {written.tobytes()}):
                self._variants.frombytes(other)
                self._variants_lengths.append(len(other) // 8)
                self._variant_of.append(len(self._concept_of))
                self._variant_cased.append(cased)
        text = term.text.encode("utf-8")
        pair = (term.label, term.id)
        if term.id and term.name:
            self._preferred.setdefault(pair, term.name.encode("utf-8"))
        self._concept_of.append(self._concepts.setdefault(pair, len(self._concepts)))
        self._characters.append(len(term.text))
        self._cased.append(term.exact)
        self._text += text
        self._text_lengths.append(len(text))
        self._ids.frombytes(ids.tobytes())
        self._ids_lengths.append(len(ids))
        self._exact.frombytes(exact.tobytes())
        self._exact_lengths.append(len(exact))

    def columns(self) -> TermColumns:
        """Return the added terms without duplicates. No terms can be added afterwards."""
        concepts, numbers = Concepts.of(self._concepts)
        places = numpy.asarray([numbers[pair] for pair in self._concepts], dtype="uint32")
        return TermColumns(
            concepts,
            concept_of=places[numpy.asarray(self._concept_of, dtype="uint32")],
            characters=numpy.asarray(self._characters, dtype="uint32"),
            cased=numpy.frombuffer(self._cased, dtype="uint8"),
            variant_of=numpy.asarray(self._variant_of, dtype="uint32"),
            variant_cased=numpy.frombuffer(self._variant_cased, dtype="uint8"),
            text=Ragged.of(numpy.frombuffer(self._text, dtype="uint8"), self._text_lengths, "uint8"),
            ids=Ragged.of(self._ids, self._ids_lengths, "uint64"),
            exact=Ragged.of(self._exact, self._exact_lengths, "uint64"),
            variants=Ragged.of(self._variants, self._variants_lengths, "uint64"),
            preferred=Ragged.of_texts([self._preferred.get(pair, b"") for pair in numbers]),
        ).unique()
