"""Which start belongs to which end, where entities overlap.

A start at token i and an end at token j of a sentence are an entity, under a question, with the probability

    P(match | i, j) = sigmoid(m tanh(A e_i + B e_j + b) + c)

where e are the tokens' vectors under this question (Li et al. 2020, start-end matching). Theirs is
sigmoid(m [e_i; e_j]), the sum of a part for the start and one for the end, which cannot say that 0-3 and 1-2 match and
0-2 and 1-3 do not: hence the hidden layer. A and B are applied to tokens, not to pairs.
"""

from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import numpy
from numpy.typing import NDArray
from thinc.api import Dropout, Linear, Model, chain
from thinc.types import Floats2d

from ..losses import Array, binary_cross_entropy
from .boundaries import ENDS, STARTS, Boundaries, probabilities
from .decoding import N_ENDS, Spans, pair_boundaries
from .scoring import Shapes, as_rows, row_pairs
from .typing import mention_spans

# Vectors as rows, and pairs of them: those of a first and of a last token.
MatchInput = Tuple[Floats2d, NDArray[numpy.int64]]
# Pairs that are scored at a time in prediction: bounds the memory.
CHUNK = 1 << 13


def build_matcher(hidden_width: int) -> Model[MatchInput, Floats2d]:
    """Build the layers. There is dropout on the vectors in training, apart for first and last tokens.

    hidden_width (int): Width of the hidden layer.
    RETURNS (Model[MatchInput, Floats2d]): From vectors (n_rows, width) and pairs (n_pairs, 2) to log-odds (n_pairs, 1).
    """
    first: Model[Any, Any] = chain(Dropout(), Linear(nO=hidden_width))
    last: Model[Any, Any] = chain(Dropout(), Linear(nO=hidden_width))
    score: Model[Any, Any] = Linear(nO=1, nI=hidden_width)
    return Model("matcher", _forward, init=_init, layers=[first, last, score])


def _init(model: Model, X: Optional[Floats2d] = None, Y: Any = None) -> None:
    for layer in model.layers[:2]:
        layer.initialize(X=X)
    model.layers[2].initialize()


def _forward(model: Model, inputs: MatchInput, is_train: bool) -> Tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    vectors, pairs = inputs
    ops: Any = model.ops
    hidden, sides = 0.0, []
    for layer, rows in zip(model.layers[:2], pairs.T, strict=True):
        # A token may stand in many pairs.
        own, places = (ops.asarray1i(found) for found in numpy.unique(rows, return_inverse=True))
        output, back = layer(vectors[own], is_train)
        hidden = hidden + output[places]
        sides.append((own, places, back))
    hidden = ops.xp.tanh(hidden)
    scores, backprop_scores = model.layers[2](hidden, is_train)

    def backprop(gradient: Floats2d) -> Floats2d:
        d_hidden = backprop_scores(gradient) * (1.0 - hidden**2)
        d_vectors = ops.xp.zeros_like(vectors)
        for own, places, back in sides:
            d_own = ops.alloc2f(len(own), d_hidden.shape[1])
            ops.scatter_add(d_own, places, d_hidden)
            d_vectors[own] += back(d_own)
        return d_vectors

    return scores, backprop


class Pairs(NamedTuple):
    """Starts and ends of a sentence that are tried together.

    spans (Spans): Shape (n, 3): start, end and label.
    wanted (NDArray[numpy.bool_]): Shape (n,): which are entities.
    """

    spans: Spans
    wanted: NDArray[numpy.bool_]


def candidate_pairs(target: Boundaries, predicted: NDArray[numpy.bool_], max_width: Optional[int]) -> Pairs:
    """The pairs that a sentence teaches: its entities, and of every start, wanted or predicted, the nearest ends. What
    is unknown takes no part.

    target (Boundaries): The target.
    predicted (NDArray[numpy.bool_]): Shape (n_tokens, n_labels, 2): boundaries that the model finds.
    max_width (Optional[int]): Tokens of an entity, at most.
    RETURNS (Pairs): The pairs, each once.
    """
    true = mention_spans(target, max_width)
    starts, ends, labels = true.T
    true = true[target.known[starts, labels, STARTS] & target.known[ends - 1, labels, ENDS]]
    tried = pair_boundaries((target.wanted | predicted) & target.known, max_width, N_ENDS)
    spans, found_at = numpy.unique(numpy.concatenate([true, tried]), axis=0, return_index=True)
    return Pairs(spans, found_at < len(true))


def learn_matches(
    matcher: Model, rows: Any, shapes: Shapes, pairs: List[Pairs], weight: float = 1.0
) -> Tuple[float, Any]:
    """The loss of the matches: the mean cross-entropy over the pairs of each sentence and question, summed over both.

    matcher (Model): The layers, to which their gradients are added.
    rows (Any): Vectors of all tokens, as `as_rows` gives them.
    shapes (Shapes): Shapes of the vectors, per Doc.
    pairs (List[Pairs]): Per Doc.
    weight (float): Factor on all of it.
    RETURNS (Tuple[float, Any]): Loss, and the gradient of the rows.
    """
    places = row_pairs(shapes, [own.spans for own in pairs])
    if not len(places):
        return 0.0, matcher.ops.xp.zeros_like(rows)
    scores, backprop = matcher.begin_update((rows, places))
    wanted = numpy.concatenate([own.wanted for own in pairs])
    values, slope = binary_cross_entropy(matcher.ops.to_numpy(scores)[:, 0], wanted)
    labels = [own.spans[:, 2] for own in pairs]
    shares = weight / numpy.concatenate([numpy.bincount(own)[own] for own in labels])
    gradient = (shares * slope)[:, None].astype("float32")
    return float((shares * values).sum()), backprop(matcher.ops.asarray2f(gradient))


def match_odds(matcher: Model, vectors: List[Any], spans: List[Spans]) -> List[Array]:
    """Score pairs.

    matcher (Model): The layers.
    vectors (List[Any]): Per Doc (n_tokens, n_labels, width).
    spans (List[Spans]): Per Doc (n, 3): start, end and label.
    RETURNS (List[Array]): Per Doc (n,): log-odds, on the host.
    """
    ops = matcher.ops
    rows, places = as_rows(ops.xp, vectors), row_pairs([own.shape for own in vectors], spans)
    found = numpy.zeros(len(places), dtype="float32")
    for low in range(0, len(places), CHUNK):
        found[low : low + CHUNK] = ops.to_numpy(matcher.predict((rows, places[low : low + CHUNK])))[:, 0]
    return numpy.split(found, numpy.cumsum([len(own) for own in spans])[:-1].tolist())


def match_probabilities(matcher: Model, vectors: Any, spans: Spans) -> Array:
    """The same for one Doc, as probabilities.

    matcher (Model): The layers.
    vectors (Any): Shape (n_tokens, n_labels, width).
    spans (Spans): Shape (n, 3).
    RETURNS (Array): Shape (n,).
    """
    return probabilities(match_odds(matcher, [vectors], [spans])[0])


def match_misfits(matcher: Model, vectors: List[Any], pairs: List[Pairs]) -> List[Array]:
    """How much the scores of pairs speak against what is true of them.

    matcher (Model): The layers.
    vectors (List[Any]): Per Doc (n_tokens, n_labels, width).
    pairs (List[Pairs]): Per Doc.
    RETURNS (List[Array]): Per Doc (n,): log-odds of the opposite.
    """
    odds = match_odds(matcher, vectors, [own.spans for own in pairs])
    return [numpy.where(to.wanted, -own, own) for own, to in zip(odds, pairs, strict=True)]
