"""A Transformer that reads the question and the text together (Li et al. 2020)."""

from functools import partial
from threading import Lock
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, PyTorchWrapper_v3
from thinc.types import Floats3d
from thinc.util import get_torch_default_device

from ..batching import group_by_length
from ..errors import Errors, WeaknerError, check_range
from ..torch_io import module_from_bytes, module_to_bytes
from .queried import Queried
from .spacing import spaced

# Pieces that are read at once, and those of them that a question must leave to the text, at least.
MIN_LENGTH, MIN_ROOM = 16, 8
# How a tokenizer truncates is its state, which threads share.
_TOKENIZING = Lock()


class Limits(NamedTuple):
    """How much is read together; the settings of `build_query_context_encoder`."""

    max_length: int
    stride: int
    batch_pieces: int


class Reading(NamedTuple):
    """A question with a text, or a part of it, in pieces.

    ids (List[int]): The pieces, special ones included.
    types (List[int]): 0 for the question, 1 for the text, as BERT wants to know.
    words (NDArray[numpy.int64]): Words of the text that are read off this reading.
    first (NDArray[numpy.int64]): Position of each one's first piece.
    last (NDArray[numpy.int64]): Position of its last piece.
    """

    ids: List[int]
    types: List[int]
    words: NDArray[numpy.int64]
    first: NDArray[numpy.int64]
    last: NDArray[numpy.int64]


def build_query_context_encoder(
    name: str, max_length: int = 256, stride: int = 64, batch_pieces: int = 8000
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
    RETURNS (Model[Queried, List[Floats3d]]): Per Doc (n_tokens, n_queries, 2 * width); zeros for tokens without pieces,
        such as white space.
    RAISES (WeaknerError): For settings that cannot be.
    """
    check_range("max_length", max_length, MIN_LENGTH, None)
    check_range("stride", stride, 0, max_length // 2)
    check_range("batch_pieces", batch_pieces, 1, None)
    transformer: Model[Any, Any] = PyTorchWrapper_v3(
        None,  # type: ignore[arg-type]
        convert_inputs=_convert_inputs,
        serialize_model=module_to_bytes,
        deserialize_model=_deserialize,
    )
    # Not as attributes of the model: these are stored, and would win over the config that loads it.
    limits = Limits(max_length, stride, batch_pieces)
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
    model: Model, asked: Queried, is_train: bool, *, limits: Limits
) -> Tuple[List[Floats3d], Callable[[List[Floats3d]], Any]]:
    transformer, ops = model.layers[0], model.ops
    module = transformer.shims[0]._model
    check_range("max_length", limits.max_length, MIN_LENGTH, module.max_pieces)
    texts = [_text(doc) for doc in asked.docs]
    readings, owners = [], []
    for q, query in enumerate(asked.queries):
        for number, parts in enumerate(_read(module.tokenizer, query, texts, limits)):
            readings.extend(parts)
            owners.extend([(number, q)] * len(parts))
    n_queries = len(asked.queries)
    outputs: List[Any] = [ops.alloc3f(len(doc), n_queries, 2 * module.width) for doc in asked.docs]
    backs = []
    for batch in group_by_length([len(reading.ids) for reading in readings], limits.batch_pieces):
        vectors, back = transformer([readings[i] for i in batch], is_train)
        # Where the rows of the batch belong.
        places = [(owners[i], readings[i].words) for i in batch]
        borders = numpy.cumsum([0, *(len(words) for _, words in places)]).tolist()
        for ((number, q), words), low, high in zip(places, borders, borders[1:], strict=False):
            outputs[number][words, q] = vectors[low:high]
        backs.append((places, back))

    def backprop(gradient: List[Any]) -> Any:
        for places, back in backs:
            back(ops.xp.concatenate([gradient[number][words, q] for (number, q), words in places]))
        return asked.docs

    return outputs, backprop


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


def _read(tokenizer: Any, query: str, texts: List[Text], limits: Limits) -> List[List[Reading]]:
    """A question with every text; a list of parts for each."""
    question = [f" {word}" for word in query.split()]
    with _TOKENIZING:
        tokenizer.no_truncation()
        used = len(tokenizer.encode(question, is_pretokenized=True, add_special_tokens=False).ids)
        room = limits.max_length - tokenizer.num_special_tokens_to_add(True) - used
        if room < MIN_ROOM:
            raise WeaknerError(Errors.WK032.format(query=query[:50], max_length=limits.max_length))
        tokenizer.enable_truncation(
            limits.max_length, stride=min(limits.stride, room // 2), strategy="only_second", direction="right"
        )
        encodings = tokenizer.encode_batch([(question, text.words) for text in texts], is_pretokenized=True)
    parts = [_parts([one, *one.overflowing], text.tokens) for one, text in zip(encodings, texts, strict=True)]
    return [[reading for reading in own if len(reading.words)] for own in parts]


def _parts(encodings: List[Any], tokens: NDArray[numpy.int64]) -> List[Reading]:
    found = []
    for encoding in encodings:
        positions = numpy.flatnonzero([own == 1 for own in encoding.sequence_ids])
        words = tokens[[encoding.word_ids[i] for i in positions]]
        own, first, counts = numpy.unique(words, return_index=True, return_counts=True)
        found.append((encoding, own, positions[first], positions[first] + counts - 1, counts, positions))
    if len(found) == 1:
        ((encoding, words, first, last, _, _),) = found
        return [Reading(encoding.ids, encoding.type_ids, words, first, last)]
    return _best_windows(found)


def _best_windows(found: List[Any]) -> List[Reading]:
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
        result.append(Reading(encoding.ids, encoding.type_ids, words[kept], first[kept], last[kept]))
    return result


def _convert_inputs(
    model: Model, readings: List[Reading], is_train: bool
) -> Tuple[ArgsKwargs, Callable[[ArgsKwargs], List[Reading]]]:
    import torch

    module = model.shims[0]._model
    device = next(module.parameters()).device
    length = max(len(reading.ids) for reading in readings)
    ids = numpy.full((len(readings), length), module.padding, dtype="int64")
    types, mask = numpy.zeros_like(ids), numpy.zeros_like(ids)
    for row, reading in enumerate(readings):
        n = len(reading.ids)
        ids[row, :n], types[row, :n], mask[row, :n] = reading.ids, reading.types, 1
    first = numpy.concatenate([row * length + reading.first for row, reading in enumerate(readings)])
    last = numpy.concatenate([row * length + reading.last for row, reading in enumerate(readings)])
    tensors = tuple(torch.as_tensor(array, device=device) for array in (ids, types, mask, first, last))
    return ArgsKwargs(args=tensors, kwargs={}), lambda gradient: readings


def _make(**kwargs: Any) -> Any:
    from .torch_query_context import make_reader

    return make_reader(**kwargs)


def _deserialize(module: Any, data: bytes, device: Any) -> Any:
    return module_from_bytes(data, _make, device)
