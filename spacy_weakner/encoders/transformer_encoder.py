"""Transformers of Hugging Face as encoders of text alone, or of text with questions (Li et al. 2020).

Docs are split into windows of subword pieces (`windows`), windows of similar length are batched (here), and batches go
through the Transformer, whose vectors of pieces are pooled to vectors of words (`torch_reader`).
"""

import warnings
from functools import partial
from itertools import pairwise
from typing import Any, Callable, List, Optional, Tuple

import numpy
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, PyTorchGradScaler, torch2xp, xp2torch
from thinc.types import Floats2d, Floats3d
from thinc.util import get_torch_default_device

from ..batching import group_by_length
from ..errors import Errors, Warnings, WeaknerError, check_choice, check_range
from ..torch_io import TorchShim, module_from_bytes, module_to_bytes
from .queried import Queried
from .transformer import ReaderSettings
from .windows import Window, check_windows, read_windows, window_settings

POOLINGS = ("mean", "first")
# Maximum number of pieces in a batch, including padding.
CPU_PIECES, GPU_PIECES = 700, 32_000


def build_transformer_encoder(
    name: str,
    width: Optional[int] = None,
    pooling: str = "mean",
    max_length: Optional[int] = None,
    stride: int = 64,
    batch_pieces: Optional[int] = None,
    mixed_precision: Optional[str] = None,
    frozen_layers: int = 0,
    layer_decay: float = 1.0,
) -> Model[List[Doc], List[Floats2d]]:
    """Encode tokens with a Transformer of Hugging Face. It can replace any `tok2vec`, including that of the component
    `tok2vec`, to which heads listen. Registered as `spacy_weakner.TransformerEncoder.v1`.

    All Docs of a batch are sorted by length and processed together. Docs that are too long are split into overlapping
    windows; a token's vector comes from the window with most of its pieces or, of several, from that in which it is
    farthest from an edge. Tokens without pieces, such as white space, are zeros.

    name (str): The initial encoder: a Hugging Face folder or name, with weights as safetensors. (A stored pipeline no
        longer needs it.)
    width (Optional[int]): Width of the output, which must be the Transformer's; listeners refer to it. None: any.
    pooling (str): A token's vector: the "mean" of its pieces, or the "first" one.
    max_length (Optional[int]): Maximum number of pieces of a window, including special ones. None: 256, or the number
        of positions of the Transformer if it is smaller.
    stride (int): Number of pieces by which windows overlap, at most half of `max_length`.
    batch_pieces (Optional[int]): Maximum number of pieces in a batch, including padding. None: 700 on a CPU, where
        batches that fit the caches are fastest, and 32,000 on a GPU.
    mixed_precision (Optional[str]): "bf16" or "fp16" (with gradient scaling): the type in which torch computes where it
        is safe; no effect on a CPU, for which there is `use_bfloat16`. None: float32.
    frozen_layers (int): If above 0, the embeddings and this number of the lowest layers are not trained.
    layer_decay (float): Factor from the learning rate of a layer to that of the layer below, and to that of the
        embeddings (Howard and Ruder 2018; Sun et al. 2019). The top layer has the full rate.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors of each Doc, (n_tokens, width).
    RAISES (WeaknerError): If a setting is out of range.
    """
    settings = ReaderSettings(pooling, mixed_precision, frozen_layers, layer_decay)
    return encoder_of_text(name, settings, max_length, stride, batch_pieces, width)


def encoder_of_text(
    name: str,
    settings: ReaderSettings,
    max_length: Optional[int],
    stride: int,
    batch_pieces: Optional[int],
    width: Optional[int],
    *,
    layer: Optional[int] = None,
    half: bool = False,
) -> Model[List[Doc], List[Floats2d]]:
    """Build an encoder of text without questions.

    name, max_length, stride, batch_pieces, width: See `build_transformer_encoder`.
    settings (ReaderSettings): Settings of the reader.
    layer (Optional[int]): The layer whose output is read; see `load_reader`.
    half (bool): Store it in half precision.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors of each Doc, (n_tokens, width).
    RAISES (WeaknerError): If a setting is out of range.
    """
    check_choice("pooling", settings.pooling, POOLINGS)
    reader = _build_reader(name, settings, max_length, stride, batch_pieces, layer=layer, half=half)
    return Model("transformer_encoder", _forward_alone, init=_init_alone, layers=[reader], dims={"nO": width})


def build_query_context_encoder(
    name: str,
    max_length: Optional[int] = None,
    stride: int = 64,
    batch_pieces: Optional[int] = None,
    mixed_precision: Optional[str] = None,
    frozen_layers: int = 0,
    layer_decay: float = 1.0,
) -> Model[Queried, List[Floats3d]]:
    """Encode pairs of every question and every text, so that attention connects them. A word's vector is the
    concatenation of those of its first and last piece; otherwise it is like `spacy_weakner.TransformerEncoder.v1`.
    Registered as `spacy_weakner.QueryContextEncoder.v1`.

    name (str): The initial encoder: a Hugging Face folder or name, with weights as safetensors.
    max_length (Optional[int]): Maximum number of pieces of a window: question, text and special ones.
    stride (int): Number of pieces by which windows overlap; at most half of the room that a question leaves for text.
    batch_pieces (Optional[int]): Maximum number of pieces in a batch, including padding. None: by device.
    mixed_precision (Optional[str]): "bf16", "fp16" or None.
    frozen_layers (int): If above 0, the embeddings and this number of the lowest layers are not trained.
    layer_decay (float): Factor from the learning rate of a layer to that of the layer below.
    RETURNS (Model[Queried, List[Floats3d]]): (n_tokens, n_queries, 2 * width) for each Doc; zeros without pieces.
    RAISES (WeaknerError): If a setting is out of range.
    """
    settings = ReaderSettings("first_last", mixed_precision, frozen_layers, layer_decay)
    return _build_reader(name, settings, max_length, stride, batch_pieces)


def _build_reader(
    name: str,
    settings: ReaderSettings,
    max_length: Optional[int],
    stride: int,
    batch_pieces: Optional[int],
    *,
    layer: Optional[int] = None,
    half: bool = False,
) -> Model[Queried, List[Floats3d]]:
    """Build the layer of all encoders, from texts and questions to (n_tokens, n_queries, width) for each Doc. It reads
    the output of a layer (see `load_reader`), and is stored in half precision with `half`."""
    check_windows(max_length, stride)
    check_range("batch_pieces", batch_pieces, 1, None, optional=True)
    check_range("frozen_layers", settings.frozen_layers, 0, None)
    check_range("layer_decay", settings.layer_decay, 0.0, 1.0)
    check_choice("mixed_precision", settings.mixed_precision, ("bf16", "fp16"), optional=True)
    scaled = settings.mixed_precision == "fp16" and get_torch_default_device().type == "cuda"
    shim = ReaderShim(
        None,
        grad_scaler=PyTorchGradScaler(scaled),
        serialize_model=partial(module_to_bytes, half=half),
        deserialize_model=partial(_deserialize, settings=settings, half=half),
    )
    # Settings are not attributes of the model: attributes are stored, and would override the config at load time.
    forward = partial(_forward, max_length=max_length, stride=stride, batch_pieces=batch_pieces)
    return Model(
        "transformer_reader", forward, init=partial(_init, name=name, settings=settings, layer=layer), shims=[shim]
    )


class ReaderShim(TorchShim):
    """The shim of a `Reader`, with learning rates of layers, and accumulation of gradients that are scaled for fp16."""

    def begin_update(self, inputs: ArgsKwargs) -> Any:
        output, backprop = super().begin_update(inputs)
        if self._model.settings.mixed_precision != "fp16":
            return output, backprop

        def backprop_apart(gradient: ArgsKwargs) -> Any:
            # Thinc unscales all accumulated gradients, including those of earlier batches.
            gathered = [(weight, weight.grad) for weight in self._model.parameters()]
            self._model.zero_grad(set_to_none=True)
            result = backprop(gradient)
            for weight, before in gathered:
                if weight.grad is None or self._grad_scaler.found_inf:
                    weight.grad = before
                elif before is not None:
                    weight.grad += before
            return result

        return output, backprop_apart

    def finish_update(self, optimizer: Any) -> None:
        rates = self._model.rates

        def at_own_rate(key: Any, weights: Any, gradient: Any) -> Any:
            return optimizer(key, weights, gradient, lr_scale=rates[key[1]])

        step: Any = at_own_rate if rates else optimizer
        super().finish_update(step)
        # Without zeros, the next gradients need no addition.
        self._model.zero_grad(set_to_none=True)


def readers_in(model: Model) -> List[Any]:
    """Return the `TransformerReader`s that a model runs itself, as far as they are loaded; not those that it listens
    to."""
    shims = dict.fromkeys(shim for node in model.walk() for shim in node.shims if isinstance(shim, ReaderShim))
    return [shim._model for shim in shims if shim._model is not None]


def _init(
    model: Model, X: Any = None, Y: Any = None, *, name: str, settings: ReaderSettings, layer: Optional[int]
) -> None:
    from .torch_reader import load_reader

    shim = model.shims[0]
    # Load it again if there is a model: training has changed its weights.
    try:
        shim._model = load_reader(name, settings, layer).to(get_torch_default_device())
    except WeaknerError as error:
        if shim._model is None:
            raise
        warnings.warn(Warnings.WK909.format(name=name, reason=error), stacklevel=2)


def _forward(
    model: Model,
    asked: Queried,
    is_train: bool,
    *,
    max_length: Optional[int],
    stride: int,
    batch_pieces: Optional[int],
) -> Tuple[List[Floats3d], Callable[[List[Floats3d]], Any]]:
    shim: Any = model.shims[0]
    ops: Any = model.ops
    module = shim._model
    limits = window_settings(max_length, stride, module.max_pieces)
    n_queries, width = len(asked.queries), module.width
    offsets = numpy.cumsum([0, *map(len, asked.docs)])
    # All vectors are in one array, with one index for all, since every index is copied to the device.
    vectors: Any = ops.alloc2f(int(offsets[-1]) * n_queries, width)
    windows: List[Window] = []
    rows = []
    for q, by_doc in enumerate(read_windows(module.tokenizer, asked.docs, asked.queries, limits)):
        for offset, found in zip(offsets, by_doc, strict=False):
            windows += found
            rows += [(offset + window.words) * n_queries + q for window in found]
    padded = batch_pieces or (CPU_PIECES if ops.device_type == "cpu" else GPU_PIECES)
    groups = group_by_length([len(window.ids) for window in windows], padded)
    back: Any = None
    if groups:
        batches = [_to_batch([windows[i] for i in group], module.padding, shim.device) for group in groups]
        output, back = shim(ArgsKwargs(args=(batches,), kwargs={}), is_train)
        index = ops.asarray1i(numpy.concatenate([rows[i] for group in groups for i in group]).astype("int32"))
        vectors[index] = torch2xp(output)

    def backprop(gradient: List[Any]) -> Any:
        if back is not None and output.requires_grad:
            given = ops.xp.concatenate([rows_of_doc.reshape(-1, width) for rows_of_doc in gradient])
            back(ArgsKwargs(args=((output,),), kwargs={"grad_tensors": (xp2torch(given[index]),)}))
        return asked.docs

    shapes = [(len(doc), n_queries, width) for doc in asked.docs]
    return [
        vectors[low * n_queries : high * n_queries].reshape(shape)
        for (low, high), shape in zip(pairwise(offsets.tolist()), shapes, strict=True)
    ], backprop


def _to_batch(windows: List[Window], padding: int, device: Any) -> Any:
    """Convert windows to tensors (`torch_reader.PieceTensors`)."""
    import torch

    length = max(len(window.ids) for window in windows)
    ids = numpy.full((len(windows), length), padding, dtype="int64")
    types, mask = numpy.zeros_like(ids), numpy.zeros_like(ids)
    for row, window in enumerate(windows):
        n = len(window.ids)
        ids[row, :n], types[row, :n], mask[row, :n] = window.ids, window.types, 1
    first = numpy.concatenate([row * length + window.first for row, window in enumerate(windows)])
    last = numpy.concatenate([row * length + window.last for row, window in enumerate(windows)])
    return tuple(torch.as_tensor(array, device=device) for array in (ids, types, mask, first, last))


def _deserialize(module: Any, data: bytes, device: Any, *, settings: ReaderSettings, half: bool) -> Any:
    from .torch_reader import make_reader

    loaded = module_from_bytes(data, partial(make_reader, settings=settings), device)
    # CPUs compute slowly in half precision, so it is used for storage only.
    return loaded.float() if half and loaded is not None else loaded


def _init_alone(model: Model, X: Any = None, Y: Any = None) -> None:
    reader = model.layers[0]
    reader.initialize()
    set_width(model, reader.shims[0]._model.width, "the Transformer")


def set_width(model: Model, width: int, encoder: str) -> None:
    """Set the width of an encoder's output. Raise an error if its setting `width` is another one."""
    wanted = model.maybe_get_dim("nO")
    if wanted not in (None, width):
        expected = f"{width}, the width of {encoder}"
        raise WeaknerError(Errors.WK005.format(setting="width", value=wanted, expected=expected))
    model.set_dim("nO", width)


def _forward_alone(
    model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable[[List[Floats2d]], Any]]:
    """Encode text without a question."""
    vectors, back = model.layers[0](Queried(docs, [""]), is_train)

    def backprop(gradient: List[Any]) -> Any:
        return back([array.reshape(len(array), 1, -1) if len(array) else array for array in gradient])

    return [array[:, 0] for array in vectors], backprop
