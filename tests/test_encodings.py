"""Files that are not UTF-8: their encoding is named, and the command in the message converts them."""

import bz2
import gzip
import shutil
import subprocess

import pytest

from spacy_weakner.encodings import guess_encoding, undoubled
from spacy_weakner.errors import WeaknerError
from spacy_weakner.files import read_lines

TEXT = "Der Käse – „für“ Zürich\nkostet 3 €\n"


@pytest.mark.parametrize("pack, suffix", [(bytes, ""), (gzip.compress, ".gz"), (bz2.compress, ".bz2")])
@pytest.mark.parametrize(
    "codec, name",
    [("cp1252", "WINDOWS-1252"), ("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")],
)
def test_the_command_in_the_message_converts_the_file(tmp_path, codec, name, pack, suffix):
    path = tmp_path / f"my text.txt{suffix}"
    path.write_bytes(pack(TEXT.encode(codec)))
    with pytest.raises(WeaknerError, match=rf"WK104.*my text\.txt{suffix} is not UTF-8, but {name}\b.*line 1") as error:
        list(read_lines(path))
    if not all(map(shutil.which, ("iconv", "gzip", "bzip2"))):
        pytest.skip("the commands are not installed")
    subprocess.run(str(error.value).split("Convert it: ")[1], shell=True, check=True)
    assert list(read_lines(tmp_path / f"my text-utf8.txt{suffix}")) == TEXT.splitlines()


@pytest.mark.parametrize(
    "data, expected",
    [
        (("Zürich größer\n" * 9).encode() + b"caf\xe9\n", r"UTF-8 with some bytes.*line 10.*iconv -c -f UTF-8"),
        ("他们在北京吃饭。\n".encode("gb18030") * 9, r"GB18030.*iconv -f NAME"),
        ("Анна живёт в Москве\n".encode("cp1251"), r"WINDOWS-1251"),
        ("café\n".encode("latin-1"), "is not UTF-8, but WINDOWS-1252 or ISO-8859-1"),
    ],
)
def test_other_encodings(tmp_path, data, expected):
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(WeaknerError, match=rf"WK104.*{expected}"):
        list(read_lines(tmp_path / "a.txt"))


def test_zero_bytes_alone_are_no_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"first line\nsecond\0line\n" + b"more of it\n" * 9)
    with pytest.raises(WeaknerError, match=r"WK620.*line 2, byte 17.*tr -d"):
        list(read_lines(tmp_path / "a.txt"))


def test_utf32_is_not_taken_for_utf16():
    assert guess_encoding("abc".encode("utf-32")) == "UTF-32"


def double(text):
    """The text after its UTF-8 was read as Windows-1252, as browsers and Excel do."""
    return "".join(
        bytes([b]).decode("cp1252" if b not in b"\x81\x8d\x8f\x90\x9d" else "latin-1") for b in text.encode()
    )


@pytest.mark.parametrize(
    "text", ["Zoë Müller", "à", "Привет мир", "naïve “quoted” — text", "日本語", "😀 hi", "ÁÉ", "€5", "180 °C", "plain"]
)
def test_double_encoding_is_undone_and_plain_text_kept(text):
    assert undoubled(double(text)) == text and undoubled(text) == text


@pytest.mark.parametrize("text", ["«LIBERTÉ»", "JOSÉ”", "«ÉTÉ»…", "Ü–Ä", "±°", "ÂGE", "MAÇÃO", "“É”", "½¼¾²", "â€", ""])
def test_what_only_looks_double_is_kept(text):
    assert undoubled(text) == text
