"""A Transformer that reads the question and the text together (Li et al. 2020)."""

from functools import partial
from itertools import pairwise
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, PyTorchGradScaler, PyTorchWrapper_v3
from thinc.types import Floats3d
from thinc.util import get_torch_default_device

from ..batching import group_by_length
from ..errors import Errors, WeaknerError, check_range
from ..torch_io import module_from_bytes, module_to_bytes
from .queried import Queried, spaced

# Pieces that are read at once, and those of them that a question must leave to the text, at least.
MIN_LENGTH, MIN_ROOM = 16, 8


class WindowSettings(NamedTuple):
    """How much is read together; the settings of `build_query_context_encoder`."""

    max_length: int
    stride: int
    batch_pieces: int


class Window(NamedTuple):
    """A question with a text, or a part of it, in pieces.

    ids (List[int]): The pieces, special ones included.
    types (List[int]): 0 for the question, 1 for the text, as BERT wants to know.
    words (NDArray[numpy.int64]): Words of the text that are read off this window.
    first (NDArray[numpy.int64]): Position of each one's first piece.
    last (NDArray[numpy.int64]): Position of its last piece.
    """

    ids: List[int]
    types: List[int]
    words: NDArray[numpy.int64]
    first: NDArray[numpy.int64]
    last: NDArray[numpy.int64]


def build_query_context_encoder(
    name: str, max_length: int = 256, stride: int = 64, batch_pieces: int = 8000, mixed_precision: bool = False
) -> Model[Queried, List[Floats3d]]:
    """Read every question with every text as a pair, so that attention goes between them. A word's vector is that of
    its first piece, followed by that of its last. Registered as `spacy_weakner.QueryContextEncoder.v1`.

    All pairs of a batch are sorted by length and read together. Texts that are too long are read in windows that
    overlap; each word is read off the window in which it stands farthest from an edge.

    name (str): The encoder to begin with: a Hugging Face folder or name, with weights as safetensors. (A stored
        component does not need it any more.)
    max_length (int): Pieces that are read at once: question, text and special ones.
    stride (int): Pieces by which windows overlap; at most half of what the question leaves to the text.
    batch_pieces (int): Pieces that are read together, padding included: bounds the memory.
    mixed_precision (bool): Compute in half precision where torch finds it safe; no effect on a CPU.
    RETURNS (Model[Queried, List[Floats3d]]): Per Doc (n_tokens, n_queries, 2 * width); zeros for tokens without pieces,
        such as white space.
    RAISES (WeaknerError): For settings that cannot be.
    """
    check_range("max_length", max_length, MIN_LENGTH, None)
    check_range("stride", stride, 0, max_length // 2)
    check_range("batch_pieces", batch_pieces, 1, None)
    mixed = mixed_precision and get_torch_default_device().type == "cuda"
    transformer: Model[Any, Any] = PyTorchWrapper_v3(
        None,  # type: ignore[arg-type]
        convert_inputs=_convert_inputs,
        mixed_precision=mixed,
        grad_scaler=PyTorchGradScaler(mixed),
        serialize_model=module_to_bytes,
        deserialize_model=_deserialize,
    )
    # Not as attributes of the model: these are stored, and would win over the config that loads it.
    limits = WindowSettings(max_length, stride, batch_pieces)
    return Model(
        "query_context_encoder",
        partial(_forward, limits=limits),
        init=partial(_init, name=name),
        layers=[transformer],
    )


def _init(model: Model, X: Any = None, Y: Any = None, *, name: str) -> None:
    shim = model.layers[0].shims[0]
    if shim._model is not None:
        return
    from .torch_query_context import load_reader

    shim._model = load_reader(name).to(get_torch_default_device())


def _forward(
    model: Model, asked: Queried, is_train: bool, *, limits: WindowSettings
) -> Tuple[List[Floats3d], Callable[[List[Floats3d]], Any]]:
    transformer: Any = model.layers[0]
    ops: Any = model.ops
    module = transformer.shims[0]._model
    check_range("max_length", limits.max_length, MIN_LENGTH, module.max_pieces)
    texts = [_text(doc) for doc in asked.docs]
    windows, owners = [], []
    for q, query in enumerate(asked.queries):
        for number, parts in enumerate(_read(module, query, texts, limits)):
            windows.extend(parts)
            owners.extend([(number, q)] * len(parts))
    n_queries, width = len(asked.queries), 2 * module.width
    offsets = numpy.cumsum([0, *map(len, asked.docs)])
    # All vectors in one array: one index for a batch, since each index of its own would be copied to the device.
    rows: Any = ops.alloc2f(int(offsets[-1]) * n_queries, width)
    backs = []
    for batch in group_by_length([len(window.ids) for window in windows], limits.batch_pieces):
        vectors, back = transformer([windows[i] for i in batch], is_train)
        places = [(offsets[owners[i][0]] + windows[i].words) * n_queries + owners[i][1] for i in batch]
        index = ops.asarray1i(numpy.concatenate(places).astype("int32"))
        rows[index] = vectors
        backs.append((index, back))

    def backprop(gradient: List[Any]) -> Any:
        given = [rows_of_doc.reshape(-1, width) for rows_of_doc in gradient]
        whole = ops.xp.concatenate(given) if given else rows
        for index, back in backs:
            back(whole[index])
        return asked.docs

    shapes = [(len(doc), n_queries, width) for doc in asked.docs]
    return [
        rows[low * n_queries : high * n_queries].reshape(shape)
        for (low, high), shape in zip(pairwise(offsets.tolist()), shapes, strict=True)
    ], backprop


class Text(NamedTuple):
    """A text as the tokenizer wants it.

    words (List[str]): Its tokens that are no white space, with the spaces before them.
    tokens (NDArray[numpy.int64]): Which tokens these are.
    """

    words: List[str]
    tokens: NDArray[numpy.int64]


def _text(doc: Doc) -> Text:
    kept = [token.i for token in doc if not token.is_space]
    return Text([spaced(doc, i) for i in kept], numpy.asarray(kept, dtype="int64"))


def _read(module: Any, query: str, texts: List[Text], limits: WindowSettings) -> List[List[Window]]:
    """A question with every text; a list of windows for each."""
    question, tokenizer = [f" {word}" for word in query.split()], module.tokenizer
    used = len(tokenizer.encode(question, is_pretokenized=True, add_special_tokens=False).ids)
    room = limits.max_length - tokenizer.num_special_tokens_to_add(True) - used
    if room < MIN_ROOM:
        raise WeaknerError(Errors.WK032.format(query=query[:50], max_length=limits.max_length))
    truncating = module.truncating_tokenizer(limits.max_length, min(limits.stride, room // 2))
    encodings = truncating.encode_batch([(question, text.words) for text in texts], is_pretokenized=True)
    parts = [_parts([one, *one.overflowing], text.tokens) for one, text in zip(encodings, texts, strict=True)]
    return [[window for window in own if len(window.words)] for own in parts]


def _parts(encodings: List[Any], tokens: NDArray[numpy.int64]) -> List[Window]:
    found = []
    for encoding in encodings:
        positions = numpy.flatnonzero([own == 1 for own in encoding.sequence_ids])
        words = tokens[[encoding.word_ids[i] for i in positions]]
        own, first, counts = numpy.unique(words, return_index=True, return_counts=True)
        found.append((encoding, own, positions[first], positions[first] + counts - 1, counts, positions))
    if len(found) == 1:
        ((encoding, words, first, last, _, _),) = found
        return [Window(encoding.ids, encoding.type_ids, words, first, last)]
    return _best_windows(found)


def _best_windows(found: List[Any]) -> List[Window]:
    """Of every word the window that has most of its pieces, and of these the one in which it stands farthest from an
    edge."""
    best: Dict[int, Tuple[int, int, int]] = {}
    for number, (_, words, first, last, counts, positions) in enumerate(found):
        margins = numpy.minimum(first - positions[0], positions[-1] - last)
        for word, count, margin in zip(words.tolist(), counts.tolist(), margins.tolist(), strict=True):
            best[word] = max(best.get(word, (0, -1, 0)), (count, margin, -number))
    result = []
    for number, (encoding, words, first, last, _, _) in enumerate(found):
        kept = numpy.flatnonzero([best[word][2] == -number for word in words.tolist()])
        result.append(Window(encoding.ids, encoding.type_ids, words[kept], first[kept], last[kept]))
    return result


def _convert_inputs(
    model: Model, windows: List[Window], is_train: bool
) -> Tuple[ArgsKwargs, Callable[[ArgsKwargs], List[Window]]]:
    import torch

    module = model.shims[0]._model
    device = next(module.parameters()).device
    length = max(len(window.ids) for window in windows)
    ids = numpy.full((len(windows), length), module.padding, dtype="int64")
    types, mask = numpy.zeros_like(ids), numpy.zeros_like(ids)
    for row, window in enumerate(windows):
        n = len(window.ids)
        ids[row, :n], types[row, :n], mask[row, :n] = window.ids, window.types, 1
    first = numpy.concatenate([row * length + window.first for row, window in enumerate(windows)])
    last = numpy.concatenate([row * length + window.last for row, window in enumerate(windows)])
    tensors = tuple(torch.as_tensor(array, device=device) for array in (ids, types, mask, first, last))
    return ArgsKwargs(args=tensors, kwargs={}), lambda gradient: windows


def _make(**kwargs: Any) -> Any:
    from .torch_query_context import make_reader

    return make_reader(**kwargs)


def _deserialize(module: Any, data: bytes, device: Any) -> Any:
    return module_from_bytes(data, _make, device)
