"""Workarounds for other packages."""

import os
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Type

import spacy
import srsly
from spacy.language import Language

VERIFIED_SRSLY = "2.5."  # 2.5.0 and 2.5.6 search in the same way
# oneDNN's variable, and that of torch's interface to it.
SHAPE_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


class MsgpackConverters:
    """The current converters of srsly's msgpack, used while the context is entered.

    By itself, srsly searches for them among all registered functions, several times per Doc, which takes most of the
    time of reading and writing. With an unverified version of srsly, entering does nothing.
    """

    def __init__(self) -> None:
        verified = srsly.__version__.startswith(VERIFIED_SRSLY)
        registries = (srsly.msgpack_encoders, srsly.msgpack_decoders) if verified else ()
        self._found = [(registry, registry.get_all()) for registry in registries]

    def __enter__(self) -> None:
        for registry, found in self._found:
            registry.get_all = found.copy

    def __exit__(self, *_: object) -> None:
        for registry, _found in self._found:
            vars(registry).pop("get_all", None)


def import_factories_by_name() -> Callable[[], None]:
    """Make this process import a component's factory when a pipeline names it; return a function that undoes it. By
    itself, spaCy imports the factories of all installed packages before it creates its first pipeline; the import of
    spacy-transformers takes longer than most commands."""
    factories: Any = spacy.registry._entry_point_factories
    if "get_all" in vars(factories):  # already done
        return lambda: None
    original: Any = vars(Language)["has_factory"]

    def has_factory(cls: Type[Language], name: str) -> bool:
        is_registered = original.__func__
        # Getting the entry point imports it, which registers it.
        return bool(is_registered(cls, name) or (factories.get_entry_point(name) and is_registered(cls, name)))

    def undo() -> None:
        del factories.get_all
        setattr(Language, "has_factory", original)  # noqa: B010

    factories.get_all = dict
    setattr(Language, "has_factory", classmethod(has_factory))  # noqa: B010
    return undo


def limit_shape_caches() -> None:
    """Make torch keep the bfloat16 kernels of 16 matrix shapes on a CPU. By default, it keeps those of 1,024 shapes in
    each of two caches, and batches of text have that many: gigabytes of scratch memory. An environment variable that is
    set is left alone. After the first bfloat16 product of the process, this has no effect."""
    for name in SHAPE_CACHES:
        os.environ.setdefault(name, "16")


@contextmanager
def unlisted_names() -> Iterator[None]:
    """Prevent registries from listing their contents if a name is not found. `spacy package` first looks up a name of
    the language for all functions of a config, and the list in the error would import all installed packages."""
    registries = [getattr(spacy.registry, name) for name in spacy.registry.get_registry_names()]
    changed = [registry for registry in registries if "get_all" not in vars(registry)]
    try:
        for registry in changed:
            registry.get_all = dict
        yield
    finally:
        for registry in changed:
            vars(registry).pop("get_all", None)
