"""From files to a package, through the commands, as a user does it."""

import html
import json
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner
from weasel.cli.run import check_rerun, project_run, update_lockfile
from weasel.util import load_project_config

from spacy_weakner.cli.app import app
from spacy_weakner.code_version import code_version, stamp
from spacy_weakner.project.variables import check_variables

from .util import sentences, write_rows

USED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import spacy
nlp = spacy.load(sys.argv[2])
doc = nlp("Anna went to Paris with nobody")
print(json.dumps([nlp.meta["name"], doc.has_annotation("ENT_IOB"), [ent.text for ent in doc.ents]]))
"""
COMMANDS = ["code", "check", "prepare", "label", "analyze", "vectors", "fit", "evaluate", "package"]
ALWAYS = ["code", "check", "package"]


def write_files(folder):
    """Gold, dev, test and text, and a list that knows everything."""

    def row(text, entities):
        words = text.split()
        starts = [len(" ".join(words[:i])) + bool(i) for i in range(len(words))]
        spans = [[starts[start], starts[end - 1] + len(words[end - 1]), label] for start, end, label in entities]
        return {"text": text, "spans": spans}

    everything = [row(*each) for each in sentences(80)]
    for name, part in (("gold", slice(0, 15)), ("dev", slice(15, 30)), ("test", slice(30, 42))):
        write_rows(folder / f"{name}.jsonl", everything[part])
    (folder / "text.txt").write_text("".join(f"{each['text']}\n" for each in everything[42:]), encoding="utf-8")
    (folder / "my terms.csv").write_text("label,term\nPER,Anna\nPER,Bob\nPER,Clara\nLOC,Paris\nLOC,Rome\n")


def run_all(folder, monkeypatch):
    """What the workflow prints. Its commands run in this process, since each of their own would import everything anew;
    weasel notes what they were run on."""
    monkeypatch.chdir(folder)
    project, output = load_project_config(folder), ""
    commands = {command["name"]: command for command in project["commands"]}
    for name in project["workflows"]["all"]:
        for script in commands[name]["script"]:
            python, _, module, *arguments = shlex.split(script)
            if name == "code":
                stamp(Path(*arguments))
                continue
            if module == "spacy_weakner.project.variables":
                check_variables(folder)
                continue
            done = CliRunner().invoke(app, arguments)
            assert (python, module, done.exit_code) == ("python", "spacy_weakner", 0), done.output
            output += done.output
        update_lockfile(folder, commands[name])
    return output


def to_run(folder):
    """The commands that would not be skipped."""
    project = load_project_config(folder)
    return [command["name"] for command in project["commands"] if check_rerun(folder, command)]


# spaCy's packaging leaves files open.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.usefixtures("trained_here")
@pytest.mark.long
def test_from_files_to_a_package(tmp_path, capsys, monkeypatch):
    home = tmp_path / "ein Ordner für alles"
    home.mkdir()
    write_files(home)
    folder = home / "Namen"
    options = [["--terms", home / "my terms.csv"], ["--text", home / "text.txt"]]
    options += [[f"--{name}", home / f"{name}.jsonl"] for name in ("gold", "dev", "test")]
    made = CliRunner().invoke(app, ["init", "project", str(folder), *(str(x) for pair in options for x in pair)])
    assert made.exit_code == 0, made.output
    # Folder and files move together.
    home = home.rename(tmp_path / "ein anderer Ordner")
    folder = home / "Namen"
    output = run_all(folder, monkeypatch)

    # The last lines name the best candidate, where it is, and how to use it.
    selection = json.loads((folder / "training" / "selection.json").read_text(encoding="utf-8"))
    best = next(each for each in selection["candidates"] if each["name"] == selection["best"])
    assert selection["chosen_by"] == "dev" and best["scores"]["f1"] == 100.0
    lines = output.strip().splitlines()
    wheel = "packages/en_namen-0.1.0/dist/en_namen-0.1.0-py3-none-any.whl"
    assert [line.strip() for line in lines[-4:-1]] == [
        f"pip install --force-reinstall --no-deps {wheel}",
        "import spacy",
        'nlp = spacy.load("en_namen")',
    ]
    last = " ".join(lines[-8:])
    assert f"Packaged: '{selection['best']}': F1 " in last and "on test" in last and best["path"] in last

    # The package says what it is made from, and how good it is.
    unpacked = tmp_path / "site"
    with zipfile.ZipFile(folder / wheel) as packed:
        packed.extractall(unpacked)
    meta = json.loads((unpacked / "en_namen" / "meta.json").read_text(encoding="utf-8"))
    about = meta["spacy_weakner"]
    assert about["scores"]["f1"] == 100.0 and about["test"]["interval"] and about["code"] == code_version()
    annotated = {name: f"../{name}.jsonl" for name in ("gold", "dev", "test")}
    assert about["data"] == {"text": "../text.txt", "source gazetteer": "../my terms.csv", **annotated}
    assert about["facts"]["gold"] == 15
    readme = (folder / "packages" / "en_namen-0.1.0" / "README.md").read_text(encoding="utf-8")
    assert "| term list | 100.0 | 100.0 | 100.0 |" in readme and "- gold: `../gold.jsonl`" in readme
    used = [sys.executable, "-c", USED, str(unpacked), "en_namen"]
    found = subprocess.run(used, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    name, is_annotated, entities = json.loads(found.stdout.splitlines()[-1])
    assert (name, is_annotated) == ("namen", True) and isinstance(entities, list)
    report = (folder / "metrics" / "report.html").read_text(encoding="utf-8")
    answer = html.unescape(report.partition("</header>")[0])
    assert f"'{selection['best']}': F1 " in answer
    assert report.index('<section aria-labelledby="sentences"') < report.index("<table")

    # What has not changed is skipped.
    assert to_run(folder) == ALWAYS
    capsys.readouterr()
    for name in COMMANDS:
        if name not in ALWAYS:
            project_run(folder, name)
            assert f"Skipping '{name}'" in capsys.readouterr().out

    # What depends on a change is made anew.
    terms = home / "my terms.csv"
    for old, new, wanted in (("Clara", "Klara", ["prepare", "label", "fit"]), ("Klara", "Clara", [])):
        terms.write_text(terms.read_text().replace(f"PER,{old}", f"PER,{new}"))
        project_run(folder, "check")  # which notes the files that sources.cfg names
        assert to_run(folder) == ["code", "check", *wanted, "package"]
    gold = home / "gold.jsonl"
    gold.write_text(gold.read_text().replace("LOC", "PER"))
    assert to_run(folder) == ["code", "check", "prepare", "package"]
    changes = {
        "corpus/annotated/dev.spacy": {"prepare", "label", "vectors", "fit", "evaluate"},
        "corpus/weak/part-00000.spacy": {"label", "fit"},
        "corpus/gold-labeled.spacy": {"label", "analyze", "fit", "evaluate"},
        "corpus/labels.json": {"analyze", "fit"},
        "training/selection.json": {"fit", "evaluate"},
    }
    for path, wanted in changes.items():
        before = (folder / path).read_bytes()
        (folder / path).write_bytes(before + b" ")
        assert {*to_run(folder)} == wanted | {*ALWAYS, "prepare"}, path
        (folder / path).write_bytes(before)

    # Another state of the code makes everything anew.
    (folder / "corpus" / "code.txt").write_text("other code\n")
    assert to_run(folder) == COMMANDS
