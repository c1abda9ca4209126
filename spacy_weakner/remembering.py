"""What layers read of Docs, remembered while the same Docs are read again and again.

Features of words, what sources say, and targets are the same at every evaluation of an objective; making them takes
longer than all arithmetic.
"""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Sequence, TypeVar

from thinc.api import Model

T = TypeVar("T")
_MEMORY = "memory"


@contextmanager
def remembered(model: Model) -> Iterator[None]:
    """Let all layers that read by `read_once` remember what they have read. Nothing may be random in it, nor change."""
    layers = list(model.walk())
    for layer in layers:
        layer.attrs[_MEMORY] = {}
    try:
        yield
    finally:
        for layer in layers:
            layer.attrs.pop(_MEMORY, None)


def read_once(layer: Model, docs: Sequence[Any], read: Callable[[], T]) -> T:
    """What a function reads of some Docs for a layer, now or before."""
    memory: Any = layer.attrs.get(_MEMORY)
    if memory is None:
        return read()
    key = (*map(id, docs),)
    if key not in memory:
        memory[key] = (docs, read())  # the Docs are kept, so that no other object gets their identities
    found: T = memory[key][1]
    return found
