"""The span classifier as a Thinc model."""

from typing import Any, Callable, List, Optional, Tuple

from spacy.tokens import Doc
from thinc.api import Dropout, Model, glorot_uniform_init, zero_init
from thinc.types import Floats2d, Ints2d

from ..errors import check_range
from ..heads.layers import check_outputs, with_shapes_of
from ..ty import Vectors

# Token vectors of all sentences of a batch, and (start, end) of their spans; ends are exclusive.
SpanInput = Tuple[Floats2d, Ints2d]
# Number of spans that are scored at a time in prediction, to bound the memory.
CHUNK = 1 << 13


def build_span_classifier(
    tok2vec: Model[List[Doc], List[Floats2d]],
    hidden_width: int = 256,
    nO: Optional[int] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Build a classifier of spans (Li et al. 2021, Equations 3 and 4). Registered as `spacy_weakner.SpanClassifier.v1`.

    It outputs token vectors. The spans to score are selected later, by negative sampling or by the decoder, which call
    the scorer (reference "head").

    Dropout is applied to the token vectors, at the rate `training.dropout`.

    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    hidden_width (int): Width of the scorer's hidden layer.
    nO (Optional[int]): Number of labels, including "O"; inferred at initialization.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors of each Doc, shape (n_tokens, width).
    RAISES (WeaknerError): If the hidden width is below 1.
    """
    check_range("hidden_width", hidden_width, 1, None)
    head = build_span_scorer(hidden_width, nO)
    return Model(
        "span_classifier", _forward, init=_init, layers=[tok2vec, head], refs={"tok2vec": tok2vec, "head": head}
    )


def _init(model: Model, X: Optional[List[Doc]] = None, Y: Optional[List[Floats2d]] = None) -> None:
    tok2vec, head = model.get_ref("tok2vec"), model.get_ref("head")
    tok2vec.initialize(X=X)
    if X is None or Y is None:
        head.initialize()
        return
    vectors: Any = tok2vec.predict(X)
    spans = model.ops.asarray2i([[0, 1]])
    head.initialize(X=(vectors[0], spans), Y=Y[0][:1])


def _forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[Vectors, Callable[[Vectors], Any]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)

    def backprop(gradient: Vectors) -> Any:
        return backprop_vectors(with_shapes_of(gradient, vectors))

    return vectors, backprop


def build_span_scorer(hidden_width: int = 256, nO: Optional[int] = None) -> Model[SpanInput, Floats2d]:
    """Build the scorer of spans. A span from token i to token j is classified by

        tanh(W [h_i; h_j; h_i - h_j; h_i * h_j] + b)

    and a linear layer (Li et al. 2021, Equations 3 and 4). The product of W with the concatenation is computed as

        A h_i + B h_j + C (h_i * h_j)

    where the products with A and B are computed per token, not per span. So the table of n x n x 4d numbers is never
    built, and each span needs only one product of size d.

    In training, separate dropout masks are applied to token vectors as first and as last tokens of spans: with a common
    mask, the product in one-token spans would be scaled up.

    hidden_width (int): Width of the hidden layer.
    nO (Optional[int]): Number of labels, including "O"; inferred at initialization.
    RETURNS (Model[SpanInput, Floats2d]): Maps token vectors (n_tokens, width) and spans (n_spans, 2) to scores
        (n_spans, n_labels).
    """
    dropout: List[Model[Floats2d, Floats2d]] = [Dropout(), Dropout()]
    return Model(
        "span_scorer",
        _score_spans,
        init=_init_scorer,
        layers=dropout,
        params={"A": None, "B": None, "C": None, "b": None, "W": None, "c": None},
        dims={"nO": nO, "nI": None, "nH": hidden_width},
    )


def _init_scorer(model: Model, X: Optional[SpanInput] = None, Y: Optional[Floats2d] = None) -> None:
    if X is not None:
        model.set_dim("nI", X[0].shape[1])
    if Y is not None:
        check_outputs(model, Y.shape[1])
        model.set_dim("nO", Y.shape[1])
    n_in, n_hidden, n_out = (model.get_dim(name) for name in ("nI", "nH", "nO"))
    # W of the paper: A and B are the sum and the difference of two of its parts.
    whole: Any = glorot_uniform_init(model.ops, (n_hidden, 4 * n_in))
    parts = [whole[:, i * n_in : (i + 1) * n_in] for i in range(4)]
    for name, weights in (("A", parts[0] + parts[2]), ("B", parts[1] - parts[2]), ("C", parts[3].copy())):
        model.set_param(name, weights)
    model.set_param("b", zero_init(model.ops, (n_hidden,)))
    model.set_param("W", glorot_uniform_init(model.ops, (n_out, n_hidden)))
    model.set_param("c", zero_init(model.ops, (n_out,)))


def _score_spans(model: Model, inputs: SpanInput, is_train: bool) -> Tuple[Floats2d, Callable[[Floats2d], Floats2d]]:
    vectors, spans = inputs
    if not is_train:
        return _predict(model, vectors, spans), _no_backprop
    as_first, backprop_first = model.layers[0](vectors, is_train)
    as_last, backprop_last = model.layers[1](vectors, is_train)
    A, B, C, b, W, c = (model.get_param(name) for name in ("A", "B", "C", "b", "W", "c"))
    starts, ends = _ends(model, spans)
    first, last = as_first[starts], as_last[ends]
    product = first * last
    hidden = model.ops.xp.tanh((as_first @ A.T)[starts] + (as_last @ B.T)[ends] + product @ C.T + b)

    def backprop(gradient: Floats2d) -> Floats2d:
        model.inc_grad("W", gradient.T @ hidden)
        model.inc_grad("c", gradient.sum(axis=0))
        d_hidden = (gradient @ W) * (1.0 - hidden**2)
        model.inc_grad("b", d_hidden.sum(axis=0))
        model.inc_grad("C", d_hidden.T @ product)
        d_product = d_hidden @ C
        n_tokens = len(vectors)
        # Gradients by token: of A h and B h, and of h through the product.
        at_start = _sum_by_token(model, starts, d_hidden, n_tokens)
        at_end = _sum_by_token(model, ends, d_hidden, n_tokens)
        model.inc_grad("A", at_start.T @ as_first)
        model.inc_grad("B", at_end.T @ as_last)
        d_first = at_start @ A + _sum_by_token(model, starts, d_product * last, n_tokens)
        d_last = at_end @ B + _sum_by_token(model, ends, d_product * first, n_tokens)
        return backprop_first(d_first) + backprop_last(d_last)

    return hidden @ W.T + c, backprop


def _predict(model: Model, vectors: Floats2d, spans: Ints2d) -> Floats2d:
    A, B, C, b, W, c = (model.get_param(name) for name in ("A", "B", "C", "b", "W", "c"))
    xp = model.ops.xp
    starts, ends = _ends(model, spans)
    scores: Any = xp.empty((len(spans), len(c)), dtype="float32")
    at_start, at_end = vectors @ A.T + b, vectors @ B.T
    for low in range(0, len(spans), CHUNK):
        first, last = starts[low : low + CHUNK], ends[low : low + CHUNK]
        hidden = (vectors[first] * vectors[last]) @ C.T
        hidden += at_start[first]
        hidden += at_end[last]
        xp.tanh(hidden, out=hidden)
        scores[low : low + CHUNK] = hidden @ W.T + c
    return scores


def _ends(model: Model, spans: Ints2d) -> Tuple[Any, Any]:
    # First and last tokens; `scatter_add` is slow for types other than int32, and for columns of a table.
    contiguous = model.ops.xp.ascontiguousarray
    return contiguous(spans[:, 0].astype("int32")), contiguous((spans[:, 1] - 1).astype("int32"))


def _sum_by_token(model: Model, tokens: Any, rows: Any, n_tokens: int) -> Any:
    table = model.ops.alloc2f(n_tokens, rows.shape[1])
    model.ops.scatter_add(table, tokens, rows)
    return table


def _no_backprop(gradient: Floats2d) -> Floats2d:
    raise RuntimeError("nothing is kept to differentiate when predicting")
