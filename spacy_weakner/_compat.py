"""What works around other packages, in the versions that it was verified with and in no others."""

import srsly

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
