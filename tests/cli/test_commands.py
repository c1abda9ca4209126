import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy
import pytest
import typer
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.calibration.confidence import ConfidenceReport
from spacy_weakner.cli._util import reporting, say
from spacy_weakner.corpus.docbin import UNFINISHED, read_docs, write_docs
from spacy_weakner.errors import WeaknerError, one_line
from spacy_weakner.needle.binning import Steps
from spacy_weakner.needle.confidence import Calibration
from spacy_weakner.runtime.lock import locked
from spacy_weakner.scratch import scratch_folder

from .util import invoke, replace, stand_in

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path):
    rows = [{"tokens": ["Paris", "rocks"], "ents": [[0, 1, "CITY"]]}, {"tokens": ["No"], "ents": []}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "terms.jsonl").write_text('{"label": "CITY", "term": "Paris"}\n')
    return tmp_path


def test_convert_label_aggregate(data):
    result = invoke("convert", data / "a.jsonl", data / "corpus")
    assert result.exit_code == 0, result.output
    assert "2 documents, 3 tokens" in result.output
    result = invoke("label", data / "corpus", data / "weak", "--terms", data / "terms.jsonl", "--only-matched")
    assert result.exit_code == 0, result.output
    assert "1 (CITY 1)" in result.output
    result = invoke("aggregate", data / "weak", data / "out.spacy", "--source", "gazetteer")
    assert result.exit_code == 0, result.output
    assert "Gold moved" in result.output
    result = invoke("convert", data / "out.spacy", data / "out.jsonl")
    row = json.loads((data / "out.jsonl").read_text())
    assert row["ents"] == row["gold"] == row["weak_ents"]["gazetteer"] == [[0, 1, "CITY"]]
    assert row["missing"] == [[1, 2]]


def test_errors_are_one_line_without_traceback(data):
    result = invoke("convert", data / "none.jsonl", data / "x.spacy")
    assert result.exit_code == 1 and result.stdout == ""
    assert "[WK100]" in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "error, code, text",
    [
        (KeyboardInterrupt(), 130, "Interrupted"),
        (PermissionError(13, "no entry", "x"), 1, "no entry"),
        (OSError("read after close"), None, ""),  # a bug, which has a traceback
    ],
)
def test_interrupt_and_system_errors(data, monkeypatch, error, code, text):
    def fail(*args, **kwargs):
        raise error

    replace(monkeypatch, "conversion.convert.convert", fail)
    result = invoke("convert", data / "a.jsonl", data / "x.spacy")
    if code is None:
        assert result.exception is error
    else:
        assert result.exit_code == code and text in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words, function, expected",
    [
        (
            "encoder adapt a b out --model m --train-head --learn-rate 1e-4",
            "encoder_tools.adapt.adapt",
            {"inputs": [Path("a"), Path("b")], "output_path": Path("out"), "model": "m", "progress": True}
            | {"train_head": True, "learn_rate": 1e-4},
        ),
        ("calibrate m g out --fit bias,threshold", "calibration.calibrate.calibrate", {"fit": ["bias", "threshold"]}),
        ("aggregate a b --source x --source y", "labeling.aggregate.aggregate", {"sources": ["x", "y"]}),
        (
            "convert a b --labels O,B-A --columns 1 2 --sentences none",
            "conversion.convert.convert",
            {"labels": ["O", "B-A"], "columns": (1, 2), "sentences": "none"},
        ),
        (
            "label a b --terms t --stop x --stop y --spans-key k --term-columns id=i --exclude c",
            "labeling.label.label",
            {"stop": ["x", "y"], "spans_key": "k", "term_columns": "id=i", "terms": Path("t"), "exclude": [Path("c")]},
        ),
        (
            "relabel clean a b m --list l --no-entities",
            "relabel.clean.clean",
            {"model": "m", "list_path": Path("l"), "entities": False},
        ),
        (
            "relabel complete a b m --soft --bfloat16 --gpu-id 0 --workers 2 --ray auto",
            "relabel.complete.complete",
            {"soft": True, "bfloat16": True, "gpu_id": 0, "workers": 2, "ray": "auto"},
        ),
        ("relabel soften a b m n", "relabel.soft.predict_soft_labels", {"models": ["m", "n"]}),
        ("relabel augment a b --model m", "relabel.augment.augment", {"model": "m"}),
    ],
)
def test_options_are_passed_on(monkeypatch, words, function, expected):
    seen = stand_in(monkeypatch, function)
    assert invoke(*words.split()).exit_code == 130
    assert {name: seen[name] for name in expected} == expected


@pytest.mark.parametrize(
    "words, cure",
    [
        ("init project p --text a.txt --text b.txt --gold g.jsonl", "--text.*2 times.*folder"),
        ("init project p --terms a.txt --terms b.txt --term-label A --term-label B", "--term-label.*column 'label'"),
        ("label a b --terms t --terms u", "--terms.*--sources"),
        ("convert a b --lang en --lang en", "--lang.*2 times"),
        ("relabel complete a b m --soft --soft", "--soft.*2 times"),
        ("init config crf_ner o.cfg --lang en --lang de", "--lang.*2 times"),
        ("train a.cfg out --gpu-id 0 --gpu-id 1", "--gpu-id.*2 times"),
    ],
)
def test_options_with_one_value_are_given_once(words, cure):
    result = invoke(*words.split())
    assert result.exit_code == 2 and re.search(cure, " ".join(result.output.split())), result.output


def test_settings_of_a_config_are_given_once(tmp_path):
    (tmp_path / "a.cfg").write_text("[training]\nmax_steps = 1\n")
    result = invoke(
        "train", tmp_path / "a.cfg", tmp_path / "out", "--training.max_steps", "1", "--training.max_steps=2"
    )
    assert result.exit_code == 1 and "[WK369] --training.max_steps is given 2 times." in result.output


def test_warnings_are_lines(capsys):
    before = warnings.showwarning
    with warnings.catch_warnings(record=True) as others, reporting():
        warnings.simplefilter("always")
        for line in (1, 2):
            warnings.showwarning("[WK912] not read", UserWarning, "a.py", line)
        warnings.showwarning("other", UserWarning, "a.py", 1)
    assert capsys.readouterr().err == "⚠ [WK912] not read\n" and [str(other.message) for other in others] == ["other"]
    assert warnings.showwarning is before


def test_options_of_the_calibration_of_confidences(monkeypatch):
    seen = {}

    def fake(folds, **options):
        seen.update(options, folds=folds)
        return ConfidenceReport(calibration, 9, 0, 0.5)

    calibration = Calibration("viterbi", "token", Steps(*map(numpy.array, ([], [0.5], [9]))), {})
    monkeypatch.setattr("spacy_weakner.calibration.confidence.calibrate_confidence", fake)
    completed = stand_in(monkeypatch, "relabel.complete.complete")
    options = "--score log_probability --unit token --method isotonic --gpu-id 0"
    folds = ["--folds", "m=a.spacy", "--folds", "a=b=c.spacy"]
    assert invoke("relabel", "complete", "in", "out", "model", *options.split(), *folds).exit_code == 130
    assert seen.pop("folds") == [("m", Path("a.spacy")), ("a=b", Path("c.spacy"))]
    given = {o[2:].replace("-", "_") for o in options.split() if o.startswith("--")}
    assert given | {"progress"} == {*seen}
    assert completed["calibration"] is calibration and completed["gpu_id"] == 0


@pytest.mark.parametrize(
    "function, options",
    [
        ("train", "--passes 2 --gpu-id 0 --ray auto"),
        ("train_folds", "--folds 3 --seed 1 --processes 2 --gpu-id 0 --ray auto"),
        ("train_members", "--members 3 --passes 2 --processes 2 --seed 1 --gpu-id 0 --ray auto"),
        (
            "train_grid",
            '--grid a.c=1 --grid a.b="x,y" --grid a.c=2,3 --processes 2 --gpu-id 0 --ray auto',
        ),
    ],
)
def test_every_option_of_train_is_passed_on(tmp_path, monkeypatch, function, options):
    seen = stand_in(monkeypatch, f"cli.train.{function}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.cfg").write_text("[paths]\ntrain = null\ndev = null\n\n[training]\nmax_steps = 1\n")
    (tmp_path / "gold").mkdir()
    extra = ["--training.max_steps", "5", "--paths.train=gold", "--paths.dev", "d"]
    result = invoke("train", "c.cfg", "out", *options.split(), *extra)
    assert result.exit_code == 130, result.output
    config, *places = seen.pop("args")
    overrides = {"training.max_steps": 5, "paths.train": "gold", "paths.dev": "d"}
    given = {o[2:].replace("-", "_") for o in options.split() if o.startswith("--")}
    if function == "train_folds":  # which replaces both for every fold
        assert (places.pop(0), seen.pop("dev")) == (Path("gold"), Path("d"))
        del overrides["paths.train"], overrides["paths.dev"]
    if function == "train_grid":
        assert places.pop() == {"a.c": [1, 2, 3], "a.b": ["x,y"]}
        given.remove("grid")
    assert (config, places) == (Path("c.cfg"), [Path("out")])
    assert given | {"progress", "overrides"} == set(seen) and seen["overrides"] == overrides


@pytest.mark.parametrize(
    "options, message",
    [
        ("--folds 3 --members 2", "'--members' works only without --folds"),
        ("--folds 3 --passes 2", "'--passes' works only without --folds"),
        ("--seed 1", "'--seed' works only with --folds or --members"),
        ("--grid a.b=1 --seed 1", "'--seed' works only without --grid"),
        ("--processes 2", "'--processes' works only with --folds or --members or --grid"),
    ],
)
def test_options_of_train_that_exclude_each_other(options, message):
    result = invoke("train", "c.cfg", "out", *options.split())
    assert result.exit_code == 1 and "WK331" in result.stderr and message in result.stderr


@pytest.mark.parametrize(
    "command", ["relabel complete in out m --folds =gold", "train c.cfg out --grid training.max_epochs"]
)
def test_malformed_pairs(command):
    result = invoke(*command.split())
    assert result.exit_code == 1 and "WK005" in result.stderr


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("command", [["spacy", "weakner"], ["spacy_weakner"]])
def test_subprocess(data, command):
    command = [sys.executable, "-m", *command, "convert", str(data / "a.jsonl"), str(data / "a.spacy")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "2 documents" in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("without_torch")
def test_ctrl_c_leaves_no_temporary_files(data):
    vocab = Vocab()
    write_docs(data / "big" / "0.spacy", [Doc(vocab, words=["Paris", str(i)]) for i in range(100)])
    for i in range(1, 2000):  # half a minute, if nothing ends it
        shutil.copy(data / "big" / "0.spacy", data / "big" / f"{i}.spacy")
    command = [sys.executable, "-m", "spacy_weakner", "label", str(data / "big"), str(data / "out")]
    process = subprocess.Popen(
        [*command, "--terms", str(data / "terms.jsonl")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while len(list((data / "out").glob("*.spacy"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert stderr.decode().strip().splitlines()[-1].endswith("run the same command again to continue.")
    assert "Traceback" not in stderr.decode()
    names = {f.name for f in (data / "out").iterdir()}
    assert not [name for name in names - {UNFINISHED} if name.startswith(".") or name.endswith(".tmp")]
    shards = {name for name in names if name.endswith(".spacy")}
    assert 2 <= len(shards) < 2000
    assert sum(len(list(read_docs(data / "out" / name, vocab))) for name in shards) == 100 * len(shards)
    with pytest.raises(WeaknerError, match="WK789"):
        list(read_docs(data / "out", vocab))


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("gap", [0.0, 0.02])
@pytest.mark.parametrize("command", ["convert in.txt out", "encoder vectors in.txt out"])
def test_ctrl_c_twice(data, command, gap):
    (data / "in.txt").write_text("Paris rocks. Anna met Bob.\n" * 300_000)
    start = [sys.executable, "-m", "spacy_weakner", *command.split()]
    process = subprocess.Popen(start, cwd=data, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(data.glob(".out*.lock")) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(gap)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT) and "Traceback" not in stderr.decode()


def test_a_killed_run_of_suggest_leaves_nothing_to_the_next(data, monkeypatch):
    monkeypatch.chdir(data)
    Path("in.txt").write_text("Paris rocks.\nAnna met Bob.\n")
    Path("s.cfg").write_text('[sources.a]\nterms = "terms.jsonl"\n[sources.b]\nterms = "terms.jsonl"\n')
    with scratch_folder(data / "out.jsonl") as folder:
        shutil.copytree(folder, data / ".out.jsonl.01234567.tmp")
        busy = invoke("suggest", "in.txt", "out.jsonl", "--sources", "s.cfg")
        assert busy.exit_code == 0 and folder.exists() and len(list(data.glob(".*.tmp"))) == 1, busy.output
    with locked(data / "out.jsonl"):
        result = invoke("suggest", "in.txt", "out.jsonl", "--sources", "s.cfg", "--overwrite")
        assert result.exit_code == 1 and "WK787" in result.output


def test_a_command_runs_in_another_thread(data):
    results = []
    thread = threading.Thread(target=lambda: results.append(invoke("convert", data / "a.jsonl", data / "x.spacy")))
    thread.start()
    thread.join()
    assert results[0].exit_code == 0, results[0].output


# What the terminal gets


@pytest.mark.parametrize("char", ["\x07", "\x1b[2J", "\u202e"])
def test_no_data_controls_the_terminal(tmp_path, monkeypatch, char):
    monkeypatch.chdir(tmp_path)
    label, name = f"A{char}B", f"n{char}"
    rows = [{"text": "Anna met Bob", "ents": [[0, 4, label]], "weak_ents": {name: [[9, 12, label]]}}] * 3
    Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("t.csv").write_text(f"label,term\n{label},Bob\n")
    commands = [
        ("convert", f"{name}.jsonl", f"{name}.spacy"),
        ("check", "--gold", f"{name}.jsonl", "--text", f"{name}.jsonl", "--terms", "t.csv"),
        ("label", f"{name}.spacy", f"{name}-labeled.spacy", "--terms", "t.csv"),
        ("analyze", f"{name}-labeled.spacy"),
        ("aggregate", f"{name}-labeled.spacy", f"{name}-weak.spacy"),
    ]
    for command in commands:
        result = invoke(*command)
        assert result.exit_code == 0 or command[0] == "check", result.output
        lines = result.output.splitlines()
        assert len(lines) > 1 and all(one_line(line) == line for line in lines), result.output


@pytest.mark.parametrize("is_terminal", [True, False])
def test_messages_wrap_in_terminals(monkeypatch, capsys, is_terminal):
    """Between words, at its width; paths and commands stay on one line, so that they can be copied."""
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    path = "x" * 60
    say("info", f"word {path} {'word ' * 20}", f"{path} {path}")
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == f"  {path} {path}" and " ".join(" ".join(lines).split()) == f"ℹ word {path}{' word' * 20}"
    assert {len(line) <= 50 for line in lines if path not in line} <= {True} and (len(lines) > 3) == is_terminal
    for command in ("spacy weakner suggest in out --model m", "weasel run all . --vars.prefer speed", "--map A=B"):
        say("info", f"{'word ' * 20}: {command}")
        assert capsys.readouterr().out == f"ℹ {'word ' * 20}: {command}\n"


@pytest.mark.parametrize(
    "is_terminal, env, colored",
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False)],
)
def test_only_terminals_get_colors(monkeypatch, capsys, is_terminal, env, colored):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
    lines = []
    monkeypatch.setattr(typer, "echo", lambda line, err: lines.append(line))
    say("good", "done")
    with pytest.raises(typer.Exit), reporting():
        raise WeaknerError("bad")
    assert ["\x1b[" in line for line in lines] == [colored] * 2


@pytest.mark.parametrize("command", ["init project p", "check", "fit a b"])
@pytest.mark.parametrize("given", [["--vars.sentences", "lines"], ["--vars.sentences=lines"]])
def test_variables_of_projects_are_for_weasel(command, given):
    result = invoke(*command.split(), *given)
    assert result.exit_code == 1 and "WK370" in result.output and "weasel run all . --vars.sentences" in result.output
