"""The labels of term lists, rules, models and language models as features of a head's scores.

The labels of a source are in the span group `weak:<source>` of a Doc. Each token has features x for every source, and
the scores of the head are

    scores(token) = text(token) + sum_sources W_source x_source(token)

where W is initialized to predict the labels of the sources, and the last layer of the text's scores with zeros, so that
training starts with the sources' labels and improves on them. The features of a source with n labels are:

- one for each label and each of B, I, E and S: the token's position in a match (where matches overlap, the longest are
  kept), multiplied by the match's score if it has one;
- one for each label: another, overlapping match with this label contains the token, so that the phrase is ambiguous;
- the source has no match here; or a match with a label that the head does not have;
- the length of the match: 1, 2, 3, or at least 4 tokens.

If the Doc does not have the group, the source has not labeled it, and all features are 0.
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

from ..caching import read_once
from ..corpus.weak import is_weak, set_weak
from ..errors import Errors, WeaknerError, check_range
from ..ty import Array, BoolMask, Ints
from .matches import UNKNOWN, Matches, read_matches

# Number of lengths of matches that are distinguished; the last one includes longer matches.
LENGTHS = 4


@dataclass
class SourceFeatureSettings:
    """Settings of the features; see `build_source_features`."""

    sources: List[str]
    strength: float
    dropout: float

    def __post_init__(self) -> None:
        if not self.sources or len(set(self.sources)) < len(self.sources):
            expected = "names of sources, without duplicates"
            raise WeaknerError(Errors.WK005.format(setting="sources", value=self.sources, expected=expected))
        check_range("strength", self.strength, 0.0, None)
        check_range("dropout", self.dropout, 0.0, 1.0)


class Active(NamedTuple):
    """The nonzero features of tokens."""

    rows: Ints  # shape (n,): the tokens
    features: Ints  # shape (n,): the features
    values: Array  # shape (n,): their values


def build_source_features(
    sources: List[str], strength: float = 4.0, dropout: float = 0.1
) -> Optional[Model[List[Doc], List[Floats2d]]]:
    """Build the layer that adds scores for the labels of weak sources, in `doc.spans["weak:<source>"]`, to those of a
    head. Registered as `spacy_weakner.SourceFeatures.v1`, for `source_features` of a head's architecture.

    In training, the matches of a ruler in the pipeline are available only if the ruler comes before the head, and is in
    `training.annotating_components` (but not in `frozen_components`, which are not initialized). Labels in a corpus,
    such as answers of a language model, are available through `sources` of `spacy_weakner.Corpus.v1`.

    In training, the features of weakly labeled sentences are hidden, as if no source had labeled them: their labels
    come from the sources, so that the model would learn to copy them. In prediction, no features are hidden.

    sources (List[str]): Names of the sources; if empty, there are no features.
    strength (float): Initial weight of a match towards its tag, and of no match towards "O". With several sources, it
        is the maximum: see `initial_weights`.
    dropout (float): Share of the other features, by Doc and source, that are hidden in an update, so that the model
        also learns from the text. No features are hidden if dropout is disabled (`training.dropout = 0`).
    RETURNS (Optional[Model[List[Doc], List[Floats2d]]]): Scores of each Doc, (n_tokens, n_outputs); None without
        sources.
    RAISES (WeaknerError): If a setting is out of range.
    """
    if not sources:
        return None
    settings = SourceFeatureSettings(list(sources), strength, dropout)
    # Labels and weights are set by `set_weights`, and saved with the layer.
    attrs: Any = {"settings": settings, "labels": [], "sources": [], "dropout_rate": 0.0}
    return Model("source_features", _forward, init=_init, params={"W": None}, dims={"nO": None}, attrs=attrs)


def set_weights(layer: Model, labels: Sequence[str], weights: Array) -> None:
    """Set the labels of the head (matches with other labels share a feature) and the weights, shape (n_features,
    n_outputs), of a layer of source features."""
    layer.attrs["labels"], layer.attrs["sources"] = list(labels), list(layer.attrs["settings"].sources)
    given: Any = weights.astype("float32")
    layer.set_param("W", layer.ops.asarray2f(given))


def n_token_features(n_labels: int) -> int:
    """Return the number of features of a token for each source."""
    return 5 * n_labels + 2 + LENGTHS


def token_features(found: Matches, n_labels: int) -> Active:
    """Compute the features of tokens for a source: 4 n features of the longest matches, by position (B, I, E, S); n of
    other matches; no match, a match with an unknown label, lengths."""
    matches, tokens, places = found.spread()
    lengths = (found.ends - found.starts)[matches]
    place = numpy.where(places == 0, 0, numpy.where(places == lengths - 1, 2, 1))
    place = numpy.where(lengths == 1, 3, place)
    labels, longest, n = found.labels[matches], found.longest[matches], 4 * n_labels
    known = labels != UNKNOWN
    read, other, unknown = longest & known, ~longest & known, longest & ~known
    return join_features(
        [
            Active(tokens[read], (4 * labels + place)[read], found.scores[matches[read]]),
            alike(tokens[unknown], n + n_labels + 1),
            alike(tokens[longest], n + n_labels + 1 + numpy.minimum(lengths, LENGTHS)[longest]),
            Active(tokens[other], n + labels[other], found.scores[matches[other]]),
            alike(numpy.flatnonzero(found.looked & ~found.covered), n + n_labels),
        ]
    )


def alike(rows: Ints, features: Any) -> Active:
    """Make features with the value 1 from rows, shape (n,), and their features, shape (n,), or one for all rows."""
    return Active(rows, numpy.broadcast_to(features, rows.shape), numpy.ones(len(rows)))


def join_features(parts: Sequence[Active], width: int = 0) -> Active:
    """Concatenate features; the indices of each part are shifted by `width` relative to the part before."""
    shifted = [Active(rows, features + i * width, values) for i, (rows, features, values) in enumerate(parts)]
    return Active(*map(numpy.concatenate, zip(*shifted, strict=True)))


def hidden_sources(layer: Model, docs: Sequence[Doc], is_train: bool) -> BoolMask:
    """Return a mask of the sources that are hidden in an update, shape (n_sources, n_docs)."""
    settings: SourceFeatureSettings = layer.attrs["settings"]
    hidden = numpy.zeros((len(settings.sources), len(docs)), dtype=bool)
    if is_train:
        hidden |= numpy.asarray([is_weak(doc) for doc in docs], dtype=bool)
    if is_train and layer.attrs["dropout_rate"] and settings.dropout:
        hidden |= numpy.random.random(hidden.shape) < settings.dropout
    return hidden


def read_features(layer: Model, docs: Sequence[Doc], is_train: bool) -> Active:
    """Read the concatenated features of all sources; in training, some are hidden."""
    sources, labels = layer.attrs["settings"].sources, layer.attrs["labels"]
    known = list(layer.attrs["sources"])
    if known != list(sources):
        there, here = (f"sources = {', '.join(names) or 'none'}" for names in (known, sources))
        raise WeaknerError(Errors.WK020.format(what="The model was trained", there=there, here=here))
    hidden = hidden_sources(layer, docs, is_train)
    found = [read_matches(docs, name, labels, hide.tolist()) for name, hide in zip(sources, hidden, strict=True)]
    return join_features([token_features(matches, len(labels)) for matches in found], n_token_features(len(labels)))


def sum_features(layer: Model, active: Active, n_rows: int) -> Tuple[Floats2d, Callable[[Floats2d], None]]:
    """Compute W x of tokens, shape (n_rows, n_outputs), from the rows of W with nonzero features; return also a
    callback that adds to the gradient of W."""
    ops: Any = layer.ops
    weights: Any = layer.get_param("W")
    # `scatter_add` is fast for these types.
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
    """Mark the predicted Docs of weakly labeled examples as weak during an update, for the layer."""
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
