"""What layers read of Docs, remembered while the same Docs are read again and again.

Features of words, and what sources say, are the same at every evaluation of an objective; making them anew takes longer
than all arithmetic.
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Tuple, TypeVar

from spacy.tokens import Doc
from thinc.api import Model

T = TypeVar("T")
_MEMORY = "memory"
# By the Docs, which are kept with it: an identity is nobody else's as long as they live.
_Memory = Dict[Tuple[int, ...], Tuple[List[Doc], Any]]


@contextmanager
def remembered(model: Model) -> Iterator[None]:
    """Let all layers that read by `read_once` remember what they have read. Nothing may be random in it, nor change.

    model (Model): The model.
    """
    layers = list(model.walk())
    for layer in layers:
        layer.attrs[_MEMORY] = {}
    try:
        yield
    finally:
        for layer in layers:
            layer.attrs.pop(_MEMORY, None)


def read_once(layer: Model, docs: List[Doc], read: Callable[[], T]) -> T:
    """What a layer reads of some Docs.

    layer (Model): The layer.
    docs (List[Doc]): The Docs.
    read (Callable[[], T]): Reads them.
    RETURNS (T): What it has read, now or before.
    """
    memory: Any = layer.attrs.get(_MEMORY)
    if memory is None:
        return read()
    key = tuple(map(id, docs))
    if key not in memory:
        memory[key] = (docs, read())
    found: T = memory[key][1]
    return found
