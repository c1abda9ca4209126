"""Writing files whole or not at all."""

import bz2
import gzip
import json
import os
import re
import sys
import zlib
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterable, Iterator, List, Tuple, Union

from .encodings import NULS, SAMPLE, wrong_encoding
from .errors import Errors, WeaknerError
from .scratch import ASIDE, scratch_folder


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path for a file or a folder, of the same name, and put it in the place of the wanted one when
    the block ends well. What stands there already is replaced. On an error or an interrupt nothing stays behind; what
    a killed process leaves is found by `scratch.remove_leftovers`.

    path (Path): The wanted file or folder. Links are followed.
    YIELDS (Path): Where to write.
    RAISES (WeaknerError): If the disk is full, or the place cannot be written to.
    """
    path = Path(path).resolve()
    with scratch_folder(path) as folder:
        temporary = folder / path.name
        yield temporary
        replace(temporary, path, folder)


def replace(new: Path, path: Path, folder: Path) -> None:
    """Put a file or a folder in the place of another, which is not seen half removed.

    new (Path): The new one.
    path (Path): Where it goes.
    folder (Path): A scratch folder beside, for the old one.
    """
    if new.is_dir() and path.exists():
        os.rename(path, folder / f"{path.name}{ASIDE}")
    os.replace(new, path)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, the same bytes on every system."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


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


def visible_files(folder: Path, suffix: str = "") -> List[Path]:
    """List files. As in spaCy, what begins with a dot or lies in a folder that does is passed over: another run may be
    writing it, or was killed while it did.

    folder (Path): The folder; it is searched with its subfolders.
    suffix (str): How their names end.
    RETURNS (List[Path]): The files, sorted by name.
    """
    found: List[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "."]
        found += [Path(root, name) for name in names if name[0] != "." and name.endswith(suffix)]
    return sorted(path for path in found if path.is_file())


def expand_home(path: str) -> Path:
    """Put the folder of a user in the place of `~` or `~user`.

    path (str): The path.
    RETURNS (Path): The path; as it is, if nothing is known of such a user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def check_output(inputs: Iterable[Path], outputs: Iterable[Path]) -> None:
    """Check that no output is an input, lies in one, or holds one.

    inputs (Iterable[Path]): Files and folders that are read.
    outputs (Iterable[Path]): Files and folders that will be written; they need not exist.
    RAISES (WeaknerError): If one touches an input.
    """
    sources = {path.resolve(): path for path in inputs}
    above = {parent: path for source, path in sources.items() for parent in source.parents}
    for output in outputs:
        target = output.resolve()
        touched = next((sources[path] for path in (target, *target.parents) if path in sources), above.get(target))
        if touched is not None:
            raise WeaknerError(Errors.WK304.format(path=output, input=touched))


@contextmanager
def open_packed(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to read; `.gz` and `.bz2` are unpacked on the way.

    path (Path): The file.
    YIELDS (IO[bytes]): What it holds.
    RAISES (WeaknerError): If it does not exist, is a folder, or turns out to be damaged.
    """
    path = existing(path)
    if path.is_dir():
        raise WeaknerError(Errors.WK109.format(path=path))
    try:
        unpack = _UNPACKERS.get(path.suffix.lower())
        with path.open("rb") if unpack is None else unpack(path) as file_:
            yield file_
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure="Make or download it again")) from error
    except OSError as error:
        # Others (no permission, a broken disk) name the path and say nothing about the contents. Of damaged contents
        # bz2 raises the class itself, without a number.
        if type(error) is not OSError or error.errno is not None:
            raise
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure="Make or download it again")) from error


def read_lines(path: Path) -> Iterator[str]:
    """Stream the lines of a UTF-8 text file without their line ends; `.gz` and `.bz2` are unpacked on the way.

    path (Path): The file.
    YIELDS (str): Its lines.
    RAISES (WeaknerError): If it does not exist, is a folder, is not UTF-8, or is damaged.
    """
    position = 0
    with open_packed(path) as file_:
        for number, raw in enumerate(file_, start=1):
            yield decode_line(raw, path, number, position)
            position += len(raw)


def decode_line(raw: bytes, path: Path, number: int, position: int) -> str:
    """Decode a line of a UTF-8 text file.

    raw (bytes): The line.
    path (Path): The file.
    number (int): The line's number, from 1.
    position (int): Where in the file it begins.
    RETURNS (str): The line without its line end.
    RAISES (WeaknerError): If it is not UTF-8, with the encoding that the file seems to have.
    """
    try:
        line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        offset, reason = error.start, error.reason
        raise wrong_encoding(path, _sample(path, raw), number, position + offset, reason) from error
    if "\0" in line:  # text in UTF-16 without a mark can be valid UTF-8
        raise wrong_encoding(path, _sample(path, raw), number, position + raw.index(0), NULS)
    return line.rstrip("\r\n")


def parse_json(text: Union[str, bytes], **hooks: Any) -> Any:
    """Parse JSON. Whatever is wrong with it is one kind of error.

    text (Union[str, bytes]): The JSON.
    **hooks (Any): See `json.loads`.
    RETURNS (Any): The value; all strings in it can be encoded, and all integers be made floats.
    RAISES (json.JSONDecodeError): If it is not JSON, is nested too deeply, or holds a number of hundreds of digits or a
        half of a surrogate pair, which JSON can spell.
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        value = _decoder(tuple(hooks.items())).decode(text)
        if _HALVES.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        if _DIGITS.search(text):
            json.loads(text, **{**hooks, "parse_int": parse_integer})
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise json.JSONDecodeError("nested too deeply", "", 0) from error
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        reason = f"not UTF-8, or half of a surrogate pair in a string ({error.reason})"
        raise json.JSONDecodeError(reason, "", 0) from error
    except WeaknerError:
        raise
    except ValueError as error:  # Python refuses to read integers of thousands of digits
        hooked = bool(hooks) and "digits" not in str(error)
        raise json.JSONDecodeError(str(error) if hooked else "a number has too many digits", "", 0) from error
    return value


@lru_cache
def _decoder(hooks: Tuple[Tuple[str, Any], ...]) -> json.JSONDecoder:
    return json.JSONDecoder(**dict(hooks))


@contextmanager
def reading_stored(name: str) -> Iterator[None]:
    """Tell of which component it is that something stored is damaged.

    name (str): Name of the component.
    RAISES (WeaknerError): In place of the errors of the readers of JSON, msgpack and weights.
    """
    try:
        yield
    except WeaknerError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WeaknerError(Errors.WK800.format(name=name, reason=str(error) or type(error).__name__)) from error


def read_object(path: Path, what: str) -> Any:
    """Read a JSON or TOML file.

    path (Path): The file.
    what (str): What it should hold, for the message if it is something else, or an object of JSON has a name twice.
    RETURNS (Any): What it holds.
    RAISES (WeaknerError): If so, or it cannot be read.
    """
    text = "\n".join(read_lines(path))
    try:
        if path.suffix not in (".json", ".toml"):
            raise ValueError("its name has to end in .json or .toml")
        return _parse_toml(text) if path.suffix == ".toml" else parse_json(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason, cure = " ".join(str(error).split()), f"Give {what}, as JSON or TOML"
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure=cure)) from error


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name stands there twice: {', '.join(name for name, _ in pairs)}")
    return found


def parse_integer(digits: str) -> int:
    """Read an integer of JSON.

    digits (str): How it is written.
    RETURNS (int): The number; it can be made a float.
    RAISES (ValueError): If it cannot.
    """
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def is_text(value: Any) -> bool:
    """Whether something is a string that a Doc can hold: one without halves of surrogate pairs.

    value (Any): What was read.
    """
    return isinstance(value, str) and _HALF.search(value) is None


def _sample(path: Path, line: bytes) -> bytes:
    with open_packed(path) as file_:
        return file_.read(SAMPLE) + line


# Only then can a string hold a half.
_HALVES = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_DIGITS = 300
_DIGITS = re.compile(rf"[0-9]{{{_MOST_DIGITS}}}")
_HALF = re.compile("[\ud800-\udfff]")
_UNPACKERS: Dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def _parse_toml(text: str) -> Any:
    # Imported here: for Python 3.10 it is another package.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)
