"""Frozen encoders: vectors of tokens that are not trained, for linear models."""

from functools import partial
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..caching import read_once
from ..corpus.parts import Parts
from ..errors import check_choice, check_range
from ..linear.indicators import no_gradient
from .onnx_encoder import build_onnx_encoder
from .transformer import MIDDLE, ReaderSettings
from .transformer_encoder import encoder_of_text

FROZEN_ENCODER = "frozen_encoder"  # name of the layer
_MEAN, _SCALE = "mean", "scale"
# Dimensions that hardly vary in the sample are not enlarged without limit.
_LEAST = 1e-3


class FrozenStatistics(NamedTuple):
    """What standardizes the vectors h of a frozen encoder: (h - mean) * scale, each of shape (width,)."""

    mean: NDArray[numpy.float32]
    scale: NDArray[numpy.float32]


def build_frozen_transformer(
    name: str,
    layer: Optional[int] = None,
    width: Optional[int] = None,
    pooling: str = "mean",
    max_length: Optional[int] = None,
    stride: int = 64,
    batch_pieces: Optional[int] = None,
    mixed_precision: Optional[str] = "bf16",
    length: float = 2.8,
) -> Model[List[Doc], List[Floats2d]]:
    """Represent every token by the output of one layer of a Transformer that is not trained, standardized:

        v_t = length / sqrt(n) (h_t - mean) / deviation

    where n is the width, and mean and deviation of each dimension are those over the Docs for initialization (spaCy and
    our components give ten, projects 500). Layers
    above are removed. A middle layer is more useful than the last: a linear CRF on it and on indicator features,
    trained by `spacy_weakner.LBFGS.v1`, needs seconds, and with little gold its F1 is near that of a Transformer that
    is trained. Registered as `spacy_weakner.FrozenTransformer.v1`.

    If a Doc has sentence bounds, each sentence is encoded separately, as heads read them, so that it can be the model
    of the component `tok2vec`, which encodes every Doc once for all components that listen to it. The Transformer is
    stored in half precision.

    name (str): The encoder: a Hugging Face folder or name, with weights as safetensors. It is read when the model is
        initialized; a stored pipeline no longer needs it.
    layer (Optional[int]): Number of the layer, counted from 1. None: that in the middle.
    width (Optional[int]): Width of the output, which must be the Transformer's; listeners refer to it. None: any.
    pooling (str): A token's vector: the "mean" of its pieces, or the "first" one.
    max_length (Optional[int]): Maximum number of pieces of a window; see `spacy_weakner.TransformerEncoder.v1`.
    stride (int): Number of pieces by which windows overlap.
    batch_pieces (Optional[int]): Maximum number of pieces in a batch, including padding. None: by device.
    mixed_precision (Optional[str]): "bf16": computes in bfloat16 where torch considers it safe, on GPUs, and on CPUs
        that have instructions for it (nearly twice as fast). Then the other texts of a batch may change the third
        digit of a number; None: float32, the seventh.
    length (float): Root mean square length of the vectors. The longer, the smaller the effect of an L2 penalty.
    RETURNS (Model[List[Doc], List[Floats2d]]): Vectors of each Doc, (n_tokens, width); 0 for white space.
    RAISES (WeaknerError): If a setting is out of range or, at initialization, there is no such encoder or layer.
    """
    check_choice("mixed_precision", mixed_precision, ("bf16",), optional=True)
    check_range("layer", layer, 1, None, optional=True)
    settings, layer = ReaderSettings(pooling, mixed_precision, mixed_on_cpu=True), MIDDLE if layer is None else layer
    lower = encoder_of_text(name, settings, max_length, stride, batch_pieces, width, layer=layer, half=True)
    return freeze(lower, length, width)


def build_frozen_onnx(
    width: Optional[int] = None,
    pooling: str = "mean",
    max_length: Optional[int] = None,
    stride: int = 64,
    length: float = 2.8,
) -> Model[List[Doc], List[Floats2d]]:
    """Represent every token as `spacy_weakner.FrozenTransformer.v1` does, by a Transformer that `spacy weakner encoder
    quantize` has converted to int8. Registered as `spacy_weakner.FrozenOnnx.v1`.

    width, pooling, max_length, stride: See `spacy_weakner.OnnxEncoder.v1`.
    length (float): Root mean square length of the vectors.
    RETURNS (Model[List[Doc], List[Floats2d]]): Vectors of each Doc, (n_tokens, width); 0 for white space.
    RAISES (WeaknerError): If a setting is out of range, or ONNX Runtime is not installed.
    """
    return freeze(build_onnx_encoder(width, pooling, max_length, stride), length, width)


def freeze(
    encoder: Model[List[Doc], List[Floats2d]], length: float, width: Optional[int] = None
) -> Model[List[Doc], List[Floats2d]]:
    """Make an encoder that is not trained, with standardized vectors; for the arguments see `build_frozen_transformer`.
    `encoder` encodes single sentences without white space."""
    check_range("length", length, 0.0, 1e6)
    return Model(
        FROZEN_ENCODER,
        # Not an attribute, which is loaded with the weights: the setting in the config must take effect.
        partial(_forward, length),
        init=_init,
        layers=[encoder],
        dims={"nO": width},
        attrs={_MEAN: None, _SCALE: None},
    )


def statistics_of(model: Model, length: float) -> FrozenStatistics:
    """RETURNS (FrozenStatistics): The statistics of an initialized frozen encoder with this length of its vectors."""
    mean, scale = model.attrs[_MEAN], model.attrs[_SCALE]
    return FrozenStatistics(mean, scale * length / len(scale) ** 0.5)


def _init(model: Model, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    (encoder,) = model.layers
    encoder.initialize(X=X)
    docs = Parts.of(X or []).docs
    width = encoder.get_dim("nO")
    model.set_dim("nO", width)
    rows = [model.ops.to_numpy(some) for some in encoder.predict(docs)] if docs else []
    every = numpy.concatenate([numpy.zeros((0, width), dtype="float32"), *rows])
    mean, scale = numpy.zeros(width), numpy.ones(width)
    if len(every) > 1:
        mean, deviation = every.mean(axis=0), every.std(axis=0)
        largest = deviation.max() or 1.0
        scale = 1 / numpy.where(deviation > _LEAST * largest, deviation, largest)
    model.attrs[_MEAN], model.attrs[_SCALE] = mean.astype("float32"), scale.astype("float32")


def _forward(
    length: float, model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[Any], List[Doc]]]:
    return read_once(model, docs, lambda: _encode(length, model, docs)), no_gradient


def _encode(length: float, model: Model, docs: List[Doc]) -> List[Floats2d]:
    ops = model.ops
    statistics: Any = statistics_of(model, length)
    mean, scale = map(ops.asarray1f, statistics)
    parts = Parts.of(docs)
    rows: Any = model.layers[0].predict(parts.docs)
    rows = [(some - mean) * scale for some in rows]
    if parts.are_whole:
        return rows
    return parts.spread(rows, [ops.alloc2f(len(doc), model.get_dim("nO")) for doc in docs])
