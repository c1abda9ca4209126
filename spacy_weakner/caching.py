"""Cache of the values that layers read from Docs, for repeated reading of the same Docs.

Features of words, labels of sources, and targets are the same at each evaluation of an objective, and computing them
takes longer than all arithmetic.
"""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Sequence, TypeVar

from thinc.api import Model

T = TypeVar("T")
_MEMORY = "memory"


@contextmanager
def caching_outputs(model: Model) -> Iterator[None]:
    """Make all layers that read by `read_once` cache the results. These must be deterministic and must not change."""
    layers = list(model.walk())
    for layer in layers:
        layer.attrs[_MEMORY] = {}
    try:
        yield
    finally:
        for layer in layers:
            layer.attrs.pop(_MEMORY, None)


def read_once(layer: Model, docs: Sequence[Any], read: Callable[[], T]) -> T:
    """Return the result of a function that reads Docs for a layer, from the cache if possible."""
    memory: Any = layer.attrs.get(_MEMORY)
    if memory is None:
        return read()
    key = (*map(id, docs),)
    if key not in memory:
        memory[key] = (docs, read())  # the Docs are kept, so that no other object gets their ids
    found: T = memory[key][1]
    return found
