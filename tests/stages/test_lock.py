"""Locks on outputs: who is refused, who takes whose place, and that nothing is left."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.errors import WeaknerError
from spacy_weakner.scratch import TAKE_OVER, scratch_folder
from spacy_weakner.stages.convert import convert
from spacy_weakner.stages.label import label
from spacy_weakner.stages.runtime import lock
from spacy_weakner.stages.runtime.lock import Holder, holding, locked

DEAD = Holder(socket.gethostname(), 2**22 + 1, "1", "2020-01-01 00:00:00+00:00", "weakner label in out")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "deep" / "out"


@pytest.fixture(params=[True, None], ids=["locks", "no locks"])
def locks(request, monkeypatch):
    """A file system with locks, or without."""
    if request.param is None:
        monkeypatch.setattr(lock, "try_lock", lambda file_: None)


def leave(out, holder, name=".out.lock"):
    """The lock of another run."""
    out.parent.mkdir(exist_ok=True)
    (out.parent / name).write_text("" if holder is None else json.dumps(asdict(holder)))


def names(out):
    return sorted(path.name for path in out.parent.iterdir())


@pytest.mark.usefixtures("locks")
def test_a_second_run_is_refused_and_told_by_whom(out, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["weakner", "label", "my text", "out"])
    with locked(out):
        assert names(out) == [".out.lock"]
        told = rf"WK787.*out is.*process {os.getpid()} on .*'my text' out\."
        with pytest.raises(WeaknerError, match=told) as error, locked(out.parent / "." / "out"):
            pass
        assert "\n" not in str(error.value)
        with locked(out.parent / "other"), locked(out / "inner"):
            pass
        assert names(out) == [".out.lock"]
    assert not out.parent.exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_errors_and_ctrl_c_free_it(out, error):
    with pytest.raises(error), locked(out):
        out.write_text("x")
        raise error
    assert names(out) == ["out"]


@pytest.mark.usefixtures("locks")
@pytest.mark.parametrize("holder", [DEAD, replace(DEAD, pid=os.getpid(), started="1")], ids=["dead", "recycled"])
def test_the_place_of_a_dead_run_is_taken_with_a_word(out, caplog, holder):
    leave(out, holder)
    with locked(out):
        pass
    assert "WK905" in caplog.text and "weakner label in out" in caplog.text
    assert not names(out)


@pytest.mark.usefixtures("locks")
def test_another_machine_is_believed_until_somebody_says_otherwise(out, monkeypatch):
    leave(out, replace(DEAD, host="elsewhere"))
    with pytest.raises(WeaknerError, match=r"WK788.*on elsewhere.*--take-over"), locked(out):
        pass
    assert names(out) == [".out.lock"]
    monkeypatch.setenv(TAKE_OVER, "1")
    with locked(out):
        pass
    assert not names(out)


def test_the_option_of_all_commands(out, monkeypatch):
    monkeypatch.delenv(TAKE_OVER, raising=False)
    leave(out, replace(DEAD, host="elsewhere"))
    (out.parent / "in.txt").write_text("a b\n")
    arguments = ["convert", str(out.parent / "in.txt"), str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1 and "WK788" in done.output and not out.exists()
    try:
        assert CliRunner().invoke(app, ["--take-over", *arguments]).exit_code == 0
    finally:
        os.environ.pop(TAKE_OVER, None)
    assert names(out) == ["in.txt", "out"]


def test_a_run_that_has_not_said_who_it_is(out, monkeypatch):
    monkeypatch.setattr(lock, "_PATIENCE", 0.01)
    leave(out, None)
    with locked(out):  # it was killed between two lines
        pass
    leave(out, None)
    monkeypatch.setattr(lock, "try_lock", lambda file_: None)
    with pytest.raises(WeaknerError, match=r"WK787.*has not said"), locked(out):
        pass


def test_of_two_that_come_at_once_the_first_to_lock_it_has_it(out, monkeypatch):
    """The other has made the file, and has not locked it yet."""
    held, try_lock = [], lock.try_lock

    def late(file_):
        monkeypatch.setattr(lock, "try_lock", try_lock)
        held.append(locked(out))
        held[0].__enter__()
        return try_lock(file_)

    monkeypatch.setattr(lock, "try_lock", late)
    with pytest.raises(WeaknerError, match=f"WK787.*process {os.getpid()} "), locked(out):
        pass
    assert names(out) == [".out.lock"]
    with pytest.raises(WeaknerError, match="WK787"), locked(out):
        pass
    held[0].__exit__(None, None, None)
    assert not names(out)


@pytest.mark.parametrize(
    "one, other, together",
    [((0, 2), (1, 2), True), ((0, 2), (0, 4), False), ((1, 2), (0, 4), True), ((0, 2), (1, 3), False)]
    + [((0, 1), (1, 3), False), ((1, 3), (0, 1), False), ((1, 3), (1, 3), False)],
)
def test_shares_of_the_shards(out, one, other, together):
    with locked(out, one):
        if together:
            with locked(out, other):
                pass
        else:
            with pytest.raises(WeaknerError, match="WK787"), locked(out, other):
                pass
    assert not out.parent.exists()


def test_what_killed_runs_have_left_of_other_shares_goes(out):
    leave(out, DEAD, ".out.2-of-3.lock")
    with locked(out):
        assert names(out) == [".out.lock"]


def test_leftovers_go_and_what_is_in_use_stays(out):
    killed = [out.parent / ".out.0123abcd.tmp", out / "sub" / ".x.spacy.0123abcd.tmp"]
    for folder in killed:
        (folder / ".y.76543210.tmp").mkdir(parents=True)
        (folder / ".lock").touch()
    with scratch_folder(out) as living, locked(out):
        assert living.is_dir()
        assert not any(folder.exists() for folder in killed)


def test_a_process_that_holds_it_frees_it_by_dying(out):
    code = "import sys, time; from spacy_weakner.stages.runtime.lock import locked\nfrom pathlib import Path\n"
    code += "with locked(Path(sys.argv[1])):\n    print(flush=True)\n    time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE)
    process.stdout.readline()
    with pytest.raises(WeaknerError, match=f"WK787.*process {process.pid} "), locked(out):
        pass
    process.kill()
    process.communicate()
    with locked(out):
        pass
    assert not names(out)


def test_functions_hold_their_outputs(out):
    @holding("first", "second")
    def work(first, second=None):
        return names(out)

    assert work(out) == [".out.lock"] and work(out, out) == [".out.lock"]
    assert work(out, second=out.parent / "b") == [".b.lock", ".out.lock"]
    assert not out.parent.exists()


def test_stages_refuse_and_leave_nothing(tmp_path):
    (tmp_path / "in.txt").write_text("alpha met beta\n")
    (tmp_path / "terms.csv").write_text("label,term\nA,alpha\n")
    before = names(tmp_path / "x")
    with locked(tmp_path / "out"):
        with pytest.raises(WeaknerError, match="WK787"):
            label(tmp_path / "in.txt", tmp_path / "out", terms=tmp_path / "terms.csv")
        with pytest.raises(WeaknerError, match="WK787"):
            convert(tmp_path / "in.txt", tmp_path / "out")
    assert names(tmp_path / "x") == before
    label(tmp_path / "in.txt", tmp_path / "out", terms=tmp_path / "terms.csv")
    assert names(tmp_path / "x") == sorted([*before, "out"])
    assert names(tmp_path / "out" / "x") == ["part-00000.spacy", "part-00000.spacy.json"]
