import gzip
import os
import stat
from functools import partial
from pathlib import Path

import pytest

from spacy_weakner import files, scratch
from spacy_weakner.errors import WeaknerError
from spacy_weakner.files import atomic_path, check_output, existing, read_lines, visible_files, write_text


def test_the_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with atomic_path(path) as temporary:
        temporary.write_text("x")
        assert not path.exists()
    assert path.read_text() == "x"
    assert list(path.parent.iterdir()) == [path]


def test_what_begins_with_a_dot_is_passed_over(tmp_path):
    names = ["b.spacy", "a/c.spacy", "a/d.json", ".e.spacy", ".b.spacy.0123abcd.tmp/b.spacy", "a/.f/g/h.spacy"]
    for name in names:
        write_text(tmp_path / name, "x")
    (tmp_path / "i.spacy").mkdir()
    assert visible_files(tmp_path, ".spacy") == [tmp_path / "a/c.spacy", tmp_path / "b.spacy"]
    assert len(visible_files(tmp_path)) == 3
    assert visible_files(tmp_path / "nowhere") == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_appears_when_the_block_fails(tmp_path, error):
    def fail():
        with atomic_path(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_existing_names_path_and_hint(tmp_path):
    with pytest.raises(WeaknerError, match=r"\[WK100\].*no\b.*\(run convert\)"):
        existing(tmp_path / "no", "run convert")


@pytest.mark.parametrize(
    "data, lines",
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb", ["a", "b"]),
        (b"\xef\xbb\xbfa\n\n b \n", ["a", "", " b "]),
        ("Zürich\u2028x\n".encode(), ["Zürich\u2028x"]),
    ],
)
@pytest.mark.parametrize("suffix, pack", [(".txt", bytes), (".txt.gz", gzip.compress)])
def test_read_lines(tmp_path, data, lines, suffix, pack):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack(data))
    assert list(read_lines(path)) == lines


@pytest.mark.parametrize(
    "name, data, message",
    [
        ("a.txt.gz", gzip.compress(b"line\n" * 1000, mtime=0)[:-12], r"WK206.*a\.txt\.gz"),
        ("a.txt.gz", b"no gzip", r"WK206.*a\.txt\.gz"),
        ("a.txt.gz", gzip.compress(b"x", mtime=0)[:15] + b"\xff" * 9, r"WK206.*a\.txt\.gz"),
        ("a.txt.bz2", b"no bzip2", r"WK206.*a\.txt\.bz2"),
        ("a.txt", b"abc\nd\xff\n", r"WK104.*a\.txt.*byte 5"),
        ("folder", None, "WK109.*folder is a folder"),
        ("a.txt", b"short\n" + b"x" * 1000, r"WK103.*a\.txt, line 2.*1,000"),
        ("a.txt.gz", gzip.compress(b"x" * 9999, mtime=0), r"WK103.*a\.txt\.gz, line 1"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, monkeypatch, name, data, message):
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    (tmp_path / name).mkdir() if data is None else (tmp_path / name).write_bytes(data)
    with pytest.raises(WeaknerError, match=message):
        list(read_lines(tmp_path / name))


def test_read_lines_leaves_system_errors_as_they_are(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError("no entry")

    (tmp_path / "a.txt").write_text("x")
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(PermissionError):
        list(read_lines(tmp_path / "a.txt"))


def test_a_pipe_is_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(WeaknerError, match="WK786"):
            list(read_lines(path))
        for write in (partial(write_text, text=""), lambda path: check_output([], [path])):
            with pytest.raises(WeaknerError, match="WK305"):
                write(path)


def test_links_in_a_circle(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    check_output([tmp_path / "loop"], [tmp_path / "out"])
    check_output([tmp_path / "in"], [tmp_path / "loop"])
    with pytest.raises(WeaknerError, match=r"WK100.*link"):
        existing(tmp_path / "loop")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
@pytest.mark.parametrize("folder", [False, True])
def test_what_is_replaced_keeps_owner_and_permissions(tmp_path, mode, folder):
    path = tmp_path / "a"
    path.mkdir() if folder else path.write_text("x")
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = path.stat()
    with atomic_path(path) as temporary:
        assert stat.S_IMODE(temporary.parent.stat().st_mode) == 0o700
        temporary.mkdir() if folder else temporary.write_text("new")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


@pytest.mark.parametrize("output", ["in", "in/a.txt", "in/new", ".", "in/../in", "link", "linked.txt"])
def test_check_output_refuses_inputs_and_what_is_around_them(tmp_path, output):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    (tmp_path / "linked.txt").symlink_to(tmp_path / "in" / "a.txt")
    with pytest.raises(WeaknerError, match=r"\[WK304\]"):
        check_output([tmp_path / "in"], [tmp_path / "fine", tmp_path / output])


def test_check_output_follows_links_of_inputs(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("x")
    (tmp_path / "a.txt").symlink_to(tmp_path / "data" / "a.txt")
    with pytest.raises(WeaknerError, match=r"\[WK304\]"):
        check_output([tmp_path / "a.txt"], [tmp_path / "data"])


def test_check_output_accepts_neighbors(tmp_path):
    check_output([tmp_path / "a" / "x", tmp_path / "b"], [tmp_path / "a" / "y", tmp_path / "bb", tmp_path / "c" / "x"])


class Killed(BaseException):
    """What happens to a process that gets no time to clean up."""


@pytest.mark.parametrize("survived", [0, 1, 2])
@pytest.mark.parametrize("linked", [False, True])
def test_a_kill_while_a_folder_is_replaced_loses_nothing(tmp_path, monkeypatch, linked, survived):
    path, done = tmp_path / "model", []
    (path / "sub").mkdir(parents=True)
    (path / "sub" / "a.txt").write_text("old")
    (tmp_path / "link").symlink_to(path)
    output = tmp_path / "link" if linked else path

    def rename(source, target, real):
        if source.is_dir() and len(done) == survived:
            raise Killed
        done.extend([target] * source.is_dir())
        real(source, target)

    with monkeypatch.context() as patch:
        for name in ("rename", "replace"):
            patch.setattr(files.os, name, partial(rename, real=getattr(os, name)))
        patch.setattr(scratch, "_remove", lambda folder: None)
        try:
            with atomic_path(output) as temporary:
                (temporary / "sub").mkdir(parents=True)
                (temporary / "sub" / "a.txt").write_text("new")
        except Killed:
            pass
    scratch.remove_leftovers(output)
    assert (path / "sub" / "a.txt").read_text() == ("new" if survived == 2 else "old")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "link", path]
