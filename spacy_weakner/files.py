"""Writing files whole or not at all."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator
from uuid import uuid4

from .errors import Errors, WeaknerError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside the wanted one, and rename it when the block ends well. On an error or an
    interrupt nothing stays behind.

    path (Path): The wanted file.
    YIELDS (Path): Where to write.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def existing(path: Path, hint: str = "") -> Path:
    """Check that a path exists.

    path (Path): The path.
    hint (str): What may help to correct it; goes into the message.
    RETURNS (Path): The path.
    RAISES (WeaknerError): If it does not exist.
    """
    path = Path(path)
    if not path.exists():
        raise WeaknerError(Errors.WK100.format(path=path, hint=f" ({hint})" if hint else ""))
    return path


def read_lines(path: Path) -> Iterator[str]:
    """Stream the lines of a UTF-8 text file without their line ends; `.gz` is unpacked on the way.

    path (Path): The file.
    YIELDS (str): Its lines.
    RAISES (WeaknerError): If it does not exist, or is not UTF-8.
    """
    import gzip

    path = existing(path)
    position = 0
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file_:
        for i, raw in enumerate(file_):
            try:
                line = raw.decode("utf-8-sig" if i == 0 else "utf-8")
            except UnicodeDecodeError as error:
                raise WeaknerError(
                    Errors.WK104.format(path=path, position=position + error.start, reason=error.reason)
                ) from error
            position += len(raw)
            yield line.rstrip("\r\n")
