"""What sources say of spans, as features of their scores: as `sources.features` of tokens, for the scorer of spans.

The features of a span and a source with n labels:

- one for each label: a match of the source's own reading is this span, times its score;
- one for each label: a match that is not in the reading is, since it overlaps a longer one, or has another label;
- the source has looked, and nothing in its reading overlaps the span; or the span is in the reading, but the head does
  not have its label;
- the length of the match in the reading that is the span: 1, 2, 3, or 4 and more tokens;
- something in the reading overlaps the span, but has other borders.
"""

from typing import Any, Callable, NamedTuple, Sequence, Tuple

import numpy
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..losses import Array
from ..sources.features import (
    LENGTHS,
    Active,
    SourceFeatureSettings,
    alike,
    join,
    make_layer,
    match_features,
    read_features,
    sum_features,
)
from ..sources.initial import InitialWeight
from ..sources.matches import Ints, Matches
from .candidates import Spans, touches


class SpansOfDocs(NamedTuple):
    """What the layer reads.

    docs (Sequence[Doc]): The Docs of a batch.
    spans (Spans): Shape (n_spans, 2): spans of their tokens, which stand one Doc after the other.
    """

    docs: Sequence[Doc]
    spans: Spans


def build_span_features(settings: SourceFeatureSettings) -> Model[SpansOfDocs, Floats2d]:
    """Build the layer.

    settings (SourceFeatureSettings): Those of `spacy_weakner.SourceFeatures.v1`.
    RETURNS (Model[SpansOfDocs, Floats2d]): From Docs and spans to scores (n_spans, n_labels).
    """
    return make_layer("span_source_features", _forward, settings, _init)


def starting_span_weights(n_labels: int, initial: Sequence[InitialWeight]) -> Array:
    """Weights towards the labels that the sources' own reading has, shape (n_features, n_labels + 1). Spans that are
    not in it are "O" to the source."""
    parts = []
    for weight in initial:
        weights = numpy.zeros((_n_features(n_labels), n_labels + 1))
        weights[numpy.arange(n_labels), numpy.arange(n_labels) + 1] = weight.matches
        weights[[2 * n_labels, 2 * n_labels + 1, -1], 0] = weight.silence
        parts.append(weights)
    return numpy.concatenate(parts)


def span_features(found: Matches, n_labels: int, spans: Spans) -> Active:
    """What a source says of spans: the last feature is that a match has other borders."""
    rows, matches = _equal(spans, found)
    in_reading = numpy.zeros(len(spans), dtype=bool)
    in_reading[rows[found.longest[matches]]] = True
    overlaps = touches(spans, found.covered)
    silent = numpy.flatnonzero(found.looked[spans[:, 0]] & ~overlaps)
    others = alike(numpy.flatnonzero(overlaps & ~in_reading), _n_features(n_labels) - 1)
    return join([match_features(found, n_labels, rows, matches, silent), others])


def _equal(spans: Spans, found: Matches) -> Tuple[Ints, Ints]:
    """Which spans are which matches."""
    width = len(found.looked) + 1
    wanted, given = spans[:, 0] * width + spans[:, 1], found.starts * width + found.ends
    order = numpy.argsort(given, kind="stable")
    low, high = (numpy.searchsorted(given[order], wanted, side=side) for side in ("left", "right"))
    rows = numpy.repeat(numpy.arange(len(spans)), high - low)
    behind = numpy.arange(len(rows)) - numpy.repeat(numpy.cumsum(high - low) - (high - low), high - low)
    return rows, order[low[rows] + behind]


def _n_features(n_labels: int) -> int:
    return 2 * n_labels + 3 + LENGTHS


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    if Y is not None:
        model.set_dim("nO", Y.shape[1])


def _forward(model: Model, inputs: SpansOfDocs, is_train: bool) -> Tuple[Floats2d, Callable[[Floats2d], None]]:
    docs, spans = inputs

    def features(found: Matches, n_labels: int) -> Active:
        return span_features(found, n_labels, spans)

    active = read_features(model, docs, is_train, features, _n_features(len(model.attrs["labels"])))
    return sum_features(model, active, len(spans))
