"""Temporary folders, outputs that are replaced as a whole, and full disks."""

import errno
import os
import resource
from contextlib import contextmanager, suppress

import pytest
import spacy

from spacy_weakner import scratch
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import UNFINISHED, read_docs, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.files import atomic_path
from spacy_weakner.runtime import output
from spacy_weakner.runtime.lock import locked
from spacy_weakner.scratch import disk_error, remove_leftovers, scratch_folder, wanted

from .util import make_doc

NLP = spacy.blank("xx")


class Killed(BaseException):
    """In the place of SIGKILL: nothing is tidied up where it is raised."""


def killed_after(n, steps, counts=lambda path: True):
    """Wraps functions that take a path: the one after `n` steps, of those that count, is killed."""

    def wrap(function):
        def run(path, *args, **kwargs):
            if counts(str(path)):
                steps.append(function)
                if len(steps) > n:
                    raise Killed
            return function(path, *args, **kwargs)

        return run

    return wrap


@contextmanager
def full_disk(size):
    """No file of this process can be larger than `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_folders_replace_folders_and_links_stay(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    (real / "old").mkdir(parents=True)
    link.symlink_to(real)
    with atomic_path(link) as temporary:
        temporary.mkdir()
        (temporary / "new").touch()
        assert temporary.name == "real" and names(real) == ["old"] and wanted(temporary) == real
    assert names(tmp_path) == ["link", "real", "real/new"] and link.is_symlink()


def test_leftovers_of_others_stay(tmp_path):
    for name in (".out.tmp", ".out.0123abcd.tmp", ".other.0123abcd.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    (tmp_path / ".other.0123abcd.tmp" / ".lock").touch()
    with scratch_folder(tmp_path / "out"):
        before = names(tmp_path)
        remove_leftovers(tmp_path / "out")
        assert names(tmp_path) == before  # no lock, another's, in use


@pytest.mark.parametrize("n", range(9))
def test_a_removal_that_is_killed_leaves_what_the_next_run_knows(tmp_path, monkeypatch, n):
    steps = []
    with monkeypatch.context() as patch, suppress(Killed), scratch_folder(tmp_path / "out") as folder:
        (folder / "sub").mkdir()
        for name in ("0", "a", "z", "sub/0", "sub/.lock"):
            (folder / name).touch()
        for name in ("unlink", "rmdir"):
            patch.setattr(os, name, killed_after(n, steps)(getattr(os, name)))
    remove_leftovers(tmp_path / "out")
    assert len(steps) > min(n, 4) and names(tmp_path) == []


@pytest.mark.parametrize("interrupted", ["_remove", "try_lock"])
def test_what_an_interrupt_leaves_goes_with_the_process(tmp_path, monkeypatch, interrupted):
    """It comes where a folder is being removed, or made."""

    def interrupt(*arguments, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(scratch, interrupted, interrupt)
        with scratch_folder(tmp_path / "out"):
            pass
    assert names(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(scratch.os, "getpid", lambda: -1)  # as a forked process has another
        scratch.remove_own()
        assert names(tmp_path)
    scratch.remove_own()
    assert not names(tmp_path) and not scratch._own.keys() & set(tmp_path.iterdir())


def test_leftovers_are_locked_while_they_are_removed(tmp_path, monkeypatch):
    folder, locked_then = tmp_path / ".out.0123abcd.tmp", []
    folder.mkdir()
    (folder / ".lock").touch()
    remove = scratch._remove

    def look(path):
        if path.exists():
            with (path / ".lock").open("r+") as lock:
                locked_then.append(scratch.try_lock(lock) is False)
        remove(path)

    monkeypatch.setattr(scratch, "_remove", look)
    remove_leftovers(tmp_path / "out")
    assert locked_then == [True] and names(tmp_path) == []


@pytest.mark.parametrize("target", ["out.spacy", "out.jsonl", "out"])
def test_a_full_disk_is_one_line_with_the_path(tmp_path, target):
    (tmp_path / "in.txt").write_text("".join(f"word{i} and so on\n" for i in range(2000)))
    with (
        full_disk(3000),
        pytest.raises(WeaknerError, match=rf"WK785.*/{target}[^ ]* could not.*File too large") as error,
    ):
        convert(tmp_path / "in.txt", tmp_path / target)
    assert "\n" not in str(error.value) and ".tmp" not in str(error.value)
    assert names(tmp_path) == ["in.txt"]


@pytest.mark.parametrize(
    "code, cure", [(errno.ENOSPC, "Free some space"), (errno.EACCES, "permissions"), (errno.EROFS, "permissions")]
)
def test_only_a_full_disk_needs_space(tmp_path, code, cure):
    message = str(disk_error(tmp_path / "a", OSError(code, "no")))
    assert cure in message and ("space" in message) == (code == errno.ENOSPC)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_other_reasons(tmp_path, code):
    with pytest.raises(WeaknerError, match=r"WK785.*/a could"), atomic_path(tmp_path / "a"):
        raise OSError(code, "no")
    with pytest.raises(PermissionError), atomic_path(tmp_path / "a"):
        raise PermissionError(errno.EACCES, "no", "of an input")
    (tmp_path / "file").touch()
    for place in (locked, atomic_path):
        with pytest.raises(WeaknerError, match=r"WK785.*file/out could not"), place(tmp_path / "file" / "out"):
            pass


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 6])
def test_a_folder_of_shards_is_old_or_new_or_known_to_be_neither(tmp_path, monkeypatch, n):
    def docs(text, n):
        return [make_doc(NLP, f"{text} {i}") for i in range(n)]

    def touch(path, docs):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        return len(list(docs))

    folder = tmp_path / "out"
    write_docs(folder / "part-00000.spacy", docs("old", 2))
    (folder / "notes.txt").touch()
    kill = killed_after(n, [], lambda path: path.startswith(str(tmp_path)) and not path.endswith(".lock"))
    with monkeypatch.context() as patch:
        # What changes the folder itself; shards are written before, aside.
        patch.setattr(output, "write_docs", touch)
        for name in ("rename", "replace"):
            patch.setattr(os, name, kill(getattr(os, name)))
        patch.setattr("pathlib.Path.unlink", kill(output.Path.unlink))
        with suppress(Killed):
            output.write_shards(docs("new", 4), folder, 2)
    shards = sorted(path.name for path in folder.glob("*.spacy"))
    whole = (["part-00000.spacy"], ["part-00000.spacy", "part-00001.spacy"])
    if (folder / UNFINISHED).exists():
        with pytest.raises(WeaknerError, match="WK789"):
            list(read_docs(folder, NLP.vocab))
        assert output.finished(folder, {"stage": "convert"}, False, output.SHARDS) is None
    else:
        assert shards in whole
    output.write_shards(docs("new", 4), folder, 2)
    assert [doc[0].text for doc in read_docs(folder, NLP.vocab)] == ["new"] * 4
    assert names(folder) == ["notes.txt", *whole[1]]
