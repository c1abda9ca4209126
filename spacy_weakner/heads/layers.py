"""The frame of the heads' models: an encoder, and what is the component's own."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model, Ops
from thinc.types import Floats2d

from ..errors import Errors, WeaknerError

Vectors = List[Floats2d]
# What is added to the scores of a head, by references of the model.
ADDED = ("linear", "source_features")


def encoder_and_head(
    name: str,
    tok2vec: Model[List[Doc], List[Floats2d]],
    head: Model[List[Floats2d], List[Floats2d]],
    source_features: Optional[Model[List[Doc], List[Floats2d]]] = None,
    linear: Optional[Model[List[Doc], List[Floats2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """A model with the references "tok2vec" and "head", as `TrainableHead` wants it, and perhaps "linear" and
    "source_features".

    name (str): Its name.
    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    head (Model[List[Floats2d], List[Floats2d]]): From vectors to scores of tokens.
    source_features (Optional[Model[List[Doc], List[Floats2d]]]): What is added to the scores; see `sources.features`.
    linear (Optional[Model[List[Doc], List[Floats2d]]]): What else is added; see `sparse.linear_scores`. With either
        the head's last layer starts at zero.
    RETURNS (Model[List[Doc], List[Floats2d]]): Scores, per Doc (n_tokens, n_outputs).
    """
    every = {"tok2vec": tok2vec, "head": head, "linear": linear, "source_features": source_features}
    refs: Any = {ref: layer for ref, layer in every.items() if layer is not None}
    return Model(name, _forward, init=_init, layers=list(refs.values()), refs=refs)


def check_outputs(head: Model, wanted: int) -> None:
    """Make sure that a head that was told its number of outputs was told the right one.

    head (Model): The head.
    wanted (int): The number that the labels need.
    RAISES (WeaknerError): If it is another one.
    """
    if head.maybe_get_dim("nO") not in (None, wanted):
        expected = f"{wanted}, which these labels need, or nothing"
        raise WeaknerError(Errors.WK005.format(setting="nO", value=head.get_dim("nO"), expected=expected))


def as_given(gradient: Vectors, vectors: Vectors) -> Vectors:
    """A gradient in the shapes of the vectors: some encoders give (0, 0) arrays for Docs without tokens, and want back
    what they gave."""
    return [g if g.shape == v.shape else v for g, v in zip(gradient, vectors, strict=True)]


def is_listener(model: Model) -> bool:
    """True if a model listens to the encoder of another component."""
    return any(hasattr(node, "upstream_name") for node in model.walk())


def to_host(ops: Ops, arrays: Sequence[Any]) -> List[NDArray[Any]]:
    """Copy arrays of a batch to the host: rows of the same width per Doc, or one array with a row per Doc. From a GPU
    they go together, since each copy waits for it."""
    if ops.device_type == "cpu":
        return [ops.to_numpy(rows) for rows in arrays]
    if hasattr(arrays, "shape"):
        return list(ops.to_numpy(arrays))
    used = [rows for rows in arrays if len(rows)]
    whole = iter(split_rows(ops.to_numpy(ops.xp.concatenate(used)), used) if used else [])
    return [next(whole) if len(rows) else numpy.zeros(rows.shape, dtype="float32") for rows in arrays]


def to_device(ops: Any, arrays: Sequence[NDArray[Any]]) -> List[Any]:
    """Copy gradients of a batch to the device of a model, as float32: the reverse of `to_host`."""
    if ops.device_type == "cpu" or not arrays:
        return [ops.asarray2f(rows) for rows in arrays]
    return split_rows(ops.asarray2f(numpy.concatenate(arrays).astype("float32")), arrays)


def split_rows(rows: Any, like: Sequence[Any]) -> List[Any]:
    """Split an array into arrays as long as some others, in their order."""
    ends = numpy.cumsum([len(other) for other in like]).tolist()
    return [rows[end - len(other) : end] for end, other in zip(ends, like, strict=True)]


def _init(model: Model, X: Optional[List[Doc]] = None, Y: Optional[List[Floats2d]] = None) -> None:
    tok2vec, head = model.get_ref("tok2vec"), model.get_ref("head")
    tok2vec.initialize(X=X)
    for layer in _added(model):
        layer.initialize(X=X, Y=Y)
    if X is None:
        head.initialize()
        return
    if Y is not None:
        check_outputs(head, Y[0].shape[-1])
    head.initialize(X=tok2vec.predict(X), Y=Y)


def _forward(model: Model, docs: List[Doc], is_train: bool) -> Tuple[Vectors, Callable[[Vectors], Any]]:
    vectors, backprop_vectors = model.get_ref("tok2vec")(docs, is_train)
    scores, backprop_head = model.get_ref("head")(vectors, is_train)
    backprop_added = []
    for layer in _added(model):
        more, backprop_layer = layer(docs, is_train)
        scores = [a + b for a, b in zip(scores, more, strict=True)]
        backprop_added.append(backprop_layer)

    def backprop(gradient: Vectors) -> Any:
        for backprop_layer in backprop_added:
            backprop_layer(gradient)
        return backprop_vectors(as_given(backprop_head(gradient), vectors))

    return scores, backprop


def _added(model: Model) -> List[Model]:
    return [model.get_ref(name) for name in ADDED if model.has_ref(name)]
