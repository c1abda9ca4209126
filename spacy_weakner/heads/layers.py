"""The common structure of the heads' models: an encoder, and the component's own layers."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model, Ops
from thinc.types import Floats2d

from ..batching import split_rows
from ..errors import Errors, WeaknerError
from ..ty import Vectors

# References of the model to layers whose outputs are added to the head's scores.
ADDED = ("linear", "source_features")


def encoder_and_head(
    name: str,
    tok2vec: Model[List[Doc], List[Floats2d]],
    head: Model[List[Floats2d], List[Floats2d]],
    source_features: Optional[Model[List[Doc], List[Floats2d]]] = None,
    linear: Optional[Model[List[Doc], List[Floats2d]]] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """Create a model with the references "tok2vec" and "head", which `TrainableHead` requires, and optionally "linear"
    and "source_features".

    name (str): Name of the model.
    tok2vec (Model[List[Doc], List[Floats2d]]): The encoder, or a listener to a shared one.
    head (Model[List[Floats2d], List[Floats2d]]): Maps vectors to scores of tokens.
    source_features (Optional[Model[List[Doc], List[Floats2d]]]): Scores to add; see `sources.features`.
    linear (Optional[Model[List[Doc], List[Floats2d]]]): Further scores to add; see `sparse.linear_scores`. With either,
        the head's last layer must be initialized with zeros.
    RETURNS (Model[List[Doc], List[Floats2d]]): Scores of each Doc, shape (n_tokens, n_outputs).
    """
    every = {"tok2vec": tok2vec, "head": head, "linear": linear, "source_features": source_features}
    refs: Any = {ref: layer for ref, layer in every.items() if layer is not None}
    return Model(name, _forward, init=_init, layers=list(refs.values()), refs=refs)


def check_outputs(head: Model, wanted: int) -> None:
    """Check that the number of outputs of a head, if it is set, fits the labels.

    head (Model): The head.
    wanted (int): The number that the labels need.
    RAISES (WeaknerError): If it does not fit.
    """
    if head.maybe_get_dim("nO") not in (None, wanted):
        expected = f"{wanted}, the number that these labels need, or no value"
        raise WeaknerError(Errors.WK005.format(setting="nO", value=head.get_dim("nO"), expected=expected))


def with_shapes_of(gradient: Vectors, vectors: Vectors) -> Vectors:
    """Return a gradient with the shapes of the vectors: some encoders return (0, 0) arrays for Docs without tokens, and
    require gradients of the same shapes."""
    return [g if g.shape == v.shape else v for g, v in zip(gradient, vectors, strict=True)]


def is_listener(model: Model) -> bool:
    """Return True if a model listens to the encoder of another component."""
    return bool(_listeners(model))


def _listeners(model: Model) -> List[Any]:
    return [node for node in model.walk() if hasattr(node, "upstream_name")]


def needs_whole_docs(model: Model) -> bool:
    """Return True if a model must be trained on the same Docs that a shared encoder has read: spaCy's listeners need
    not if the encoder is frozen, since they then read `Doc.tensor`."""
    return not all(isinstance(node, Tok2VecListener) and node._batch_id is None for node in _listeners(model))


def lack_encoder(model: Model, docs: Sequence[Doc]) -> bool:
    """Return True if a model listens to an encoder that has not run on one of the Docs: spaCy's listener would return
    zeros for it."""
    return any(len(doc) and not _has_output(node, doc) for node in _listeners(model) for doc in docs)


def _has_output(listener: Model, doc: Doc) -> bool:
    if not isinstance(listener, Tok2VecListener):  # of spacy-transformers
        return Doc.has_extension("trf_data") and bool(doc._.trf_data)
    tensor, width = doc.tensor, listener.maybe_get_dim("nO")
    return tensor is not None and tensor.ndim == 2 and width in (None, tensor.shape[1])


def to_host(ops: Ops, arrays: Sequence[Any]) -> List[NDArray[Any]]:
    """Copy arrays of a batch to the host: rows of the same width for each Doc, or one array with a row per Doc. Arrays
    on a GPU are copied together, since each copy waits for the GPU."""
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
        return backprop_vectors(with_shapes_of(backprop_head(gradient), vectors))

    return scores, backprop


def _added(model: Model) -> List[Model]:
    return [model.get_ref(name) for name in ADDED if model.has_ref(name)]
