"""Outputs that are replaced as a whole."""

import pytest

from spacy_weakner.errors import WeaknerError
from spacy_weakner.runtime.output import RECEIPT, check_folder, check_there, made_folder


def make(output, stage="vectors"):
    with made_folder(output, {"stage": stage}) as folder:
        (folder / "vocab").mkdir(parents=True)
        (folder / "vocab" / "key2row").write_text("1")
        (folder / "meta.json").write_text("{}")


def thesis(folder):
    (folder / "own").mkdir()
    (folder / "own" / "thesis.txt").write_text("x")


def test_own_files_are_replaced(tmp_path):
    check_folder(tmp_path / "out", False, "vectors")
    for _ in range(2):
        make(tmp_path / "out")
        check_folder(tmp_path / "out", True, "vectors")
        with pytest.raises(WeaknerError, match="WK314"):
            check_folder(tmp_path / "out", False, "vectors")
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "out", tmp_path / "out" / "vocab", tmp_path / "empty"):
        (folder / ".DS_Store").touch()
        (folder / "Thumbs.db").touch()
    (tmp_path / "out" / "meta.json").unlink()
    for name in ("out", "empty"):
        check_folder(tmp_path / name, True, "vectors")


@pytest.mark.parametrize(
    "change",
    [
        thesis,
        lambda folder: (folder / "link").symlink_to("nowhere"),
        lambda folder: (folder / "vocab" / "link").symlink_to(folder.parent, target_is_directory=True),
        lambda folder: (folder / "meta.json").write_text("edited"),
        lambda folder: (folder / RECEIPT).unlink(),
        lambda folder: (folder / RECEIPT).write_text("["),
        lambda folder: make(folder, "calibrate"),
    ],
)
def test_other_files_are_not(tmp_path, change):
    make(tmp_path / "out")
    change(tmp_path / "out")
    with pytest.raises(WeaknerError, match="WK300"):
        check_folder(tmp_path / "out", True, "vectors")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(WeaknerError, match="WK300"):
        check_folder(tmp_path / "out", True, "vectors")


def test_only_numbered_shards_are_replaced(tmp_path):
    (tmp_path / "part-one.spacy").touch()
    with pytest.raises(WeaknerError, match="WK300"):
        check_there(tmp_path, True)
