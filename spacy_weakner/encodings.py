"""Text that is not UTF-8: detection of its encoding, and how to convert it."""

import re
import shlex
from pathlib import Path
from typing import Optional

from .errors import Errors, WeaknerError

SAMPLE = 1 << 16  # bytes from the start of a file used to detect its encoding
_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_UNDEFINED = "\x81\x8d\x8f\x90\x9d"
_HIGH = re.compile(rb"[\x80-\xff]+")


def guess_encoding(sample: bytes) -> Optional[str]:
    """Return the encoding of text that is not valid UTF-8, as named by iconv; "UTF-8" if only some bytes are invalid;
    None if it cannot be detected."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    # Half of the bytes of European text in UTF-16 are zero, all at even or all at odd positions.
    zeros = (sample[::2].count(0), sample[1::2].count(0))
    if sum(zeros) > len(sample) / 5:
        return "UTF-16LE" if zeros[1] > zeros[0] else "UTF-16BE"
    text = sample.decode("utf-8", errors="surrogateescape")
    strays = sum("\udc80" <= character <= "\udcff" for character in text)
    if sum(character > "\x7f" for character in text) > 2 * strays:
        return "UTF-8"
    runs = _HIGH.findall(sample)
    # In languages with the Latin script, non-ASCII letters rarely stand together.
    if not runs or sum(map(len, runs)) > 2.5 * len(runs):
        return None
    return "WINDOWS-1252"


def undoubled(text: str) -> str:
    """Return a text as it was before its UTF-8 was read as Windows-1252 ("ZoÃ«" becomes "Zoë"); others unchanged."""
    return _FOREIGN.sub(_undoubled, text)


def _undoubled(match: "re.Match[str]") -> str:
    run = match[0]
    # Two such letters may also stand together by chance, as in "JOSÉ»", but hardly after one of these.
    if run[0] not in "ÂÃâ" and len(run) < 4:
        return run
    try:
        # The five bytes that Windows-1252 lacks are left as they are.
        return b"".join(c.encode("latin-1" if c in _UNDEFINED else "cp1252") for c in run).decode("utf-8")
    except UnicodeError:
        return run


def wrong_encoding(path: Path, sample: bytes, line: int, position: int, reason: str) -> WeaknerError:
    """Return the error for a file that is not UTF-8. `sample` is its beginning, unpacked, followed by the invalid line.
    `line` (from 1) and the byte `position` (from 0) locate the error."""
    encoding = guess_encoding(sample)
    name, out = shlex.quote(str(path)), shlex.quote(_beside(path))
    if encoding is None and reason == NULS:
        return WeaknerError(Errors.WK620.format(path=path, line=line, position=position, file=name, out=out))
    if encoding is None:
        found = "is not UTF-8, and its encoding cannot be detected"
        cure = "Find out its encoding ('file -i', or ask its author: GB18030, SHIFT_JIS, WINDOWS-1251, ...), then: "
        cure += convert_command(path, "NAME")
    elif encoding == "UTF-8":
        found = "is UTF-8 with some bytes of another encoding"
        cure = f"Correct the line, or remove these bytes: {convert_command(path, 'UTF-8', ' -c')}"
    else:
        found = f"is not UTF-8, but {encoding}{' or ISO-8859-1' if encoding == 'WINDOWS-1252' else ''}"
        cure = f"Convert it: {convert_command(path, encoding)}"
    return WeaknerError(
        Errors.WK104.format(path=path, found=found, line=line, position=position, reason=reason, cure=cure)
    )


NULS = "a zero byte"


def convert_command(path: Path, encoding: str, options: str = "") -> str:
    """Return the command that converts a file to UTF-8; `.gz` and `.bz2` are unpacked and packed again."""
    name, out = shlex.quote(str(path)), shlex.quote(_beside(path))
    packer = {".gz": "gzip", ".bz2": "bzip2"}.get(path.suffix.lower())
    if packer is not None:
        return f"{packer} -dc {name} | iconv{options} -f {encoding} -t UTF-8 | {packer} > {out}"
    return f"iconv{options} -f {encoding} -t UTF-8 {name} > {out}"


def _beside(path: Path) -> str:
    stem, dot, suffixes = path.name.partition(".")
    return str(path.with_name(f"{stem}-utf8{dot}{suffixes}"))
