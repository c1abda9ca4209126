"""A Transformer that ONNX Runtime runs on a CPU, for prediction only.

`spacy weakner encoder quantize` makes it from a Transformer that torch runs.
"""

import os
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy
import srsly
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model, Shim
from thinc.types import Floats2d

from ..errors import check_choice, require
from .transformer_encoder import POOLINGS
from .windows import Window, WindowTokenizer, check_windows, read_windows, window_settings

_PREDICTS_ONLY = (
    "spacy_weakner.OnnxEncoder.v1 cannot be trained. Train a pipeline with spacy_weakner.TransformerEncoder.v1, and "
    "quantize it with 'spacy weakner encoder quantize'."
)


def build_onnx_encoder(
    width: Optional[int] = None, pooling: str = "mean", max_length: Optional[int] = None, stride: int = 64
) -> Model[List[Doc], List[Floats2d]]:
    """Encode tokens with a Transformer that `spacy weakner encoder quantize` has made from a trained
    `spacy_weakner.TransformerEncoder.v1`; it cannot be trained. Registered as `spacy_weakner.OnnxEncoder.v1`.

    Windows are processed one by one: activations are quantized with the largest value in a batch, so that in a common
    batch the vectors of a text would depend on the other texts.

    width (Optional[int]): Width of the output; listeners refer to it.
    pooling (str): A token's vector: the "mean" of its pieces, or the "first" one.
    max_length (Optional[int]): Maximum number of pieces of a window, including special ones. None: 256, or the number
        of positions of the Transformer if it is smaller.
    stride (int): Number of pieces by which windows overlap, at most half of `max_length`.
    RETURNS (Model[List[Doc], List[Floats2d]]): Token vectors of each Doc, (n_tokens, width); zeros for tokens without
        pieces.
    RAISES (WeaknerError): If a setting is out of range, or ONNX Runtime is not installed.
    """
    check_choice("pooling", pooling, POOLINGS)
    check_windows(max_length, stride)
    require("onnxruntime", extra="onnx")
    forward = partial(_forward, pooling=pooling, max_length=max_length, stride=stride)
    return Model("onnx_encoder", forward, init=_init, shims=[OnnxShim(None)], dims={"nO": width})


# Sessions of parent processes: their destructors would wait forever for threads that exist only there.
_inherited: List[Any] = []


class OnnxTransformer:
    """A Transformer in ONNX.

    onnx (bytes): The model, which maps ids, shape (1, n_pieces), to vectors, shape (n_pieces, width).
    tokenizer (str): Its fast tokenizer, as JSON.
    max_pieces (Optional[int]): Its number of positions; None: no limit.
    """

    def __init__(self, onnx: bytes, tokenizer: str, max_pieces: Optional[int]) -> None:
        self.onnx = onnx
        self.tokenizer = WindowTokenizer(tokenizer)
        self.max_pieces = max_pieces
        self._session: Tuple[int, Any] = (0, None)

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), "_session": (0, None)}

    def read(self, ids: List[int]) -> NDArray[numpy.float32]:
        """Compute vectors of pieces, shape (n_pieces, width). The threads of a session do not survive a fork, so that
        each process creates its own session."""
        process, session = self._session
        if process != os.getpid():
            _inherited.append(session)
            session = make_session(self.onnx)
            self._session = (os.getpid(), session)
        vectors: NDArray[numpy.float32] = session.run(None, {"ids": numpy.asarray([ids], dtype="int64")})[0]
        return vectors

    def to_bytes(self) -> bytes:
        stored = {"onnx": self.onnx, "tokenizer": self.tokenizer.data, "max_pieces": self.max_pieces}
        return srsly.msgpack_dumps(stored)


class OnnxShim(Shim):
    """A shim that stores an `OnnxTransformer`, which stays on the CPU."""

    def to_device(self, device_type: str, device_id: int) -> None:
        pass

    def finish_update(self, optimizer: Any) -> None:
        raise ValueError(_PREDICTS_ONLY)

    def to_bytes(self) -> bytes:
        return self._model.to_bytes() if self._model else b""

    def from_bytes(self, data: bytes) -> "OnnxShim":
        self._model = OnnxTransformer(**srsly.msgpack_loads(data)) if data else None
        return self


def make_session(onnx: bytes) -> Any:
    """Create a session of ONNX Runtime with the number of threads of torch.

    onnx (bytes): The model.
    RETURNS (Any): An `InferenceSession`.
    """
    import torch
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return InferenceSession(onnx, options, providers=["CPUExecutionProvider"])


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    if model.shims[0]._model is None:
        raise ValueError(_PREDICTS_ONLY)


def _forward(
    model: Model, docs: List[Doc], is_train: bool, *, pooling: str, max_length: Optional[int], stride: int
) -> Tuple[List[Floats2d], Callable[[List[Floats2d]], Any]]:
    transformer = model.shims[0]._model
    limits = window_settings(max_length, stride, transformer.max_pieces)
    outputs: List[Any] = [numpy.zeros((len(doc), model.get_dim("nO")), dtype="float32") for doc in docs]
    (by_doc,) = read_windows(transformer.tokenizer, docs, [""], limits)
    for output, windows in zip(outputs, by_doc, strict=True):
        for window in windows:
            pieces = transformer.read(window.ids)
            output[window.words] = pieces[window.first] if pooling == "first" else _mean(pieces, window)

    def backprop(gradient: List[Floats2d]) -> Any:
        raise ValueError(_PREDICTS_ONLY)

    return [model.ops.asarray2f(output) for output in outputs], backprop


def _mean(pieces: NDArray[numpy.float32], window: Window) -> NDArray[numpy.float32]:
    """Compute the mean of the pieces first..last of every word."""
    counts = window.last - window.first + 1
    starts = counts.cumsum() - counts
    rows = pieces[numpy.repeat(window.first - starts, counts) + numpy.arange(counts.sum())]
    return numpy.add.reduceat(rows, starts) / counts[:, None].astype("float32")
