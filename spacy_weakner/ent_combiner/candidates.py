"""Candidates: the entities that sources and components propose, and variants of them with shifted borders."""

from itertools import islice, pairwise
from typing import Any, List, NamedTuple, Sequence, Set, Tuple

import numpy
from spacy.attrs import (
    ENT_IOB,
    ENT_TYPE,
    IS_PUNCT,
    IS_SPACE,
    IS_STOP,
    IS_TITLE,
    IS_UPPER,
    LENGTH,
    ORTH,
    SENT_START,
)
from spacy.strings import get_string_id
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..corpus.entities import BEGINS
from ..corpus.overlaps import best_without_overlaps
from ..corpus.parts import Part, blank_lines
from ..corpus.tags import TagScheme
from ..corpus.weak import PREDICTED_PREFIX, WEAK_PREFIX, group_scores
from ..heads.tagging import merge_paths, merge_rows
from ..ty import BoolMask, Entity, Floats, Ints, PathScore
from .span_partition import SpanPartition

# Attributes that are read for every token.
ATTRS = [ORTH, LENGTH, IS_UPPER, IS_TITLE, IS_PUNCT, IS_STOP, ENT_IOB, ENT_TYPE, IS_SPACE, SENT_START]
_ENT_IOB, _ENT_TYPE, _IS_SPACE, _SENT_START = map(ATTRS.index, (ENT_IOB, ENT_TYPE, IS_SPACE, SENT_START))
_UNKNOWN = -1


class Sentences(NamedTuple):
    """The sentences of some Docs, split as in `corpus.parts`. The visible tokens of all Docs are numbered
    consecutively, so that spans may contain white space."""

    docs: Sequence[Doc]
    attrs: Any  # shape (n_tokens, len(ATTRS)): attributes of visible tokens
    tokens: Ints  # shape (n_tokens,): index of each visible token in its Doc
    offsets: Ints  # shape (n_sentences + 1,): the first token of each sentence, and the number of tokens
    doc_numbers: Ints  # shape (n_sentences,): the Doc of each sentence
    doc_offsets: Ints  # shape (n_docs + 1,): the first visible token of each Doc
    begins: Ints  # shape (n_docs + 1,): start of each Doc in `before`
    before: Ints  # number of visible tokens before each token of the Docs

    @classmethod
    def of(cls, docs: Sequence[Doc]) -> "Sentences":
        values: Any = numpy.concatenate(
            [numpy.zeros((0, len(ATTRS)), dtype="uint64"), *(doc.to_array(ATTRS) for doc in docs)]
        )
        begins = numpy.cumsum([0, *map(len, docs)])
        is_space, starts = values[:, _IS_SPACE] != 0, values[:, _SENT_START] == 1
        starts[begins[:-1][numpy.diff(begins) > 0]] = True
        for n in numpy.unique(numpy.searchsorted(begins, numpy.flatnonzero(is_space), side="right") - 1).tolist():
            lines = blank_lines(docs[n], is_space[begins[n] : begins[n + 1]])
            starts[begins[n] + numpy.array(lines, dtype="int64")] = True
        visible = numpy.flatnonzero(~is_space)
        firsts = numpy.flatnonzero(numpy.diff(numpy.cumsum(starts)[visible], prepend=0))
        doc_of = numpy.searchsorted(begins, visible, side="right") - 1
        return cls(
            docs,
            values[visible],
            visible - begins[doc_of],
            numpy.append(firsts, len(visible)),
            doc_of[firsts],
            numpy.searchsorted(doc_of, numpy.arange(len(docs) + 1)),
            begins,
            numpy.concatenate([[0], numpy.cumsum(~is_space)]),
        )

    def find(self, tokens: Ints) -> Ints:
        """Return the sentence of each token."""
        found: Ints = numpy.searchsorted(self.offsets, tokens, side="right") - 1
        return found

    def preset(self) -> BoolMask:
        """Return a mask of tokens that are blocked or in existing entities; see `corpus.entities`."""
        is_preset: BoolMask = (self.attrs[:, _ENT_TYPE] != 0) | (self.attrs[:, _ENT_IOB] == BEGINS)
        return is_preset

    def parts(self) -> List[List[Part]]:
        """Return the tokens of each Doc's sentences."""
        parts: List[List[Part]] = [[] for _ in self.docs]
        for n, (first, last) in zip(self.doc_numbers.tolist(), pairwise(self.offsets.tolist()), strict=True):
            parts[n].append(Part(self.docs[n], self.tokens[first:last]))
        return parts


class Candidates(NamedTuple):
    """The candidates of some sentences."""

    sentences: Sentences
    # Shape (n, 3): start, end and number of the label. Unique, sorted by end, start and label. They may overlap.
    spans: Ints
    proposed: BoolMask  # shape (n_groups, n): True if a group has the candidate
    scores: Floats  # shape (n_groups, n): probability in the group; NaN if there is none
    has_group: BoolMask  # shape (n_groups, n_docs): True if a Doc has the group
    unknown: Set[int]  # hashes of labels of weak sources that are not among the labels of candidates

    @property
    def in_sentence(self) -> Ints:
        """The sentence of each candidate: shape (n,)."""
        return self.sentences.find(self.spans[:, 0])

    @property
    def neighbors(self) -> Tuple[Ints, Ints]:
        """The tokens before and after each candidate, both of shape (n,); if its sentence has none, the number of
        tokens."""
        sentences, offsets = self.in_sentence, self.sentences.offsets
        start, end = self.spans[:, 0], self.spans[:, 1]
        before = numpy.where(start > offsets[sentences], start - 1, offsets[-1])
        return before, numpy.where(end < offsets[sentences + 1], end, offsets[-1])

    def select(self, which: Any) -> "Candidates":
        return self._replace(spans=self.spans[which], proposed=self.proposed[:, which], scores=self.scores[:, which])

    def split(self, values: Sequence[Any]) -> List[Any]:
        """Split values of all candidates by Doc."""
        ends = numpy.searchsorted(self.spans[:, 1], self.sentences.doc_offsets, side="right").tolist()
        return [values[first:last] for first, last in pairwise(ends)]

    def entities(self, labels: Sequence[str]) -> List[Entity]:
        """Return the candidates as entities of their Docs."""
        starts, ends = self.sentences.tokens[self.spans[:, 0]], self.sentences.tokens[self.spans[:, 1] - 1] + 1
        names = [labels[number] for number in self.spans[:, 2].tolist()]
        return list(zip(starts.tolist(), ends.tolist(), names, strict=True))


def read_candidates(sentences: Sentences, groups: Sequence[str], labels: Sequence[str], border: int) -> Candidates:
    """Collect the entities of some span groups, and variants of matches in which one border differs by at most `border`
    tokens: unlike a trained component, a list or rule does not determine where an entity ends. Spans that cross
    sentences and those with other labels are left out."""
    docs = sentences.docs
    has_group = numpy.zeros((len(groups), len(docs)), dtype=bool)
    for row, group in enumerate(groups):
        has_group[row] = [group in doc.spans for doc in docs]
    unknown: Set[int] = set()
    found = [_read_group(sentences, group, labels, unknown) for group in groups]
    spans = [proposed for proposed, _ in found]
    for group, proposed in zip(groups, list(spans), strict=True):
        if border and not group.startswith(PREDICTED_PREFIX):
            spans.append(border_variants(proposed, border, sentences.offsets))
    # One number for each span, with the same sort order.
    n_tokens = len(sentences.tokens)
    shape = (n_tokens + 1, n_tokens + 1, max(1, len(labels)))
    keys = [numpy.ravel_multi_index((rows[:, 1], rows[:, 0], rows[:, 2]), shape) for rows in spans]
    unique = numpy.unique(numpy.concatenate([numpy.zeros(0, dtype="int64"), *keys]))
    ends, starts, numbers = numpy.unravel_index(unique, shape)
    is_proposed = numpy.zeros((len(groups), len(unique)), dtype=bool)
    scores = numpy.full(is_proposed.shape, numpy.nan)
    for row, ((_, probabilities), group_keys) in enumerate(zip(found, keys, strict=False)):
        places = numpy.searchsorted(unique, group_keys)
        is_proposed[row, places] = True
        numpy.fmax.at(scores[row], places, probabilities)  # the maximum, if a group has an entity twice
    return Candidates(sentences, numpy.stack([starts, ends, numbers], axis=1), is_proposed, scores, has_group, unknown)


def border_variants(spans: Ints, border: int, offsets: Ints) -> Ints:
    """Return spans that differ from the given ones at one border by at most `border` tokens, and that are not empty and
    inside the sentence."""
    steps = [by for by in range(-border, border + 1) if by]
    moves = [(by, 0, 0) for by in steps] + [(0, by, 0) for by in steps]
    moved = (spans[:, None] + numpy.array(moves, dtype="int64").reshape(-1, 3)).reshape(-1, 3)
    sentence = numpy.repeat(numpy.searchsorted(offsets, spans[:, 0], side="right") - 1, len(moves))
    start, end = moved[:, 0], moved[:, 1]
    return moved[(offsets[sentence] <= start) & (start < end) & (end <= offsets[sentence + 1])]


def _read_group(sentences: Sentences, group: str, labels: Sequence[str], unknown: Set[int]) -> Tuple[Ints, Floats]:
    """Return the spans of a group, and their scores."""
    ids = {get_string_id(label): number for number, label in enumerate(labels)}
    found = [
        (begin + span.start, begin + span.end, ids.get(span.label, _UNKNOWN))
        for doc, begin in zip(sentences.docs, sentences.begins.tolist(), strict=False)
        if group in doc.spans
        for span in doc.spans[group]
    ]
    given = [score for doc in sentences.docs for score in group_scores(doc, group)]
    rows, scores = numpy.array(found, dtype="int64").reshape(-1, 3), numpy.array(given, dtype="float64")
    is_known = rows[:, 2] != _UNKNOWN
    if group.startswith(WEAK_PREFIX) and not is_known.all():
        unknown.update({span.label for doc in sentences.docs for span in doc.spans.get(group, ())}.difference(ids))
    first, after = sentences.before[rows[:, 0]], sentences.before[rows[:, 1]]
    kept = numpy.flatnonzero(is_known & (first < after))
    kept = kept[sentences.find(first[kept]) == sentences.find(after[kept] - 1)]
    return numpy.stack([first[kept], after[kept], rows[kept, 2]], axis=1), scores[kept]


class ScoredCandidates(NamedTuple):
    """The candidates of several Docs with their log-odds, and the labels by number."""

    candidates: Candidates
    log_odds: Floats
    labels: Sequence[str]

    @property
    def partition(self) -> SpanPartition:
        candidates = self.candidates
        return SpanPartition.of(candidates.in_sentence, candidates.spans, len(candidates.sentences.doc_numbers))

    def probabilities(self) -> Floats:
        return self.partition.probabilities(self.log_odds)

    def pairs(self) -> List[List[Tuple[Entity, float]]]:
        """Return the candidates of each Doc with their probabilities."""
        entities = self.candidates.entities(self.labels)
        return self.candidates.split(list(zip(entities, self.probabilities().tolist(), strict=True)))

    def distributions(self, scheme: TagScheme) -> List[Floats2d]:
        """Return the tag probabilities of each Doc, float32 (n_tokens, n_tags): the probability of an entity's tag at a
        token is the probability that the entity is in the set."""
        sentences = self.candidates.sentences
        rows: Any = numpy.zeros((len(sentences.tokens), len(scheme)))
        for (start, end, label), probability in zip(
            self.candidates.spans.tolist(), self.probabilities().tolist(), strict=True
        ):
            rows[numpy.arange(start, end), scheme.span_tags(self.labels[label], end - start)] += probability
        rows[:, 0] = numpy.maximum(0.0, 1.0 - rows.sum(axis=1))
        rows = (rows / rows.sum(axis=1, keepdims=True)).astype("float32")
        by_sentence = iter(rows[first:last] for first, last in pairwise(sentences.offsets.tolist()))
        return [
            merge_rows(doc, parts, list(islice(by_sentence, len(parts))), len(scheme))
            for doc, parts in zip(sentences.docs, sentences.parts(), strict=True)
        ]

    def paths(self, scheme: TagScheme) -> List[PathScore]:
        """Return the most probable set of each Doc as tags, with the sum of its log-odds and its log-probability."""
        sentences = self.candidates.sentences
        best = choose_spans(self.candidates.spans, self.log_odds)
        spans, odds = self.candidates.spans[best], self.log_odds[best]
        borders = numpy.searchsorted(spans[:, 0], sentences.offsets).tolist()
        paths = []
        for n, total in enumerate(self.partition.log_totals(self.log_odds).tolist()):
            first, last = sentences.offsets[n : n + 2].tolist()
            rows = slice(borders[n], borders[n + 1])
            entities = [(start - first, end - first, self.labels[label]) for start, end, label in spans[rows].tolist()]
            tags = scheme.encode(entities, numpy.ones(last - first, dtype=bool))
            score = float(sum(odds[rows].tolist()))
            paths.append(PathScore([scheme.tags[tag] for tag in tags.tolist()], score, min(0.0, score - total)))
        by_sentence = iter(paths)
        return [
            merge_paths(doc, parts, list(islice(by_sentence, len(parts))), scheme)
            for doc, parts in zip(sentences.docs, sentences.parts(), strict=True)
        ]


def choose_spans(spans: Ints, weights: Floats) -> Ints:
    """Return the indices of the non-overlapping spans with the largest sum of weights, by start; only spans with
    positive weights are chosen."""
    heavy = numpy.flatnonzero(weights > 0.0)
    bounds: Any = spans[heavy, :2].tolist()
    chosen = best_without_overlaps(bounds, weights[heavy].tolist(), max((end for _, end in bounds), default=0))
    return heavy[numpy.array(chosen, dtype="int64")]
