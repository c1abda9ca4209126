"""The one rule for outputs, with a function that writes each kind of them."""

from pathlib import Path
from typing import NamedTuple

import pytest
import spacy

from spacy_weakner.corpus.docbin import receipt_path
from spacy_weakner.errors import WeaknerError
from spacy_weakner.files import write_text
from spacy_weakner.runtime import output as module
from spacy_weakner.runtime.lock import locked
from spacy_weakner.runtime.output import RECEIPT, SHARDS, made_folder, making, write_docs, write_shards

NLP = spacy.blank("en")
KINDS = ["out.jsonl", "out.spacy", "folder", "shards"]
CALLS = []


class Report(NamedTuple):
    text: str
    n: int


def write(given, output_path, *, n=1, overwrite=False, gpu_id=-1, progress=False) -> Report:
    text = Path(given).read_text()
    CALLS.append(text)
    docs = [NLP.make_doc(f"{text} {i}") for i in range(n)]
    if output_path.name == "shards":
        write_shards(docs, output_path, 1)
    elif output_path.suffix == ".spacy":
        write_docs(output_path, docs)
    elif output_path.suffix:
        write_text(output_path, text * n)
    else:
        with made_folder(output_path) as folder:
            (folder / "vocab").mkdir(parents=True)
            (folder / "vocab" / "key2row").write_text(text * n)
            (folder / "meta.json").write_text("{}")
    return Report(text, n)


make = making("output_path", "given")(write)
make_shards = making("output_path", "given", replaces=SHARDS)(write)


def run(output, text="text", **how):
    """Return how often it was really made, and the report."""
    (output.parent / "in.txt").write_text(text)
    CALLS.clear()
    report = (make_shards if output.name == "shards" else make)(output.parent / "in.txt", output, **how)
    return len(CALLS), report


def contents(output):
    """All files with their contents, but for receipts."""
    found = output.rglob("*") if output.is_dir() else [output]
    return {path: path.read_bytes() for path in found if path.is_file() and path.name != RECEIPT}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_from_the_same_is_skipped_and_else_replaced(tmp_path, kind, capsys):
    output = tmp_path / kind
    assert run(output) == (1, Report("text", 1))
    before = contents(output)
    for how in ({}, {"n": 1}, {"overwrite": True}, {"gpu_id": 0}):
        assert run(output, **how) == (0, Report("text", 1)) and contents(output) == before
    assert not capsys.readouterr().err
    assert run(output, progress=True)[0] == 0 and kind in capsys.readouterr().err
    assert run(output, n=3, progress=True) == (1, Report("text", 3)) and kind in capsys.readouterr().err
    assert run(output, "other") == (1, Report("other", 1)) and contents(output).keys() == before.keys()
    assert contents(output) != before
    assert run(output, "other")[0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_another_version_makes_it_again(tmp_path, kind, monkeypatch):
    run(tmp_path / kind)
    monkeypatch.setattr(module, "code_version", lambda: "2")
    assert [run(tmp_path / kind)[0] for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_edited_is_replaced_only_on_request(tmp_path, kind):
    output = tmp_path / kind
    run(output)
    next(iter(contents(output))).write_bytes(b"mine")
    for text in ("text", "other"):
        with pytest.raises(WeaknerError, match="WK314"):
            run(output, text)
    assert b"mine" in contents(output).values() and not CALLS
    assert run(output, overwrite=True)[0] == 1 and b"mine" not in contents(output).values()
    assert run(output)[0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_removed_is_made_again(tmp_path, kind):
    output = tmp_path / kind
    run(output)
    before = contents(output)
    next(iter(before)).unlink()
    assert run(output)[0] == 1 and contents(output) == before


@making("output_path", "given")
def other_command(given, output_path, *, overwrite=False) -> Report:
    return write(given, output_path)


@pytest.mark.parametrize("of_command", [False, True])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_files_of_others_are_replaced_only_on_request(tmp_path, kind, of_command):
    output = tmp_path / kind
    output.write_bytes(b"mine")
    if of_command:
        (tmp_path / "in.txt").write_text("text")
        other_command(tmp_path / "in.txt", output, overwrite=True)
    before = contents(output)
    with pytest.raises(WeaknerError, match="WK314"):
        run(output)
    assert contents(output) == before and not CALLS
    assert [run(output, overwrite=True)[0], run(output)[0]] == [1, 0]


def thesis(folder):
    (folder / "own").mkdir()
    (folder / "own" / "thesis.txt").write_text("x")


@pytest.mark.parametrize(
    "change",
    [
        thesis,
        lambda folder: (folder / "link").symlink_to("nowhere"),
        lambda folder: (folder / "vocab" / "link").symlink_to(folder.parent, target_is_directory=True),
        lambda folder: (folder / RECEIPT).unlink(),
        lambda folder: (folder / RECEIPT).write_text("["),
    ],
)
def test_folders_with_files_of_others_are_never_replaced(tmp_path, change):
    output = tmp_path / "folder"
    run(output)
    change(output)
    before = contents(output)
    for overwrite in (False, True):
        with pytest.raises(WeaknerError, match="WK300"):
            run(output, "other", overwrite=overwrite)
    assert contents(output) == before


@pytest.mark.parametrize("name", ["gold.spacy", "own/part-00000.spacy", "part-00000.spacy.json"])
def test_a_folder_of_shards_may_hold_other_files_but_no_other_corpora(tmp_path, name):
    output = tmp_path / "shards"
    output.mkdir()
    (output / "notes.txt").write_text("mine")
    assert [run(output, n=n)[0] for n in (3, 1, 1)] == [1, 1, 0]
    assert {path.name for path in contents(output)} == {"notes.txt", "part-00000.spacy"}
    (output / name).parent.mkdir(exist_ok=True)
    (output / name).write_bytes(b"")
    for overwrite in (False, True):
        with pytest.raises(WeaknerError, match="WK300"):
            run(output, "other", overwrite=overwrite)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_empty_is_nothing(tmp_path, kind):
    output = tmp_path / kind
    if "." in kind:
        output.touch()
    else:
        output.mkdir()
        (output / ".DS_Store").touch()
    assert [run(output)[0], run(output)[0]] == [1, 0]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_never_replaced_by_a_folder(tmp_path, overwrite):
    (tmp_path / "in.txt").write_text("text")
    (tmp_path / "gold.jsonl").write_text("mine")
    with pytest.raises(WeaknerError, match="WK300"):
        making("output_path", "given", folder=True)(write)(
            tmp_path / "in.txt", tmp_path / "gold.jsonl", overwrite=overwrite
        )
    assert (tmp_path / "gold.jsonl").read_text() == "mine"


@pytest.mark.parametrize("text", ['{"my": "data"}', "[1]", "{"])
def test_a_file_where_the_receipt_belongs_stays(tmp_path, text):
    (tmp_path / "out.spacy.json").write_text(text)
    for overwrite in (False, True):
        with pytest.raises(WeaknerError, match="WK300"):
            run(tmp_path / "out.spacy", overwrite=overwrite)
    assert (tmp_path / "out.spacy.json").read_text() == text and not (tmp_path / "out.spacy").exists()


def test_names_of_inputs_count(tmp_path):
    """They tell formats, and are ids of Docs."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("text")
        CALLS.clear()
        make(tmp_path / name, tmp_path / "out.jsonl")
        assert CALLS


def test_hidden_files_of_input_folders_do_not_count(tmp_path):
    made = []

    @making("output_path", "given")
    def count(given, output_path, *, overwrite=False) -> int:
        made.append(given)
        write_text(output_path, "x")
        return 1

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("text")
    count(tmp_path / "in", tmp_path / "out.txt")
    (tmp_path / "in" / ".a.txt.lock").touch()
    count(str(tmp_path / "in"), tmp_path / "out.txt")
    assert len(made) == 1
    (tmp_path / "in" / "b.txt").touch()
    count(tmp_path / "in", tmp_path / "out.txt")
    assert len(made) == 2


def test_settings_that_no_hash_tells_apart(tmp_path):
    with pytest.raises(TypeError):
        run(tmp_path / "out.jsonl", n=iter([1]))


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_locked_and_no_inputs(tmp_path, kind):
    with locked(tmp_path / kind), pytest.raises(WeaknerError, match="WK787"):
        run(tmp_path / kind)
    for given, output in ((tmp_path, tmp_path / kind), (tmp_path / "in.txt", tmp_path)):
        with pytest.raises(WeaknerError, match="WK304"):
            make(given, output, overwrite=True)


def test_what_failed_leaves_the_earlier_output(tmp_path):
    output = tmp_path / "out.spacy"
    run(output)
    before = contents(output), receipt_path(output).read_bytes()
    with pytest.raises(TypeError):
        run(output, n="many")
    assert (contents(output), receipt_path(output).read_bytes()) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_before_its_receipt_is_run_again(tmp_path, kind, monkeypatch):
    output = tmp_path / kind
    for text in ("text", "other"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module, "type_adapter", lambda kind: Killed())
            run(output, text)
        assert run(output, text, overwrite=kind != "folder")[1] == Report(text, 1)


class Killed:
    def dump_python(self, *args, **how):
        raise KeyboardInterrupt


def test_languages_recorded_beside_inputs_count(tmp_path):
    given = tmp_path / "in.spacy"
    given.write_text("text")
    for lang, made in (("en", 1), ("en", 0), ("de", 1)):
        (tmp_path / "in.weakner.json").write_text(f'{{"lang": "{lang}", "tokenizer": "t"}}')
        CALLS.clear()
        make(given, tmp_path / "out.jsonl")
        assert len(CALLS) == made


def test_a_language_record_belongs_to_the_output(tmp_path):
    def record(given, output_path, *, overwrite=False) -> int:
        (tmp_path / "out.weakner.json").write_text('{"lang": "de", "tokenizer": "t"}')
        write(given, output_path)
        return 1

    (tmp_path / "in.txt").write_text("text")
    recording = making("output_path", "given")(record)
    recording(tmp_path / "in.txt", tmp_path / "out.spacy")
    (tmp_path / "out.weakner.json").unlink()
    recording(tmp_path / "in.txt", tmp_path / "out.spacy")
    assert (tmp_path / "out.weakner.json").exists()
