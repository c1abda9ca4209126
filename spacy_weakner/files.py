"""Reading and writing of files. Files are written whole or not at all."""

import bz2
import gzip
import json
import os
import re
import stat
import sys
import zlib
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterable, Iterator, List, Tuple, Union

from .encodings import NULS, SAMPLE, wrong_encoding
from .errors import Errors, WeaknerError
from .scratch import ASIDE, resolved, scratch_folder

# In bytes. What is longer is no row or text, but perhaps a packed file made to fill the memory.
LONGEST_LINE = 100_000_000


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path with the same name, and move the file or folder there to the target path if the block ends
    without an error. Existing targets are replaced; links are followed. After an error or an interrupt, nothing is left
    behind; `scratch.remove_leftovers` finds the leftovers of a killed process."""
    path = resolved(path)
    _check_special(path)
    with scratch_folder(path) as folder:
        temporary = folder / path.name
        yield temporary
        replace(temporary, path, folder)


def replace(new: Path, path: Path, folder: Path) -> None:
    """Replace a path, which keeps its owner and permissions. A former folder is moved to the scratch folder first, so
    that it is never seen half removed."""
    if path.exists():
        there = path.stat()
        for owner in ((there.st_uid, -1), (-1, there.st_gid)):
            with suppress(AttributeError, OSError):  # Windows has no owners, and not every user may set them
                os.chown(new, *owner)
        with suppress(OSError):  # not every file system has permissions
            os.chmod(new, stat.S_IMODE(there.st_mode))
    if new.is_dir() and path.exists():
        os.rename(path, folder / f"{path.name}{ASIDE}")
    os.replace(new, path)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all, with the same bytes on all systems."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def existing(path: Path, hint: str = "") -> Path:
    """Check that a path exists, and can be read again and again. `hint` may help to correct it."""
    path = Path(path)
    if not path.exists():
        hint = "the link leads nowhere, or in a circle" if path.is_symlink() else hint
        raise WeaknerError(Errors.WK100.format(path=path, hint=f" ({hint})" if hint else ""))
    if is_special(path):
        raise WeaknerError(Errors.WK786.format(path=path))
    return path


def is_special(path: Path) -> bool:
    """Return True for a pipe (such as `<(zcat ...)` in a shell) or a device."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _check_special(output: Path) -> None:
    if is_special(output):
        expected = "a file or a folder. It is a pipe or a device. Write a file, and print or copy it"
        raise WeaknerError(Errors.WK305.format(path=output, expected=expected))


def visible_files(folder: Path, suffix: str = "") -> List[Path]:
    """Return files, sorted. As in spaCy, files and folders whose name begins with a dot are skipped: another run may be
    writing them, or was killed while writing."""
    found: List[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "."]
        found += [Path(root, name) for name in names if name[0] != "." and name.endswith(suffix)]
    return sorted(path for path in found if path.is_file())


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def expand_home(path: str) -> Path:
    """Expand `~` and `~user` to the user's home folder, if there is such a user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def check_output(inputs: Iterable[Path], outputs: Iterable[Path]) -> None:
    """Check that no output is an input, lies in one, or contains one."""
    sources = {resolved(path): path for path in inputs}
    above = {parent: path for source, path in sources.items() for parent in source.parents}
    for output in outputs:
        target = resolved(output)
        _check_special(Path(output))
        touched = next((sources[path] for path in (target, *target.parents) if path in sources), above.get(target))
        if touched is not None:
            raise WeaknerError(Errors.WK304.format(path=output, input=touched))


def unpacked_name(path: Path) -> Path:
    """Return the name of a file in lower case, without the suffixes of a packed one."""
    return Path(path.name.lower().removesuffix(".gz").removesuffix(".bz2"))


@contextmanager
def open_packed(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; `.gz` and `.bz2` are unpacked on the fly."""
    path = existing(path)
    if path.is_dir():
        raise WeaknerError(Errors.WK109.format(path=path))
    try:
        unpack = _UNPACKERS.get(path.suffix.lower())
        with path.open("rb") if unpack is None else unpack(path) as file_:
            yield file_
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure="Create or download it again")) from error
    except OSError as error:
        # Other errors (no permission, a broken disk) name the path and are not about the contents. For damaged
        # contents, bz2 raises an OSError itself, without an error number.
        if type(error) is not OSError or error.errno is not None:
            raise
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure="Create or download it again")) from error


def read_lines(path: Path) -> Iterator[str]:
    """Stream the lines of a UTF-8 text file without line ends; `.gz` and `.bz2` are unpacked on the fly."""
    with open_packed(path) as file_:
        for _, line in decoded_lines(file_, path):
            yield line


def decoded_lines(file_: IO[bytes], path: Path) -> Iterator[Tuple[int, str]]:
    """Stream the lines of an open file, with their numbers (from 1)."""
    position = 0
    for number, raw in enumerate(iter(partial(file_.readline, LONGEST_LINE), b""), start=1):
        if len(raw) == LONGEST_LINE:
            raise too_long(path, f"line {number}")
        yield number, decode_line(raw, path, number, position)
        position += len(raw)


def too_long(path: Path, place: str) -> WeaknerError:
    """Return the error for a part of a file that is not read into memory."""
    reason = f"longer than {LONGEST_LINE:,} bytes. Write one document per line (a JSON array: jq -c '.[]')"
    return WeaknerError(Errors.WK103.format(path=path, place=place, reason=reason))


def decode_line(raw: bytes, path: Path, number: int, position: int) -> str:
    """Decode a line of a UTF-8 text file. Its number (from 1) and position are for the message."""
    try:
        line = raw.decode("utf-8").removeprefix("\ufeff")  # also where files were joined
    except UnicodeDecodeError as error:
        offset, reason = error.start, error.reason
        raise wrong_encoding(path, _sample(path, raw), number, position + offset, reason) from error
    if "\0" in line:  # text in UTF-16 without a byte order mark can be valid UTF-8
        raise wrong_encoding(path, _sample(path, raw), number, position + raw.index(0), NULS)
    return line.rstrip("\r\n")


def parse_json(text: Union[str, bytes], **hooks: Any) -> Any:
    """Parse JSON. Any error raises a `json.JSONDecodeError`, including too deep nesting, numbers of hundreds of digits,
    and halves of surrogate pairs, which JSON can represent. (All strings can be encoded, and all integers converted to
    floats.)"""
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        value = _decoder(tuple(hooks.items())).decode(text)
        if _HALVES.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        if _DIGITS.search(text):
            json.loads(text, **{**hooks, "parse_int": _parse_integer})
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise json.JSONDecodeError("nested too deeply", "", 0) from error
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        reason = f"not UTF-8, or half of a surrogate pair in a string ({error.reason})"
        raise json.JSONDecodeError(reason, "", 0) from error
    except WeaknerError:
        raise
    except ValueError as error:  # Python refuses to parse integers with thousands of digits
        hooked = bool(hooks) and "digits" not in str(error)
        raise json.JSONDecodeError(str(error) if hooked else "a number has too many digits", "", 0) from error
    return value


def parse_value(text: str) -> Any:
    """Parse a value of a command line: what is not JSON is text."""
    try:
        return parse_json(text)
    except ValueError:
        return text


@lru_cache
def _decoder(hooks: Tuple[Tuple[str, Any], ...]) -> json.JSONDecoder:
    return json.JSONDecoder(**dict(hooks))


@contextmanager
def reading_stored(name: str) -> Iterator[None]:
    """Name the component in errors about damaged stored data."""
    try:
        yield
    except WeaknerError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise WeaknerError(Errors.WK800.format(name=name, reason=str(error) or type(error).__name__)) from error


@contextmanager
def reading_made(path: Path, command: str, program: str = "spacy weakner") -> Iterator[None]:
    """Name the file, and the command that makes it, if its JSON has an unexpected form."""
    try:
        yield
    except WeaknerError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        cure = f"Run '{program} {command}' again"
        raise WeaknerError(Errors.WK206.format(path=path, reason=error, cure=cure)) from error


def read_object(path: Path, what: str) -> Any:
    """Read a JSON or TOML file without duplicate names in JSON objects. `what` is the expected contents, for errors."""
    text = "\n".join(read_lines(path))
    try:
        if path.suffix not in (".json", ".toml"):
            raise ValueError("its name must end in .json or .toml")
        return _parse_toml(text) if path.suffix == ".toml" else parse_json(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason, cure = " ".join(str(error).split()), f"Give {what}, as JSON or TOML"
        raise WeaknerError(Errors.WK206.format(path=path, reason=reason, cure=cure)) from error


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name occurs twice among {', '.join(name for name, _ in pairs)}")
    return found


def is_text(value: Any) -> bool:
    """Return True for a string that a Doc can hold: one without halves of surrogate pairs."""
    return isinstance(value, str) and _HALF.search(value) is None


def _sample(path: Path, line: bytes) -> bytes:
    with open_packed(path) as file_:
        return file_.read(SAMPLE) + line


# Only with such an escape can a string hold a half.
_HALVES = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_DIGITS = 300
_DIGITS = re.compile(rf"[0-9]{{{_MOST_DIGITS}}}")
_HALF = re.compile("[\ud800-\udfff]")
_UNPACKERS: Dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open}


def _parse_integer(digits: str) -> int:
    """Parse a JSON integer that can be converted to a float."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def _parse_toml(text: str) -> Any:
    # Imported here: for Python 3.10, it is a separate package.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)
