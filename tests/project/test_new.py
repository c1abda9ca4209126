"""Folders of projects: what stands in them, and that it fits the commands and the files."""

import json
import shlex
import shutil
from configparser import ConfigParser
from fnmatch import fnmatch
from pathlib import Path

import pytest
import spacy
from spacy.util import load_config
from typer.main import get_command
from weasel.util import load_project_config

import spacy_weakner
from spacy_weakner.cli.app import app
from spacy_weakner.configs import render_config
from spacy_weakner.conversion.convert import convert
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling import sources
from spacy_weakner.labeling.sources import read_sources
from spacy_weakner.pipelines import blank_pipeline
from spacy_weakner.project import new
from spacy_weakner.project.inputs import stamp_inputs
from spacy_weakner.project.new import USUAL_RELIABILITY, init_project
from spacy_weakner.project.packaging import files_of_sources
from spacy_weakner.runtime import hashes

from ..util import contents

PACKAGE = Path(spacy_weakner.__file__).parent
FILES = {
    "text": ("mein Text.txt", "Anna war hier.\n"),
    "terms": ("Wörter für alles.csv", "label,term\nPER,Anna\n"),
    "answers": ("answers.jsonl", '{"text": "Anna", "spans": [[0, 4, "PER"]]}\n'),
    "gold": ("gold (1).jsonl", '{"tokens": ["Anna"], "ents": [[0, 1, "PER"]]}\n'),
    "dev": ("dev #2.jsonl", '{"tokens": ["Anna"], "ents": [[0, 1, "PER"]]}\n'),
    "test": ("test: x.jsonl", '{"tokens": ["Anna"], "ents": [[0, 1, "PER"]]}\n'),
}
COMMANDS = get_command(app).commands
EVERYTHING = ("text", "terms", "gold", "dev", "test")


@pytest.fixture
def files(tmp_path):
    made = {}
    for key, (name, content) in FILES.items():
        made[key] = tmp_path / "home" / name
        made[key].parent.mkdir(exist_ok=True)
        made[key].write_text(content, encoding="utf-8")
    return made


@pytest.fixture
def quick(monkeypatch):
    """Configs are tested elsewhere, and take most of the time."""
    monkeypatch.setattr(new, "render_config", lambda recipe, *args, **kwargs: f"# {recipe}\n")
    monkeypatch.setattr(new, "blank_pipeline", lambda *args: blank_pipeline("xx"))  # of others, tokenizers take long


def given(files, *keys):
    return {key: files[key] for key in keys}


def refuses(tmp_path, message, **settings):
    """An error that comes before anything is written."""
    with pytest.raises(WeaknerError, match=message):
        init_project(tmp_path / "p", **settings)
    assert not (tmp_path / "p").exists()


def check_project(folder):
    """What has to hold for every project."""
    project = load_project_config(folder)
    commands = {command["name"]: command for command in project["commands"]}
    assert len((folder / "project.yml").read_text(encoding="utf-8").splitlines()) < 150
    assert project["vars"]["version"] == "0.1.0" and '"0.1.0"' in (folder / "project.yml").read_text(encoding="utf-8")
    assert {*project["workflows"]["all"]} == {*commands} and project["workflows"]["all"][-1] == "package"
    made = set()
    for name in project["workflows"]["all"]:
        command = commands[name]
        for dep in command.get("deps", []):
            assert dep in made or (folder / dep).exists(), f"{name} needs {dep}"
        for script in command["script"]:
            python, _, module, *rest = shlex.split(script)
            if module == "spacy_weakner.project.variables":
                assert (name, rest) == ("check", [])
                continue
            subcommand, *arguments = rest
            if name == "code":
                assert (module, subcommand, arguments) == ("spacy_weakner.code_version", "corpus/code.txt", [])
                continue
            assert (python, module) == ("python", "spacy_weakner") and not set("|&;><") & set(script)
            # Fails for options that there are not, and for missing arguments.
            COMMANDS[subcommand].make_context(subcommand, arguments)
            # What a command reads and a later change would not be seen of.
            for path in (word for word in arguments if word.startswith(("corpus/", "training/"))):
                listed = [*command.get("deps", []), *command.get("outputs", [])]
                assert any(path == each or path.startswith(f"{each}/") for each in listed), f"{name}: {path}"
        made.update(command.get("outputs", []))
        made.update(f"{each}/gold.spacy" for each in command.get("outputs", []))
    return commands


@pytest.mark.parametrize(
    "keys, size, commands",
    [
        (EVERYTHING, "linear", "label analyze vectors"),
        (EVERYTHING, "transformer", "label analyze vectors"),
        (EVERYTHING, "frozen", "label analyze vectors"),
        (("text", "terms", "gold"), "linear", "label analyze vectors"),
        (("text", "terms"), "linear", "label vectors"),
        (("text", "terms", "dev"), "transformer", "label vectors"),
        (("text", "answers"), "transformer", "label vectors"),
        (("text", "answers", "terms", "gold"), "transformer", "label analyze vectors"),
        (("gold", "terms"), "linear", "label analyze"),
        (("gold",), "linear", ""),
        (("gold", "dev"), "transformer", ""),
        (("gold", "text"), "linear", "vectors"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_a_project_of_what_there_is(tmp_path, files, quick, keys, size, commands):
    commands = f"code check prepare {commands} fit evaluate package"
    made = init_project(tmp_path / "home" / "projekt", **given(files, *keys), size=size)
    assert [*check_project(made.folder)] == commands.split()
    assert {*made.files} == {*keys} - {"terms", "answers"}
    assert made.sources == [name for name, key in (("gazetteer", "terms"), ("answers", "answers")) if key in keys]
    assert (made.folder / "sources.cfg").exists() == bool(made.sources)
    if made.sources:
        assert [source.name for source in read_sources(made.folder / "sources.cfg")] == made.sources
    weak = "transformer/best.gold.cfg" if size == "transformer" else "linear/crf_ner.cfg"
    wanted = {weak} if made.sources and "text" in keys else set()
    if "gold" in keys and size == "linear":
        wanted |= {"linear/best.gold.cfg", "linear/crf_ner.cfg"}
    elif "gold" in keys:
        wanted |= {"frozen/best.gold.cfg", "frozen/crf_ner.cfg"}
        # A student is linear.
        wanted |= {"linear-static/best.gold.cfg", "linear-static/crf_ner.cfg"} if "text" in keys else set()
    elif size == "transformer" and "text" in keys:
        wanted.add("linear-static/crf_ner.cfg")
    configs = made.folder / "configs"
    assert {path.relative_to(configs).as_posix() for path in configs.rglob("*.cfg")} == wanted
    readme = (made.folder / "README.md").read_text(encoding="utf-8")
    assert all((f"| `{name}` |" in readme) for name in commands.split()[1:])


def test_configs_are_those_of_init_config(tmp_path, files):
    settings = {"lang": "de", "tokenizer": "spacy.Tokenizer.v1"}
    made = init_project(tmp_path / "p", **given(files, "gold", "text", "terms"), size="gpu", **settings)
    for size in ("gpu", "frozen"):
        path = made.folder / "configs" / size / "best.gold.cfg"
        # The frozen Transformer is the one that is trained.
        expected = render_config("best.gold", size, transformer="roberta-base", **settings)
        assert path.read_text(encoding="utf-8") == expected
    assert load_config(path)["nlp"]["lang"] == "de"
    assert load_project_config(made.folder)["vars"]["language"] == "--lang de --tokenizer spacy.Tokenizer.v1"


def test_the_tokenizer_and_the_transformer(tmp_path, files, quick):
    options = {"lang": "zh", "size": "gpu", "transformer": "my models/bert"}
    made = init_project(tmp_path / "p", **given(files, "gold"), **options)
    given_vars = load_project_config(made.folder)["vars"]
    assert (given_vars["tokenizer"], given_vars["processes"]) == ("spacy.zh.ChineseTokenizer", 1)
    assert "my models/bert" in shlex.split(check_project(made.folder)["check"]["script"][-1])


@pytest.mark.parametrize(
    "options, size",
    [
        ({}, "linear"),
        ({"transformer": "bert"}, "frozen"),
        ({"size": "frozen"}, "frozen"),
        ({"transformer": "bert", "size": "linear-static"}, "linear-static"),
        ({"transformer": "bert", "size": "transformer"}, "transformer"),
        ({"size": "linear-static"}, "linear-static"),
    ],
)
def test_the_usual_size(tmp_path, files, quick, options, size):
    made = init_project(tmp_path / "p", **given(files, "gold", "text", "terms"), **options)
    assert load_project_config(made.folder)["vars"]["size"] == size
    assert f"{size}/best.gold.cfg" in contents(made.folder / "configs")


def test_without_gold_a_transformer_is_trained(tmp_path, files, quick):
    """What is frozen is only for heads on gold."""
    made = init_project(tmp_path / "p", **given(files, "text", "terms"), transformer="bert")
    assert load_project_config(made.folder)["vars"]["size"] == "transformer"
    with pytest.raises(WeaknerError, match=r"WK005.*'frozen'.*--gold"):
        init_project(tmp_path / "q", **given(files, "text", "terms"), transformer="bert", size="frozen")


def test_the_encoder_of_a_spacy_pipeline(tmp_path, files):
    spacy.blank("xx").to_disk(tmp_path / "pipe")
    options = {**given(files, "gold"), "transformer": str(tmp_path / "pipe")}
    made = init_project(tmp_path / "p", **options)
    config = load_config(made.folder / "configs" / "frozen" / "best.gold.cfg", interpolate=True)
    encoder = config["components"]["crf_ner"]["model"]["tok2vec"]
    assert encoder["@architectures"] == "spacy_weakner.FrozenTok2Vec.v1" and encoder["source"] == "../pipe"
    with pytest.raises(WeaknerError, match=r"WK353.*spaCy pipeline.*--size frozen"):
        init_project(tmp_path / "q", **options, size="transformer")


def test_vectors_of_pieces_and_their_place(tmp_path, files, quick, monkeypatch):
    made = init_project(tmp_path / "p", **given(files, *EVERYTHING), size="linear-static")
    assert {*contents(made.folder / "configs")} == {"linear-static/crf_ner.cfg", "linear-static/best.gold.cfg"}
    commands = check_project(made.folder)
    assert " ".join(commands) == "code check prepare label analyze distill vectors fit evaluate package"
    wanted = render_config("crf_ner", "transformer")
    project = load_project_config(made.folder)
    assert f'transformer = "{project["vars"]["transformer"]}"' in wanted
    words = shlex.split(commands["distill"]["script"][0])
    assert words[5:8] == ["corpus/text", "corpus/annotated/gold.spacy", "corpus/pieces"]
    assert words[words.index("--model") + 1] == project["vars"]["transformer"]
    assert "corpus/pieces" in commands["fit"]["deps"]
    assert "| `distill` |" in (made.folder / "README.md").read_text(encoding="utf-8")
    # A folder is named as the project says files.
    (tmp_path / "bert").mkdir()
    monkeypatch.chdir(tmp_path)
    init_project(Path("q"), **given(files, "gold"), size="linear-static", transformer="bert")
    assert load_project_config(tmp_path / "q")["vars"]["transformer"] == "../bert"
    assert "corpus/text" not in check_project(tmp_path / "q")["distill"]["script"][0]


def test_the_same_input_gives_the_same_bytes(tmp_path, files, quick):
    folder = tmp_path / "home" / "p"
    first = contents(init_project(folder, **given(files, *EVERYTHING)).folder)
    assert {*first} >= {"project.yml", "README.md", ".gitignore", "sources.cfg", "configs/linear/best.gold.cfg"}
    shutil.rmtree(folder)
    assert contents(init_project(folder, **given(files, *EVERYTHING)).folder) == first


@pytest.mark.parametrize("relative", [True, False])
def test_folder_and_files_move_together(tmp_path, files, quick, relative, monkeypatch):
    # A project elsewhere names them as they are.
    assert init_project(tmp_path / "work" / "p", **given(files, "gold")).files["gold"] == files["gold"].as_posix()
    monkeypatch.chdir(tmp_path / "home")
    names = {key: files[key].relative_to(tmp_path / "home") if relative else files[key] for key in EVERYTHING}
    init_project(Path("projekt") if relative else tmp_path / "home" / "projekt", **names)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").rename(tmp_path / "moved")
    check_project(tmp_path / "moved" / "projekt")
    (source,) = read_sources(tmp_path / "moved" / "projekt" / "sources.cfg")
    assert Path(source.path).resolve() == tmp_path / "moved" / files["terms"].name
    project = load_project_config(tmp_path / "moved" / "projekt")
    assert project["vars"]["gold"] == f"../{files['gold'].name}"


def test_nothing_is_written_over_something_else(tmp_path, files, quick, monkeypatch):
    (tmp_path / "file").write_text("mine")
    init_project(tmp_path / "project", **given(files, "gold"))
    before = contents(tmp_path)
    for name in ("file", "project"):
        with pytest.raises(WeaknerError, match=rf"WK300.*/{name} exists"):
            init_project(tmp_path / name, **given(files, "gold"))
    assert contents(tmp_path) == before
    # An empty folder that one stands in.
    (tmp_path / "leer").mkdir()
    monkeypatch.chdir(tmp_path / "leer")
    inode = Path.cwd().stat().st_ino
    made = init_project(Path(), **given(files, "gold"))
    assert Path.cwd().stat().st_ino == inode and load_project_config(made.folder)["vars"]["name"] == "leer"


@pytest.mark.parametrize(
    "key, name",
    [("gold", "it's.jsonl"), ("gold", 'a"b.jsonl'), ("gold", "a$b.jsonl"), ("terms", "a\\b.csv"), ("text", "a\nb.txt")]
    + [("terms", "${vars.seed}.csv"), ("terms", "a\x85b.csv"), ("text", "a\x07b.txt"), ("gold", "a\u202eb.jsonl")],
)
def test_paths_with_quotes(tmp_path, files, quick, name, key):
    refuses(tmp_path, "WK689", **{**given(files, "gold", "text"), key: files[key].rename(tmp_path / name)})


@pytest.mark.parametrize("value", ["a'b", "${vars.seed}", "a\\b", "a\x85b", "a\x07b"])
@pytest.mark.parametrize("setting", ["spans_key", "transformer"])
def test_other_settings_with_quotes(tmp_path, files, quick, setting, value):
    refuses(tmp_path, f"WK689.*{setting}", **given(files, "gold", "text"), **{setting: value})


@pytest.mark.parametrize("value", ["my spans", "注释", "a-b.c"])
def test_names_that_survive(tmp_path, files, quick, value):
    gold = files["gold"].rename(tmp_path / f"{value}.jsonl")
    made = init_project(tmp_path / "p", gold=gold, spans_key=value)
    found = load_project_config(made.folder)
    (script,) = next(command["script"] for command in found["commands"] if command["name"] == "prepare")
    args = shlex.split(script)
    assert args[args.index("--spans-key") + 1] == value
    assert (made.folder / args[args.index("--gold") + 1]).samefile(gold)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"size": "huge"}, "WK005.*size.*huge.*linear, linear-static, frozen, transformer, gpu"),
        ({"size": "cnn"}, "WK005.*size.*cnn.*linear, linear-static, frozen, transformer, gpu"),
        ({"lang": "q"}, "WK005.*'lang'"),
        ({"tokenizer": "nothing.v1"}, "WK005.*'tokenizer'"),
        ({"gold": "none.jsonl"}, r"WK100.*none\.jsonl.*--gold"),
        ({"terms": "none.csv"}, r"WK100.*none\.csv.*--terms"),
        ({"name": "my-name"}, r"WK005.*my-name"),
        ({"name": "1st"}, r"WK005.*1st"),
        ({"name": ""}, "WK005.*'name'"),
        ({"baseline": "spancat"}, "WK005.*'baseline'.*ner"),
        ({"baseline": "ner", "gold": None, "text": "text.txt", "terms": "terms.csv"}, "WK331.*--baseline.*--gold"),
    ],
)
def test_unusable_settings(tmp_path, files, options, message):
    refuses(tmp_path, message, **{**given(files, "gold"), **options})


def test_spacys_ner_as_a_baseline(tmp_path, files, quick):
    words = "spacy_weakner.WordTokenizer.v1"
    made = init_project(tmp_path / "project", **given(files, *EVERYTHING), baseline="ner", lang="en", tokenizer=words)
    commands = check_project(made.folder)
    assert [*commands][-4:] == ["fit", "baseline", "evaluate", "package"]
    config = load_config(made.folder / "configs" / "ner.cfg")
    assert f"--nlp.lang en --nlp.tokenizer.@tokenizers {words}" in str(commands["baseline"])
    assert config["nlp"]["pipeline"] == ["tok2vec", "ner"] and config["nlp"]["tokenizer"] == {"@tokenizers": words}
    # What it writes is scored.
    assert "'spaCy ner=training/spacy-ner/model-last'" in (made.folder / "project.yml").read_text()
    assert "| `baseline` |" in (made.folder / "README.md").read_text()


@pytest.mark.parametrize("keys", [(), ("text",), ("terms",), ("dev", "test"), ("terms", "dev")])
def test_nothing_to_learn_from(tmp_path, files, quick, keys):
    refuses(tmp_path, "WK680", **given(files, *keys))


@pytest.mark.parametrize(
    "folder, name",
    [("mein Büro", "mein_b_ro"), ("NER-2", "ner_2"), ("ä", "project"), ("null", "null"), ("1e5", "project_1e5")],
)
def test_the_package_is_named_after_the_folder(tmp_path, files, quick, folder, name):
    made = init_project(tmp_path / folder, **given(files, "gold"))
    assert load_project_config(made.folder)["vars"]["name"] == name
    arguments = shlex.split(check_project(made.folder)["package"]["script"][0])
    assert arguments[arguments.index("--name") + 1] == name


# Sources


def test_a_file_of_sources_beside_terms_and_answers(tmp_path, files, quick):
    folder = tmp_path / "home" / "declared"
    folder.mkdir()
    (folder / "drugs.csv").write_text("label,term\nX,aspirin\n")
    (folder / "more.jsonl").write_text('{"label": "PER", "pattern": "Bob"}\n')
    (folder / "own.cfg").write_text(
        """[sources.drugs]
terms = "drugs.csv"
reliability = 0.5
labels = {"X": "DRÜG"}
stop = ["a $$ b", "#", "say \\"no\\"", "ä"]
acronym_length = 2
complete = true

[sources.rules]
patterns = "more.jsonl"
attr = "LOWER"
""",
        encoding="utf-8",
    )
    wanted = read_sources(folder / "own.cfg")
    options = {**given(files, "text", "terms", "answers", "gold"), "sources": folder / "own.cfg"}
    made = init_project(tmp_path / "home" / "p", **options)
    assert made.sources == ["gazetteer", "answers", "drugs", "rules"]
    found = {source.name: source for source in read_sources(made.folder / "sources.cfg")}
    for source in wanted:
        again = found[source.name]
        assert Path(again.path).resolve() == Path(source.path).resolve()
        # Of several sources each says how good it is, if only as a guess.
        known = source.reliability if source.reliability is not None else USUAL_RELIABILITY
        assert {**vars(again), "path": ""} == {**vars(source), "path": "", "reliability": known}
    assert "a $ b" in found["drugs"].stop and 'say "no"' in found["drugs"].stop
    assert found["answers"].complete and not found["gazetteer"].complete
    commands = check_project(made.folder)
    label = commands["label"]
    # A changed list is fitted anew: see `test_a_stamp_tells_of_all_files`.
    fitted = {"sources.cfg", "corpus/inputs.txt", "configs", "corpus/weak", "corpus/gold-labeled.spacy"}
    assert fitted <= {*commands["fit"]["deps"]} and {"sources.cfg", "corpus/inputs.txt"} <= {*label["deps"]}
    assert load_project_config(made.folder)["vars"]["method"] == "weighted"


@pytest.mark.parametrize(
    "keys, sources, method",
    [
        (("terms",), 0, "union"),
        (("terms", "gold"), 0, "union"),
        (("terms", "answers"), 0, "union"),
        (("terms", "answers", "gold"), 0, "weighted"),
        (("terms", "answers"), 1, "label_model"),
    ],
)
def test_how_sources_are_combined(tmp_path, files, quick, keys, sources, method):
    (tmp_path / "own.cfg").write_text(f'[sources.more]\nfile = "{files["answers"]}"\n')
    more = {"sources": tmp_path / "own.cfg"} if sources else {}
    made = init_project(tmp_path / "p", **given(files, "text", *keys), **more)
    assert load_project_config(made.folder)["vars"]["method"] == method
    check_project(made.folder)


def test_a_name_that_is_given_twice(tmp_path, files, quick):
    sources = tmp_path / "own.cfg"
    sources.write_text(f'[sources.gazetteer]\nfile = "{files["answers"]}"\n')
    refuses(tmp_path, r"WK690.*own\.cfg.*'gazetteer'", **given(files, "text", "terms"), sources=sources)
    assert init_project(tmp_path / "p", **given(files, "text"), sources=sources).sources == ["gazetteer"]


def test_several_term_lists_and_the_label_of_terms(tmp_path, files, quick):
    (tmp_path / "reviewed.csv").write_text("label,term,accept\nPER,Nobody,yes\n")
    lists = [files["terms"], tmp_path / "reviewed.csv"]
    made = init_project(tmp_path / "p", **given(files, "text"), terms=lists, term_label="DRUG $1")
    (source,) = read_sources(made.folder / "sources.cfg")
    assert source.term_label == "DRUG $1"
    assert [path.resolve() for path in source.files] == [path.resolve() for path in lists]
    commands = check_project(made.folder)
    assert "--sources sources.cfg" in str(commands["package"]["script"])
    assert [*files_of_sources(made.folder / "sources.cfg")] == ["source gazetteer", "source gazetteer-2"]


def test_a_stamp_tells_of_all_files(tmp_path, files, quick):
    (tmp_path / "more.csv").write_text("label,term\nPER,Bob\n")
    (tmp_path / "bert").mkdir()
    weights = tmp_path / "bert" / "model.safetensors"
    weights.write_text("a")
    lists = [files["terms"], tmp_path / "more.csv"]
    made = init_project(tmp_path / "p", **given(files, "text"), terms=lists)
    seen = set()
    splitter = tmp_path / "splitter"
    spacy.blank("en").to_disk(splitter)
    for path in (None, *lists, weights, splitter / "meta.json"):
        if path is not None:
            path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        stamp_inputs(tmp_path / "inputs.txt", made.folder / "sources.cfg", str(tmp_path / "bert"), str(splitter))
        seen.add((tmp_path / "inputs.txt").read_text(encoding="utf-8"))
    assert len(seen) == 5
    corpora = tmp_path / "gold"
    corpora.mkdir()
    (corpora / "a.jsonl").write_text("{}")
    for name in ("b.jsonl", "b.jsonl.off"):  # weasel sees contents only
        next(corpora.iterdir()).rename(corpora / name)
        stamp_inputs(tmp_path / "inputs.txt", None, None, "rule", [corpora, lists[0]])
        seen.add((tmp_path / "inputs.txt").read_text(encoding="utf-8"))
    assert len(seen) == 7
    stamp_inputs(tmp_path / "inputs.txt", None, "some/name", "rule")
    assert (tmp_path / "inputs.txt").read_text(encoding="utf-8") == "# spacy_weakner\n"


def test_a_stamp_tells_of_installed_pipelines(tmp_path, monkeypatch):
    (tmp_path / "own.cfg").write_text('[sources.model]\npipeline = "en_installed"\n')
    monkeypatch.setattr(sources, "is_package", lambda name: True)
    monkeypatch.setattr(sources, "asks_language_model", lambda name: False)
    seen = set()
    for version in ("1.0", "1.1"):
        monkeypatch.setattr(hashes, "get_package_version", lambda name, version=version: version)
        stamp_inputs(tmp_path / "inputs.txt", tmp_path / "own.cfg", None, "rule")
        seen.add((tmp_path / "inputs.txt").read_text(encoding="utf-8"))
    assert len(seen) == 2


def test_the_language_is_that_of_a_corpus(tmp_path, files, quick):
    convert(files["gold"], tmp_path / "gold.spacy", lang="de")
    made = init_project(tmp_path / "p", gold=tmp_path / "gold.spacy", text=files["text"], terms=files["terms"])
    found = load_project_config(made.folder)["vars"]
    assert (made.lang, found["lang"], found["tokenizer"]) == ("de", "de", "spacy.Tokenizer.v1")
    with pytest.raises(WeaknerError, match=r"WK005.*'de'"):
        init_project(tmp_path / "q", gold=tmp_path / "gold.spacy", lang="fr")


def test_names_of_declared_sources(tmp_path, files, quick):
    (tmp_path / "own.cfg").write_text(f'[sources.it\'s]\nterms = "{files["terms"].as_posix()}"\n', encoding="utf-8")
    with pytest.raises(WeaknerError, match=r"WK691.*own\.cfg"):
        init_project(tmp_path / "p", **given(files, "text"), sources=tmp_path / "own.cfg")


@pytest.mark.parametrize("size", ["frozen", "transformer", "gpu"])
def test_one_transformer_is_trained_and_frozen(tmp_path, files, size):
    """All encoders of a project are the same, which is trained or not."""
    for transformer in ("some/bert", None):
        made = init_project(
            tmp_path / f"{transformer is None}", **given(files, *EVERYTHING), size=size, transformer=transformer
        )
        paths = [load_config(path)["paths"] for path in (made.folder / "configs").rglob("*.cfg")]
        (named,) = {each["transformer"] for each in paths if "transformer" in each}
        assert transformer in (None, named)


# The package itself


def test_the_wheel_has_all_templates_and_configs():
    setup = ConfigParser()
    setup.read(PACKAGE.parent / "setup.cfg")
    patterns = setup["options.package_data"]["spacy_weakner"].split()
    data = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if path.suffix in (".cfg", ".jinja")]
    assert len(data) > 30
    # As setuptools reads them: a star does not cross folders.
    matched = {path for path in data for p in patterns if fnmatch(path, p) and path.count("/") == p.count("/")}
    assert {*data} == matched


def labeled(files, *rows):
    """The text as JSONL, with labels of its own."""
    files["text"] = files["text"].with_name("labeled.jsonl")
    files["text"].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return files["text"]


def test_labels_that_the_text_brings_along_are_sources(tmp_path, files, quick):
    """So that a corpus with weak labels is all that one needs."""
    labeled(files, {"text": "Bob"}, {"text": "Anna", "weak_ents": {"list": [[0, 4, "PER"]], "llm": []}})
    assert init_project(tmp_path / "one", text=files["text"]).sources == ["list", "llm"]
    assert [source.kind for source in read_sources(tmp_path / "one" / "sources.cfg")] == ["corpus", "corpus"]
    # Beside others, and named already.
    declared = tmp_path / "home" / "mine.cfg"
    declared.write_text("[sources.llm]\ncorpus = true\nreliability = 0.6\n")
    made = init_project(tmp_path / "two", **given(files, "text", "terms"), sources=declared)
    assert made.sources == ["gazetteer", "list", "llm"]
    assert {source.name: source.reliability for source in read_sources(tmp_path / "two" / "sources.cfg")}["llm"] == 0.6
    assert "--data 'list" not in (tmp_path / "two" / "project.yml").read_text()
    # A source of the same name writes over what the text has.
    labeled(files, {"text": "Anna", "weak_ents": {"gazetteer": [[0, 4, "PER"]]}})
    init_project(tmp_path / "three", **given(files, "text", "terms"))
    assert [(s.name, s.kind) for s in read_sources(tmp_path / "three" / "sources.cfg")] == [("gazetteer", "terms")]


@pytest.mark.parametrize("in_gold, method", [(True, "weighted"), (False, "union")])
def test_labels_of_the_text_count_by_the_gold_only_if_it_has_them(tmp_path, files, quick, in_gold, method):
    labels = {"weak_ents": {"a": [[0, 4, "PER"]], "b": []}}
    labeled(files, {"text": "Anna", **labels})
    files["gold"].write_text(json.dumps({"text": "Anna", "ents": [], **(labels if in_gold else {})}) + "\n")
    made = init_project(tmp_path / "one", **given(files, "text", "gold"))
    assert load_project_config(made.folder)["vars"]["method"] == method


def test_answers_may_stand_in_the_text(tmp_path, files, quick):
    text = labeled(files, {"text": "Anna", "weak_ents": [[0, 4, "PER"]]})
    assert init_project(tmp_path / "one", text=text, answers=text).sources == ["imported"]
    declared = tmp_path / "home" / "mine.cfg"
    declared.write_text('[sources.kb]\nfile = "labeled.jsonl"\n')
    refuses(tmp_path, r"WK695.*'imported'.*Remove the source 'kb'", text=text, sources=declared)


@pytest.mark.parametrize("name", ["a.b", " a", "a'b", "a$b", "a\nb"])
def test_names_that_no_section_can_have(tmp_path, files, quick, name):
    refuses(tmp_path, r"WK691.*labeled.jsonl", text=labeled(files, {"text": "Anna", "weak_ents": {name: []}}))


def test_what_is_wrong_with_a_text_is_said(tmp_path, files, quick):
    """At once if there is nothing else to learn from, else by the check."""
    labeled(files, {"text": "Anna"}, {"text": "Anna", "weak_ents": [[0, 9, "PER"]]})
    refuses(tmp_path, r"labeled.jsonl, line 2", text=files["text"])
    assert init_project(tmp_path / "two", **given(files, "text", "gold")).sources == []


def test_abbreviations_that_end_no_sentence(tmp_path, files, quick):
    everything = given(files, *EVERYTHING)
    refuses(tmp_path, r"WK689.*wg\.'", **everything, abbreviations="wg.'")
    init_project(tmp_path / "p", **everything, abbreviations="wg., z. B.")
    assert load_project_config(tmp_path / "p", interpolate=False)["vars"]["abbreviations"] == "wg., z. B."


@pytest.mark.parametrize("text, found", [("Heart failure (HF) was seen.", True), ("Anna was here (in HF).", False)])
def test_short_forms_are_looked_for_where_texts_define_abbreviations(tmp_path, files, quick, text, found):
    files["text"].write_text(f"{text}\n")
    init_project(tmp_path / "p", text=files["text"], terms=files["terms"])
    (source,) = read_sources(tmp_path / "p" / "sources.cfg")
    assert source.abbreviations is found
