"""What term lists, rules, models and answers of language models say of the text that a head reads, as features of its
scores.

A source says something by a span group `weak:<source>` of the Doc. Of every token and source there are features x, and
with the text's own scores the head's are

    scores(token) = text(token) + sum_sources W_source x_source(token)

where W starts as the sources' own reading and the last layer of the text's path as zeros, so that the first step is
what the sources say, and everything after it has to be better on dev. The features of a source with n labels:

- one for each label and each of B, I, E and S: the token's place in a match of the source's own reading (where matches
  overlap, the longest are kept), times the match's score if it has one;
- one for each label: another match with this label holds the token, so that the phrase is ambiguous;
- the source has looked, and has no match here; or one whose label the head does not have;
- the length of the match: 1, 2, 3, or 4 and more tokens.

If the Doc does not have the group, the source has not looked, and all are 0.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model
from thinc.types import Floats2d

from ..corpus.weak import is_weak, set_weak
from ..errors import Errors, WeaknerError, check_range
from ..losses import Array
from ..remembering import read_once
from .matches import UNKNOWN, BoolMask, Ints, Matches, read_matches

# Lengths of matches that are told apart; the last one is "and more".
LENGTHS = 4


@dataclass
class SourceFeatureSettings:
    """Settings of the features; see `build_source_features`."""

    sources: List[str]
    strength: float
    dropout: float

    def __post_init__(self) -> None:
        if not self.sources or len(set(self.sources)) < len(self.sources):
            expected = "names of sources, each once"
            raise WeaknerError(Errors.WK005.format(setting="sources", value=self.sources, expected=expected))
        check_range("strength", self.strength, 0.0, None)
        check_range("dropout", self.dropout, 0.0, 1.0)


class Active(NamedTuple):
    """The features that are not 0."""

    rows: Ints  # shape (n,): the tokens
    features: Ints  # shape (n,): the features
    values: Array  # shape (n,): their values


def build_source_features(
    sources: List[str], strength: float = 4.0, dropout: float = 0.1
) -> Optional[Model[List[Doc], List[Floats2d]]]:
    """Build the layer that adds to a head's scores what weak sources say in `doc.spans["weak:<source>"]`. Registered as
    `spacy_weakner.SourceFeatures.v1`; it goes into `source_features` of a head's architecture.

    What a ruler of the pipeline finds reaches it in training only if the ruler stands before the head, and in
    `training.annotating_components` (not in `frozen_components`, which are not initialized). What comes with a corpus,
    as answers of a language model do, reaches it by `sources` of `spacy_weakner.Corpus.v1`.

    In training the features of weakly labeled sentences are hidden, as if no source had looked: their labels come from
    the sources, so that a model that saw these would learn to copy. In prediction they never are.

    sources (List[str]): Names of the sources; none: there are no features.
    strength (float): What a match weighs at the start towards its tag, and no match towards "O". With several sources
        it is the most that they weigh: see `initial_weights`.
    dropout (float): Share of the other features, per Doc and source, that are hidden in an update, so that the text has
        to be read as well. None is where dropout is switched off (`training.dropout = 0`).
    RETURNS (Optional[Model[List[Doc], List[Floats2d]]]): Per Doc (n_tokens, n_outputs); None without sources.
    RAISES (WeaknerError): If a setting is out of range.
    """
    if not sources:
        return None
    settings = SourceFeatureSettings(list(sources), strength, dropout)
    # Labels and weights are given by `set_weights`, and saved with it.
    attrs: Any = {"settings": settings, "labels": [], "sources": [], "dropout_rate": 0.0}
    return Model("source_features", _forward, init=_init, params={"W": None}, dims={"nO": None}, attrs=attrs)


def set_weights(layer: Model, labels: Sequence[str], weights: Array) -> None:
    """Give a layer of source features the labels of its head (matches with others are all alike), and weights, shape
    (n_features, n_outputs)."""
    layer.attrs["labels"], layer.attrs["sources"] = list(labels), list(layer.attrs["settings"].sources)
    given: Any = weights.astype("float32")
    layer.set_param("W", layer.ops.asarray2f(given))


def n_token_features(n_labels: int) -> int:
    """Number of features of a token and source, for so many labels."""
    return 5 * n_labels + 2 + LENGTHS


def token_features(found: Matches, n_labels: int) -> Active:
    """What a source says of tokens: 4 n features of matches in the source's own reading, by place (B, I, E, S); n of
    other matches; no match, a match of an unknown label, lengths."""
    matches, tokens, places = found.spread()
    lengths = (found.ends - found.starts)[matches]
    place = numpy.where(places == 0, 0, numpy.where(places == lengths - 1, 2, 1))
    place = numpy.where(lengths == 1, 3, place)
    labels, longest, n = found.labels[matches], found.longest[matches], 4 * n_labels
    known = labels != UNKNOWN
    read, other, unknown = longest & known, ~longest & known, longest & ~known
    return join(
        [
            Active(tokens[read], (4 * labels + place)[read], found.scores[matches[read]]),
            alike(tokens[unknown], n + n_labels + 1),
            alike(tokens[longest], n + n_labels + 1 + numpy.minimum(lengths, LENGTHS)[longest]),
            Active(tokens[other], n + labels[other], found.scores[matches[other]]),
            alike(numpy.flatnonzero(found.looked & ~found.covered), n + n_labels),
        ]
    )


def alike(rows: Ints, features: Any) -> Active:
    """Features of value 1: rows, shape (n,), and their features, shape (n,), or one for all."""
    return Active(rows, numpy.broadcast_to(features, rows.shape), numpy.ones(len(rows)))


def join(parts: Sequence[Active], width: int = 0) -> Active:
    """Features one after the other; those of each part lie by `width` behind those of the part before."""
    shifted = [Active(rows, features + i * width, values) for i, (rows, features, values) in enumerate(parts)]
    return Active(*map(numpy.concatenate, zip(*shifted, strict=True)))


def hidden_sources(layer: Model, docs: Sequence[Doc], is_train: bool) -> BoolMask:
    """Which sources are passed over in an update, shape (n_sources, n_docs)."""
    settings: SourceFeatureSettings = layer.attrs["settings"]
    hidden = numpy.zeros((len(settings.sources), len(docs)), dtype=bool)
    if is_train:
        hidden |= numpy.asarray([is_weak(doc) for doc in docs], dtype=bool)
    if is_train and layer.attrs["dropout_rate"] and settings.dropout:
        hidden |= numpy.random.random(hidden.shape) < settings.dropout
    return hidden


def read_features(layer: Model, docs: Sequence[Doc], is_train: bool) -> Active:
    """What all sources say, one after the other; in training, some of it is hidden."""
    sources, labels = layer.attrs["settings"].sources, layer.attrs["labels"]
    known = list(layer.attrs["sources"])
    if known != list(sources):
        there, here = (f"sources = {', '.join(names) or 'none'}" for names in (known, sources))
        raise WeaknerError(Errors.WK020.format(what="The model was trained", there=there, here=here))
    hidden = hidden_sources(layer, docs, is_train)
    found = [read_matches(docs, name, labels, hide.tolist()) for name, hide in zip(sources, hidden, strict=True)]
    return join([token_features(matches, len(labels)) for matches in found], n_token_features(len(labels)))


def sum_features(layer: Model, active: Active, n_rows: int) -> Tuple[Floats2d, Callable[[Floats2d], None]]:
    """W x of tokens, shape (n_rows, n_outputs), by the few rows of W that each needs; and what adds to the
    gradient of W."""
    ops: Any = layer.ops
    weights: Any = layer.get_param("W")
    # The types that the operation is fast for.
    rows, features = (ops.asarray(numpy.ascontiguousarray(indices, dtype="int32")) for indices in active[:2])
    values = ops.asarray(active.values.astype("float32"))[:, None]
    scores = ops.alloc2f(n_rows, weights.shape[1])
    ops.scatter_add(scores, rows, weights[features] * values)

    def backprop(gradient: Floats2d) -> None:
        change = ops.alloc2f(*weights.shape)
        ops.scatter_add(change, features, ops.asarray2f(gradient)[rows] * values)
        layer.inc_grad("W", change)

    return scores, backprop


@contextmanager
def weak_marked(examples: Sequence[Example]) -> Iterator[None]:
    """Let the layer know which Docs are weakly labeled: for the time of an update, predicted Docs say so as well."""
    marked = [eg.predicted for eg in examples if is_weak(eg.reference) and not is_weak(eg.predicted)]
    for doc in marked:
        set_weak(doc)
    try:
        yield
    finally:
        for doc in marked:
            set_weak(doc, False)


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    if Y is not None:
        model.set_dim("nO", Y[0].shape[1])


def _forward(
    model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[List[Floats2d]], List[Doc]]]:
    active = read_once(model, docs, lambda: read_features(model, docs, is_train))
    ends = numpy.cumsum([0, *map(len, docs)]).tolist()
    scores, add_gradient = sum_features(model, active, ends[-1])

    def backprop(gradient: List[Floats2d]) -> List[Doc]:
        given = [slope for slope in gradient if len(slope)]
        if given:
            add_gradient(model.ops.xp.concatenate(given))
        return []

    return [scores[begin:end] for begin, end in pairwise(ends)], backprop
