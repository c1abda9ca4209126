"""`spacy weakner prepare`, `fit`, `evaluate --selection`, `package`, `init project`: what they print."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from spacy.vocab import Vocab
from weasel.util import load_project_config

from spacy_weakner.code_version import code_version, stamp
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.project.packaging import Package
from spacy_weakner.project.rules import SIZES
from spacy_weakner.project.selection import read_test_scores

from ..project.util import PEOPLE, gold_rows, make_selection, write_gold, write_rows, write_ruler
from .util import invoke, replace

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "command", ["evaluate test.spacy --selection none.json --html r.html", "package none.json out --name x"]
)
def test_without_a_selection(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    result = invoke(*command.split())
    assert result.exit_code == 1 and "[WK100]" in result.stderr and "spacy weakner fit" in result.stderr
    assert not list(tmp_path.iterdir())


def test_package_ends_with_the_candidate_and_its_use(tmp_path, monkeypatch):
    seen = {}

    def fake(*args, **kwargs):
        seen.update(kwargs)
        return Package("en_ner", Path("packages/en_ner.whl"))

    replace(monkeypatch, "project.packaging.package", fake)
    make_selection(tmp_path / "list").save(tmp_path / "selection.json")
    data = ["--data", "gold=my gold.jsonl"]
    options = ["--name", "ner", "--version", "2"]
    result = invoke("package", tmp_path / "selection.json", "out", *options, "--scores", tmp_path / "nope.json")
    assert result.exit_code == 1 and "[WK100]" in result.output and "nope.json" in result.output and not seen
    result = invoke("package", tmp_path / "selection.json", "out", *options, *data)
    assert result.exit_code == 0, result.output
    splits = {"sentences": None, "abbreviations": None}
    expected = {"name": "ner", "version": "2", "test": {}, "data": {"gold": "my gold.jsonl"}, **splits}
    assert seen.pop("selected").best == "term list" and seen == {"output": Path("out"), **expected}
    output = " ".join(result.output.split())
    assert "Packaged: 'term list'" in output and str(tmp_path / "list") in result.output.replace("\n", "")
    assert [line.strip() for line in result.output.splitlines()[-4:]] == [
        "pip install --force-reinstall --no-deps packages/en_ner.whl",
        "import spacy",
        'nlp = spacy.load("en_ner")',
        "print([(ent.text, ent.label_) for ent in nlp('your text').ents])",
    ]


def test_a_stamp_that_fits_is_not_touched(tmp_path):
    path = tmp_path / "new" / "code.txt"
    stamp(path)
    assert path.read_text() == code_version() + "\n"
    before = path.stat()
    stamp(path)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    path.write_text("other code\n")
    stamp(path)
    assert path.read_text() == code_version() + "\n"
    command = [sys.executable, "-m", "spacy_weakner.code_version"]
    path.unlink()
    subprocess.run([*command, path], check=True)
    assert path.read_text() == code_version() + "\n"
    refused = subprocess.run([*command, tmp_path], capture_output=True, text=True)
    assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1


def test_init_project_says_where_it_is(tmp_path):
    gold = write_rows(tmp_path / "gold.jsonl", gold_rows(3))
    folder = tmp_path / "mein Büro"
    result = invoke("init", "project", folder, "--gold", gold)
    assert result.exit_code == 0 and "gold: ../gold.jsonl" in result.output
    cd, place, *rest = shlex.split(next(line for line in result.output.splitlines() if line.startswith("  cd ")))
    assert (cd, place, rest) == ("cd", str(folder), ["&&", "weasel", "run", "all"])
    again = invoke("init", "project", folder, "--gold", gold)
    assert again.exit_code == 1 and "[WK300]" in again.stderr and len(again.stderr.splitlines()) == 1


def test_what_is_wrong_leaves_no_project(tmp_path):
    gold = write_rows(tmp_path / "gold.jsonl", gold_rows(3))
    (tmp_path / "terms.txt").write_text("aspirin\n")
    command = ["init", "project", tmp_path / "some" / "new", "--gold", gold, "--terms", tmp_path / "terms.txt"]
    result = invoke(*command)
    assert result.exit_code == 1 and "WK103" in result.output and "No project was written" in result.output
    assert not (tmp_path / "some").exists()
    assert invoke(*command, "--term-label", "PER").exit_code == 0


@pytest.mark.parametrize("place", [".", "new"])
def test_what_is_wrong_leaves_the_users_own_folder(tmp_path, monkeypatch, place):
    gold = write_rows(tmp_path / "gold.jsonl", gold_rows(3))
    (tmp_path / "terms.txt").write_text("aspirin\n")
    (tmp_path / "new").mkdir()
    monkeypatch.chdir(tmp_path / "new" if place == "." else tmp_path)
    result = invoke("init", "project", place, "--name", "x", "--gold", gold, "--terms", tmp_path / "terms.txt")
    assert result.exit_code == 1 and "WK103" in result.output and "No project was written" in result.output
    assert list((tmp_path / "new").iterdir()) == []


def test_data_in_the_folder_of_a_project_stay(tmp_path):
    (tmp_path / "new" / "assets").mkdir(parents=True)
    gold = write_rows(tmp_path / "new" / "assets" / "gold.jsonl", gold_rows(3))
    (tmp_path / "terms.txt").write_text("aspirin\n")
    command = ["init", "project", tmp_path / "new", "--gold", gold, "--terms", tmp_path / "terms.txt"]
    assert "WK103" in invoke(*command).output
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["assets"] and gold.is_file()
    assert "gold: assets/gold.jsonl" in invoke(*command, "--term-label", "PER").output


def test_columns_behind_numbers(tmp_path, monkeypatch):
    gold = tmp_path / "gold.conll"
    gold.write_text("#\tx\ty\tz\tw\n" + "1\tAnna\tB-PER\tO\n2\tlebt\tO\tO\n\n" * 9)
    command = ["init", "project", tmp_path / "new", "--gold", gold]
    for failed in (
        invoke(*command),
        invoke("check", "--gold", gold),
        invoke("convert", gold, tmp_path / "a.spacy"),
        invoke("check", "--text", gold),
    ):
        assert failed.exit_code == 1 and "--columns TOKEN TAG" in " ".join((failed.output + failed.stderr).split())
    assert not (tmp_path / "new").exists()
    text = tmp_path / "text.conll"
    text.write_text(gold.read_text().replace("Anna", "Eva"))
    assert invoke("check", "--gold", gold, "--text", text, "--columns", 2, 3).exit_code == 0
    assert invoke(*command, "--columns", 2, 3).exit_code == 0
    # The project reads the file as its maker did.
    monkeypatch.chdir(tmp_path / "new")
    commands = {each["name"]: each["script"][-1] for each in load_project_config(Path())["commands"]}
    for name in ("check", "prepare"):
        assert invoke(*shlex.split(commands[name])[3:]).exit_code == 0
    docs = list(read_docs(tmp_path / "new" / "corpus" / "annotated" / "gold.spacy", Vocab()))
    assert [[t.text for t in doc] for doc in docs] == [["Anna", "lebt"]] * 9
    assert all(doc_entities(doc) == [(0, 1, "PER")] for doc in docs)


@pytest.mark.parametrize("command", ["init project new --gold gold.jsonl", "fit corpus training --configs configs"])
def test_encoders_that_projects_do_not_have(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "gold.jsonl", gold_rows(3))
    result = invoke(*command.split(), "--size", "cnn")
    assert result.exit_code == 1 and len(result.stderr.splitlines()) == 1 and not (tmp_path / "new").exists()
    assert "[WK005]" in result.stderr and ", ".join(SIZES) in result.stderr


def test_scores_on_test_of_the_candidates_of_a_selection(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    selection = make_selection(write_ruler(tmp_path / "list", {"PER": [*PEOPLE]}))
    selection.save(Path("selection.json"))
    command = ["evaluate", "test.spacy", "--selection", "selection.json", "--html", "r.html", "--output", "scores.json"]
    earlier = '{"made_by": "spacy_weakner 0"}'
    Path("scores.json").write_text(earlier)
    result = invoke(*command)
    assert result.exit_code == 1 and "[WK100]" in result.output and "test.spacy" in result.output
    assert Path("scores.json").read_text() == earlier and not Path("r.html").exists()
    result = invoke(*command, "--optional", "test", "--labels", "nope.spacy")
    assert result.exit_code == 1 and "[WK100]" in result.output and "nope.spacy" in result.output
    result = invoke(*command, "--optional", "test")
    assert result.exit_code == 0 and "test.spacy does not exist" in result.output
    assert read_test_scores(Path("scores.json")) == {}
    assert "How it was selected" in Path("r.html").read_text()
    write_gold(Path("test.spacy"), 6, 500)
    result = invoke(*command, "--bootstrap", "20")
    assert result.exit_code == 0 and selection.best in result.output and [*read_test_scores(Path("scores.json"))]
