"""Tag schemes: conversion between entities and one tag per token.

| scheme | "New York" + "Paris" (LOC) | adjacent entities of one type |
|--------|-----------------------------|-------------------------------|
| IO     | I-LOC I-LOC I-LOC           | merge into one                |
| BIO    | B-LOC I-LOC B-LOC           | kept apart                    |
| IOBES  | B-LOC E-LOC S-LOC           | kept apart                    |
"""

import re
from functools import lru_cache
from typing import Dict, Iterable, List, Optional, Sequence, Set, Tuple

import numpy
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ORTH
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import Errors, UnknownLabel, WeaknerError, check_choice
from ..ty import BoolMask, Entity
from .weak import doc_entities, get_soft_labels, get_tags

SCHEMES = ("IO", "BIO", "IOBES")
MISSING = -1
# The tag of a token in an entity, as spelled in files of any scheme: M means I, and W means S.
TAG = re.compile(r"([BIESLUMW])-(\S.*)")
OUTSIDE = "O"
# In files with a single type, tags may have no type.
UNTYPED = re.compile(r"[BIESLUMW]-?")
# Separators between the tags of a cell. A comma within a label is no separator.
_BETWEEN = re.compile(r"[,;|](?=\s*(?:[BIESLUMW]-\S|[O?-]\s*(?:[,;|]|$)))")

IntTags = NDArray[numpy.int64]


class TagScheme:
    """A converter between entities with given labels and tag ids. "O" is always tag 0.

    name (str): "IO", "BIO" or "IOBES".
    labels (Sequence[str]): Entity labels; their order fixes the tag ids.
    """

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        check_choice("scheme", name, SCHEMES)
        self.name = name
        self.labels = tuple(labels)
        self.prefixes = {"IO": "I", "BIO": "BI", "IOBES": "BIES"}[name]
        self.tags: Tuple[str, ...] = ("O", *(f"{p}-{label}" for label in self.labels for p in self.prefixes))
        self.index: Dict[str, int] = {tag: i for i, tag in enumerate(self.tags)}

    def __len__(self) -> int:
        return len(self.tags)

    def tag_ids(self, tags: Iterable[Optional[str]]) -> IntTags:
        """Return the ids of tags, shape (n_tokens,); `MISSING` where a tag is None."""
        ids = []
        for tag in tags:
            if tag is not None and tag not in self.index:
                raise ValueError(
                    f"The tag '{tag}' does not belong to the scheme {self.name} with the labels "
                    f"{', '.join(self.labels)}."
                )
            ids.append(MISSING if tag is None else self.index[tag])
        return numpy.asarray(ids, dtype="int64")

    def span_tags(self, label: str, length: int) -> List[int]:
        """Return the tag ids of one entity of `length` tokens."""
        if self.name == "IO":
            spelled = "I" * length
        elif self.name == "BIO":
            spelled = "B" + "I" * (length - 1)
        else:
            spelled = "S" if length == 1 else "B" + "I" * (length - 2) + "E"
        return [self.index[f"{prefix}-{label}"] for prefix in spelled]

    def encode(self, entities: Iterable[Entity], known: BoolMask) -> IntTags:
        """Encode entities without overlaps, to shape (n_tokens,); `MISSING` where `known` is False. Tokens of entities
        always count as known."""
        tags = numpy.where(known, 0, MISSING).astype("int64")
        for start, end, label in entities:
            if label not in self.labels:
                raise UnknownLabel(label)
            tags[start:end] = self.span_tags(label, end - start)
        return tags

    def decode(self, tags: Iterable[int]) -> List[Entity]:
        """Decode tag ids into entities. Sequences that break the scheme are read leniently: a tag that cannot continue
        the preceding entity begins a new one; `MISSING` ends an entity like "O"."""
        found = self.decode_all([numpy.asarray(list(tags), dtype="int64")]).tolist()
        return [(start, end, self.labels[label]) for _, start, end, label in found]

    def decode_all(self, sequences: Sequence[IntTags]) -> IntTags:
        """Decode several sequences at once, to shape (n_entities, 4): sequence, start, end and label, as numbers."""
        # The sequences are concatenated, each after an "O".
        lengths = [len(tags) + 1 for tags in sequences]
        outside = numpy.zeros(1, dtype="int64")
        tags = numpy.concatenate([part for tags in sequences for part in (outside, tags)] + [outside])
        tags = numpy.maximum(tags, 0)
        goes_on = self.continuations()[tags[:-1], tags[1:]]
        starts = numpy.flatnonzero((tags[1:] > 0) & ~goes_on)
        ends = numpy.flatnonzero((tags[:-1] > 0) & ~goes_on)
        offsets = numpy.cumsum([0, *lengths])
        which = numpy.searchsorted(offsets, starts, side="right") - 1
        label = (tags[starts + 1] - 1) // len(self.prefixes)
        return numpy.stack([which, starts - offsets[which], ends - offsets[which], label], axis=1)

    def continuations(self) -> BoolMask:
        """Return a mask of shape (n_tags, n_tags): [a, b] is True if tag b after tag a continues the entity of a."""
        prefix = numpy.array([tag[0] for tag in self.tags])
        label = numpy.array([-1, *(i for i in range(len(self.labels)) for _ in self.prefixes)])
        goes_on, follows = numpy.isin(prefix, ["B", "I"]), numpy.isin(prefix, ["I", "E"])
        result: BoolMask = (label[:, None] == label) & goes_on[:, None] & follows
        return result

    def allowed_transitions(self) -> Tuple[BoolMask, BoolMask, BoolMask]:
        """Return masks of what is allowed: start (n_tags,), transitions from-to (n_tags, n_tags), end (n_tags,)."""
        opens = numpy.array([tag[0] in ("O", "S", "B") or self.name == "IO" for tag in self.tags])
        closes = numpy.array([tag[0] in ("O", "S", "E") or self.name != "IOBES" for tag in self.tags])
        transitions = (closes[:, None] & opens[None, :]) | self.continuations()
        return opens, transitions, closes

    # From Docs

    def from_doc(self, doc: Doc) -> IntTags:
        """Encode `doc.ents`; tokens without annotation are missing. Raise `UnknownLabel` for a label that the
        scheme lacks."""
        return self.encode(doc_entities(doc), doc.to_array(ENT_IOB) != 0)

    def from_example(self, example: Example) -> IntTags:
        """Encode the entities of the reference on the tokens of the prediction. A token is missing if an entity covers
        only a part of it, or if its annotation is missing. A completed tag sequence of the reference replaces its
        entities.

        RAISES (WeaknerError): If a completed tag sequence belongs to other tokens or to another scheme.
        RAISES (UnknownLabel): With the label as argument, for an entity label that the scheme lacks.
        """
        completed = get_tags(example.reference)
        if completed is not None:
            if not same_tokens(example.predicted, example.reference):
                raise WeaknerError(Errors.WK021.format(what="completed tags", text=example.reference.text[:50]))
            return self.tag_ids(completed)
        if same_tokens(example.predicted, example.reference):
            return self.from_doc(example.reference)
        iob, types = example.get_aligned("ENT_IOB"), example.get_aligned("ENT_TYPE")
        outside = [i == 2 or (i == 3 and kind == 0) for i, kind in zip(iob, types, strict=True)]
        spans = example.get_aligned_spans_y2x(example.reference.ents)
        entities = [(span.start, span.end, span.label_) for span in spans]
        return self.encode(entities, numpy.array(outside, dtype=bool))

    def soft_from_example(self, example: Example) -> Optional[NDArray[numpy.float64]]:
        """Map the soft labels of the reference to the columns of this scheme.

        RETURNS (Optional[NDArray[numpy.float64]]): Shape (n_tokens, n_tags); rows sum to 1, or to 0 for missing tokens.
            None if the reference has no soft labels.
        RAISES (WeaknerError): If they use another scheme, belong to other tokens, or are not distributions.
        RAISES (UnknownLabel): With the label as argument, for a label that the scheme lacks.
        """
        soft = get_soft_labels(example.reference)
        if soft is None:
            return None
        if soft.scheme != self.name:
            there, here = f"scheme = {soft.scheme}", f"scheme = {self.name}"
            raise WeaknerError(
                Errors.WK020.format(what="The soft labels of the corpus were written", there=there, here=here)
            )
        if not same_tokens(example.predicted, example.reference):
            raise WeaknerError(Errors.WK021.format(what="soft labels", text=example.reference.text[:50]))
        result = numpy.zeros((len(soft.probabilities), len(self.tags)))
        given = numpy.asarray(soft.probabilities, dtype="float64")
        for column, tag in enumerate(soft.labels):
            if tag in self.index:
                result[:, self.index[tag]] = given[:, column]
            elif given[:, column].any():
                raise UnknownLabel(tag[2:])
        sums = result.sum(axis=1, keepdims=True)
        known = sums != 0.0
        if not (numpy.isfinite(sums).all() and (result >= 0.0).all() and (numpy.abs(sums[known] - 1.0) < 1e-3).all()):
            raise WeaknerError(Errors.WK022)
        return result / numpy.where(known, sums, 1.0)


@lru_cache(maxsize=1024)
def split_tags(cell: str) -> Tuple[str, ...]:
    """Return the tags of a cell, unchecked: overlapping entities may share a token ("B-PER,B-LOC")."""
    return tuple(part.strip() for part in _BETWEEN.split(cell))


def is_tag(tag: str) -> bool:
    """Return True if a text looks like a tag, with or without a type."""
    return tag == OUTSIDE or TAG.fullmatch(tag) is not None or UNTYPED.fullmatch(tag) is not None


@lru_cache(maxsize=64)
def make_scheme(name: str, labels: Tuple[str, ...]) -> TagScheme:
    """Return the cached tag scheme for a name and labels; see `TagScheme`."""
    return TagScheme(name, labels)


def same_tokens(a: Doc, b: Doc) -> bool:
    return len(a) == len(b) and bool((a.to_array(ORTH) == b.to_array(ORTH)).all())


def hard_labels(doc: Doc) -> Set[str]:
    """Return the entity labels of a Doc, including the labels of a completed tag sequence."""
    tags = {tag[2:] for tag in get_tags(doc) or () if tag is not None and tag != "O"}
    return tags | {ent.label_ for ent in doc.ents}


def soft_or_hard_labels(doc: Doc) -> Set[str]:
    """Return the entity labels with any probability in a Doc's soft labels; without soft labels, its `hard_labels`."""
    soft = get_soft_labels(doc)
    if soft is None:
        return hard_labels(doc)
    used: BoolMask = numpy.asarray(soft.probabilities).any(axis=0).astype(bool)
    return {tag[2:] for tag, there in zip(soft.labels, used, strict=True) if there and tag != "O"}
