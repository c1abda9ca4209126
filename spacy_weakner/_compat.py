"""What works around other packages, in the versions that it was verified with and in no others."""

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Type

import spacy
import srsly
from spacy.language import Language

VERIFIED_SRSLY = "2.5."  # 2.5.0 and 2.5.6 search alike


class MsgpackConverters:
    """The converters of srsly's msgpack as they are at this moment, used while this is entered.

    By itself srsly searches for them among all that is registered, several times per Doc: most of the time of reading
    and writing. Under a version that this was not verified with, entering does nothing.
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
    """Let this process import a component's factory when a pipeline names it; gives what undoes it. By itself spaCy
    imports the factories of all installed packages before it makes its first pipeline; that of spacy-transformers takes
    longer than most commands."""
    factories: Any = spacy.registry._entry_point_factories
    if "get_all" in vars(factories):  # it is done already
        return lambda: None
    original: Any = vars(Language)["has_factory"]

    def has_factory(cls: Type[Language], name: str) -> bool:
        is_registered = original.__func__
        # The import registers it.
        return bool(is_registered(cls, name) or (factories.get_entry_point(name) and is_registered(cls, name)))

    def undo() -> None:
        del factories.get_all
        setattr(Language, "has_factory", original)  # noqa: B010

    factories.get_all = dict
    setattr(Language, "has_factory", classmethod(has_factory))  # noqa: B010
    return undo


@contextmanager
def unlisted_names() -> Iterator[None]:
    """Let no registry list what it holds where a name is not in it. `spacy package` looks for a name of the language
    first, for all functions of a config, and what the error would list is imported: all installed packages."""
    registries = [getattr(spacy.registry, name) for name in spacy.registry.get_registry_names()]
    changed = [registry for registry in registries if "get_all" not in vars(registry)]
    try:
        for registry in changed:
            registry.get_all = dict
        yield
    finally:
        for registry in changed:
            vars(registry).pop("get_all", None)
