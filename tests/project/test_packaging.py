"""Packages: what is in them, and what is left where one cannot be built."""

import json
import shlex
import shutil
import subprocess
import zipfile
from importlib import import_module
from pathlib import Path

import build
import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.about import __version__
from spacy_weakner.errors import WeaknerError
from spacy_weakner.evaluation.compare import CandidateScores
from spacy_weakner.own_code import OWN_CODE, import_own_code
from spacy_weakner.project import packaging
from spacy_weakner.project.packaging import Package, package, usage
from spacy_weakner.runtime.hashes import hash_path

from ..util import contents
from .util import SCORES, make_selection, write_ruler

# spaCy leaves the files that it writes to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
STRANGE = ["a|b", "`x`", "<b>", "größe", "with blank"]


@pytest.fixture
def builder(monkeypatch):
    """Builds no wheel, but a file that tells what would have gone into it; fails if it shall."""

    class Builder:
        error = None

        def __init__(self, source, runner):
            self.source = Path(source)

        def build(self, kind, output):
            assert kind == "wheel"
            Path(output).mkdir()
            if Builder.error is not None:
                raise Builder.error
            path, files = Path(output) / "made.whl", [*self.source.rglob("*")]
            with zipfile.ZipFile(path, "w") as packed:
                for file_ in files:
                    packed.write(file_, file_.relative_to(self.source))
            return str(path)

    monkeypatch.setattr(build, "ProjectBuilder", Builder)
    return Builder


@pytest.fixture
def selection(tmp_path):
    path = write_ruler(tmp_path / "my pipeline", {label: ["Anna"] for label in STRANGE}, lang="de")
    return make_selection(path, "term list 'a|b'")


def scores(**changes):
    return CandidateScores.model_validate({**SCORES, **changes})


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_what_is_inside(tmp_path, selection, builder):
    test = {selection.best: scores(f1=77.0), "other": scores(interval=None)}
    made = package(selection, tmp_path / "out", name="ner", version="1.2", test=test, data={"gold": "mein Gold.jsonl"})
    assert made == Package("de_ner", tmp_path / "out" / "de_ner-1.2" / "dist" / "made.whl", version="1.2")
    folder = tmp_path / "out" / "de_ner-1.2"
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    assert (meta["lang"], meta["name"], meta["version"]) == ("de", "ner", "1.2")
    assert "F1 77.0 (95 % CI 70.0 to 90.0)" in meta["description"]
    about = meta["spacy_weakner"]
    assert (about["test"]["f1"], about["data"]) == (77.0, {"gold": "mein Gold.jsonl"})
    assert about["scores"] == selection.selected.scores.model_dump()
    assert about["versions"] == {"spacy": spacy.__version__, "spacy_weakner": __version__}
    assert about["facts"]["dev"] == 50 and about["settings"]["text_steps"] == 400 and about["code"] == "1.0 abc"
    with zipfile.ZipFile(made.wheel) as packed:
        assert json.loads(packed.read("meta.json")) == meta
    nlp = spacy.load(folder / "de_ner" / "de_ner-1.2")
    assert nlp.meta["spacy_weakner"] == about and len(nlp("Anna").ents) == 1
    assert not [name for name in files(folder) if "egg-info" in name or name.startswith("build")]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, ["Anna kam wg.", "Ott.", "Gut"]),
        ({"abbreviations": "wg., z. B."}, ["Anna kam wg. Ott.", "Gut"]),
        ({"sentences": "sentencizer", "abbreviations": "wg."}, ["Anna kam wg.", "Ott.", "Gut"]),
        ({"sentences": "lines"}, ["Anna kam wg. Ott. Gut"]),
        ({"sentences": "none"}, []),
    ],
)
def test_texts_are_split_as_the_corpora(tmp_path, selection, builder, settings, expected):
    package(selection.model_copy(update=settings), tmp_path / "out", name="ner")
    nlp = spacy.load(tmp_path / "out" / "de_ner-0.1.0" / "de_ner" / "de_ner-0.1.0")
    doc = nlp("Anna kam wg. Ott. Gut")
    assert ([sent.text for sent in doc.sents] if doc.has_annotation("SENT_START") else []) == expected


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, ["Anna kam wg.", "Ott."]),
        ({"abbreviations": "wg."}, ["Anna kam wg. Ott."]),
        ({"sentences": "none"}, []),
    ],
)
def test_any_pipeline_is_packaged(tmp_path, builder, settings, expected):
    path = write_ruler(tmp_path / "model-best", {"PER": ["Anna"]}, lang="de")
    test = {str(path): scores(f1=77.0), "other": scores(f1=11.0)}
    made = package(path, tmp_path / "out", name="ner", test=test, data={"gold": "gold.jsonl"}, **settings)
    assert made == Package("de_ner", tmp_path / "out" / "de_ner-0.1.0" / "dist" / "made.whl", version="0.1.0")
    nlp = spacy.load(tmp_path / "out" / "de_ner-0.1.0" / "de_ner" / "de_ner-0.1.0")
    assert "F1 77.0" in nlp.meta["description"] and nlp.meta["spacy_weakner"]["data"] == {"gold": "gold.jsonl"}
    doc = nlp("Anna kam wg. Ott.")
    assert ([sent.text for sent in doc.sents] if doc.has_annotation("SENT_START") else []) == expected
    readme = (tmp_path / "out" / "de_ner-0.1.0" / "README.md").read_text(encoding="utf-8")
    assert "Labels: PER" in readme and "was selected" not in readme and "None" not in readme.replace("or None", "")


def test_what_only_a_pipeline_has(tmp_path, selection, builder):
    path = Path(selection.selected.path)
    only = {"any name": scores(f1=77.0)}  # the only scores are those of the pipeline
    made = package(path, tmp_path / "out", name="ner", test=only)
    assert "F1 77.0" in json.loads((made.wheel.parent.parent / "meta.json").read_text(encoding="utf-8"))["description"]
    with pytest.raises(WeaknerError, match=r"candidate.*a, b"):
        package(path, tmp_path / "out", name="ner", test={"a": scores(), "b": scores()})
    for settings in ({"sentences": "none"}, {"abbreviations": ""}):
        with pytest.raises(WeaknerError, match="WK331"):
            package(selection, tmp_path / "out", name="ner", **settings)
    with pytest.raises(WeaknerError):
        package(tmp_path, tmp_path / "out", name="ner")


def test_names_do_not_break_the_readme(tmp_path, selection, builder):
    other, best = scores(name="other", f1=90.0), scores(name=selection.best, ece=0.0245)
    package(selection, tmp_path / "out", name="ner", test={"other": other, selection.best: best})
    readme = (tmp_path / "out" / "de_ner-0.1.0" / "README.md").read_text(encoding="utf-8")
    assert "| term list 'a\\|b' | 80.0 | 80.0 | 80.0 | 70.0 to 90.0 |" in readme
    assert 'nlp = spacy.load("de_ner")' in readme and "größe" in readme
    assert "Its expected calibration error on test is 0.02." in readme
    table = [line for line in readme.splitlines() if line.startswith("|")]
    assert "| other | 80.0 | 80.0 | 90.0 |" in table[3]  # the package is first
    assert len(table) == 4 and {line.replace("\\|", "").count("|") for line in table} == {6}
    # Nothing was compared.
    package(make_selection(selection.selected.path, scores=None), tmp_path / "none", name="ner")
    folder = tmp_path / "none" / "de_ner-0.1.0"
    assert "there was no gold" in json.loads((folder / "meta.json").read_text())["description"]
    assert "error on test" not in (folder / "README.md").read_text()


def test_a_second_run_replaces_the_first(tmp_path, selection, builder):
    package(selection, tmp_path / "out", name="ner")
    (tmp_path / "out" / "de_ner-0.1.0" / "old").write_text("old")
    before = files(tmp_path / "my pipeline")
    made = package(selection, tmp_path / "out", name="ner", data={"text": "new"})
    assert made.wheel.exists() and not (tmp_path / "out" / "de_ner-0.1.0" / "old").exists()
    assert "- text: `new`" in (tmp_path / "out" / "de_ner-0.1.0" / "README.md").read_text()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["de_ner-0.1.0"]
    # The pipeline itself stays as it is.
    assert files(tmp_path / "my pipeline") == before


def test_scores_of_a_pipeline_that_has_changed(tmp_path, selection, builder):
    folder = Path(selection.selected.path)
    selected = selection.model_copy(update={"contents": {selection.best: hash_path(folder)}})
    earlier = selection.model_copy(update={"contents": "one hash of all"})
    for known in (selected, earlier):
        package(known, tmp_path / "out", name="ner")
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "author": "somebody"}))
    with pytest.raises(WeaknerError, match=r"WK697.*weasel run fit \. --force"):
        package(selected, tmp_path / "out", name="ner")
    package(folder, tmp_path / "out", name="ner")
    shutil.rmtree(folder)
    with pytest.raises(WeaknerError, match=r"WK100.*weasel run fit \. --force"):
        package(selected, tmp_path / "out", name="ner")


def test_the_version_goes_up_with_the_pipeline(tmp_path, selection, builder):
    output = tmp_path / "out"
    first = package(selection, output, name="ner", version="0.9")
    assert first.version == "0.9" and package(selection, output, name="ner").version == "0.9"  # the same pipeline
    before = contents(output)
    shutil.rmtree(tmp_path / "my pipeline")
    write_ruler(tmp_path / "my pipeline", {"PER": ["Bob"]}, lang="de")
    second = package(selection, output, name="ner", version="0.9")
    assert second.version == "0.10" and second.wheel.parent.parent.name == "de_ner-0.10"
    assert {path: content for path, content in contents(output).items() if "ner-0.10" not in path} == before
    assert package(selection, output, name="ner").version == "0.10"
    # Other packages do not count; a wanted version does.
    assert package(selection, output, name="ne").version == "0.1.0"
    assert package(selection, output, name="ner", version="1.0rc1").version == "1.0rc1"
    write_ruler(tmp_path / "my pipeline", {"PER": ["Clara"]}, lang="de")
    assert package(selection, output, name="ner", version="1.0rc1").version == "1.0"
    # A package of unknown origin stays too.
    meta = json.loads((output / "de_ner-1.0" / "meta.json").read_text())
    (output / "de_ner-1.0" / "meta.json").write_text(json.dumps({**meta, "spacy_weakner": {}}))
    assert package(selection, output, name="ner").version == "1.1"


def test_the_version_goes_up_with_what_else_is_packaged(tmp_path, selection, builder, monkeypatch):
    def version(**changed):
        return package(selection.model_copy(update=changed), tmp_path / "out", name="ner").version

    assert [version(), version()] == ["0.1.0"] * 2
    assert [version(sentences="sentencizer") for _ in range(2)] == ["0.1.1"] * 2
    assert [version(abbreviations=value) for value in ("Pat.", "Pat., bek.")] == ["0.1.2", "0.1.3"]
    assert version(notes=["other notes"]) == "0.1.4" == version()
    code = tmp_path / "code.py"
    code.write_text("X = 1\n")
    monkeypatch.setattr(packaging, "own_code", lambda: code)
    assert version() == "0.1.5"


@pytest.mark.parametrize(
    "error",
    [
        build.BuildBackendException(ValueError("no\nsetuptools")),
        subprocess.CalledProcessError(1, ["x"]),
        KeyboardInterrupt(),
    ],
)
def test_nothing_half_written_stays(tmp_path, selection, builder, error):
    for earlier in (False, True):
        builder.error = None
        if earlier:
            package(selection, tmp_path / "out", name="ner")
        before = files(tmp_path)
        builder.error = error
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else WeaknerError) as caught:
            package(selection, tmp_path / "out", name="ner")
        assert files(tmp_path) == before
        if caught.type is WeaknerError:
            assert str(caught.value).startswith("[WK687]") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [{"name": name} for name in ("", "my-ner", "my ner", "größe", "1st", "a.b", "../x")] + [{"version": "1 0"}],
)
def test_unusable_names_and_versions(tmp_path, selection, builder, settings):
    with pytest.raises(WeaknerError, match=rf"WK005.*'{next(iter(settings))}'"):
        package(selection, tmp_path / "out", **{"name": "ner", **settings})
    with pytest.raises(WeaknerError, match=r"WK100.*gone.*fit"):
        package(make_selection(tmp_path / "gone"), tmp_path / "out", name="ner")
    assert not (tmp_path / "out").exists()


def test_a_name_of_python_is_one_behind_the_language(tmp_path, selection, builder):
    assert package(selection, tmp_path / "out", name="class").name == "de_class"


def test_own_code_is_part_of_it(tmp_path, selection, builder, monkeypatch):
    code = tmp_path / "my-code.py"
    # Running it twice would be an error.
    code.write_text("from spacy.tokens import Doc\nDoc.set_extension('of_own_code', default=1)\nHERE = 3\n")
    monkeypatch.setenv(OWN_CODE, str(code))
    import_own_code()
    package(selection, tmp_path / "out", name="own")
    Doc.remove_extension("of_own_code")
    folder = tmp_path / "out" / "de_own-0.1.0"
    shutil.copy(folder / "meta.json", folder / "de_own")  # as setup.py does
    monkeypatch.syspath_prepend(folder)
    assert import_module("de_own").own_code.HERE == 3
    Doc.remove_extension("of_own_code")


def test_usage_can_be_copied():
    pip, *python = usage(Package("de_ner", Path("my packages/de_ner.whl")))
    assert shlex.split(pip) == ["pip", "install", "--force-reinstall", "--no-deps", "my packages/de_ner.whl"]
    assert len(python) == 3 and "ent.kb_id_" not in python[-1]
    assert "ent.kb_id_" in usage(Package("x", Path("x.whl"), has_ids=True))[-1]
    compile("\n".join(python), "usage", "exec")
