"""Locks on outputs: who is refused, and that nothing is left."""

import shutil
import subprocess
import sys

import pytest

from spacy_weakner.conversion.convert import convert
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.label import label
from spacy_weakner.runtime.lock import holding, locked
from spacy_weakner.scratch import scratch_folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "deep" / "out"


def names(out):
    return sorted(path.name for path in out.parent.iterdir())


def test_a_second_run_is_refused(out):
    with locked(out):
        assert names(out) == [".out.lock"]
        with pytest.raises(WeaknerError, match=r"WK787.*out is.*\.out\.lock"), locked(out.parent / "." / "out"):
            pass
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


@pytest.mark.parametrize("share, removed", [((0, 1), True), ((0, 2), False), ((1, 2), False)])
def test_a_share_leaves_the_unfinished_files_of_others(out, share, removed):
    """On another machine, locks of running parts may not be seen."""
    with scratch_folder(out / "b.spacy") as folder:
        left = folder.with_name(".b.spacy.01234567.tmp")
        shutil.copytree(folder, left)
    with locked(out, share):
        assert left.exists() is not removed


@pytest.mark.parametrize("left", [".out.lock", ".out.2-of-3.lock"])
def test_what_a_killed_run_has_left_blocks_nobody(out, left):
    out.parent.mkdir()
    (out.parent / left).touch()
    with locked(out):
        assert names(out) == [".out.lock"]
    assert not names(out)


def test_a_process_that_holds_it_frees_it_by_dying(out):
    code = "import sys, time; from spacy_weakner.runtime.lock import locked\nfrom pathlib import Path\n"
    code += "with locked(Path(sys.argv[1])):\n    print(flush=True)\n    time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE)
    process.stdout.readline()
    with pytest.raises(WeaknerError, match="WK787"), locked(out):
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
    assert names(tmp_path / "out" / "x") == ["part-00000.spacy", "part-00000.spacy.json", "weakner.json"]
