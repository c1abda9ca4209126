"""`spacy weakner init config`"""

import shutil

import pytest
from spacy.util import load_config, load_config_from_str
from typer.testing import CliRunner

from spacy_weakner.cli.app import app
from spacy_weakner.configs import make_config, recipes, render_config


def invoke(*args):
    return CliRunner().invoke(app, ["init", "config", *map(str, args)])


@pytest.mark.parametrize("output", [(), ("-",)])
def test_stdout_gets_the_config_and_nothing_else(output):
    result = invoke("span_ner.weighted", *output)
    assert result.exit_code == 0 and result.stdout == render_config("span_ner.weighted")
    assert load_config_from_str(result.stdout) == make_config("span_ner.weighted")


def test_a_file(tmp_path):
    path = tmp_path / "new" / "config.cfg"
    options = ("--size", "transformer", "--lang", "de", "--tokenizer", "spacy.Tokenizer.v1", "--transformer", "x/y")
    result = invoke("crf_ner", path, *options)
    assert result.exit_code == 0 and "config.cfg" in result.output
    given = {"lang": "de", "tokenizer": "spacy.Tokenizer.v1", "transformer": "x/y"}
    assert path.read_text(encoding="utf-8") == render_config("crf_ner", "transformer", **given)


def test_a_file_is_not_replaced_unasked(tmp_path):
    path = tmp_path / "config.cfg"
    path.write_text("mine")
    result = invoke("crf_ner", path)
    assert result.exit_code == 1 and "[WK314]" in result.output and "--overwrite" in result.output
    assert path.read_text() == "mine"
    assert invoke("crf_ner", path, "--overwrite").exit_code == 0
    assert path.read_text() == render_config("crf_ner")
    (tmp_path / "folder.cfg").mkdir()
    for more in ((), ("--overwrite",)):
        assert "[WK109]" in invoke("crf_ner", tmp_path / "folder.cfg", *more).output


def test_changed_configs_are_kept_and_said(tmp_path):
    assert invoke("crf_ner,span_ner", tmp_path, "--size", "cnn").exit_code == 0
    first, second = tmp_path / "crf_ner.cfg", tmp_path / "span_ner.cfg"
    mine, theirs = first.read_text() + "\n# mine\n", second.read_text()
    first.write_text(mine)
    result = invoke("crf_ner,span_ner", tmp_path, "--size", "transformer")
    assert result.exit_code == 0 and "crf_ner.cfg" in result.output and "--overwrite" in result.output
    assert first.read_text() == mine
    # What was not changed follows the settings.
    result = invoke("crf_ner,span_ner", tmp_path, "--size", "static")
    assert first.read_text() == mine and second.read_text() != theirs
    assert invoke("crf_ner,span_ner", tmp_path, "--size", "static", "--overwrite").exit_code == 0
    assert first.read_text() != mine
    # Files of others are refused as before.
    (tmp_path / "token_ner.cfg").write_text("[nlp]")
    result = invoke("token_ner", tmp_path)
    assert result.exit_code == 1 and "[WK314]" in result.output


@pytest.mark.parametrize("size", ["bilstm", "linear", "frozen"])
def test_no_config_has_another_size(tmp_path, size):
    result = invoke("all", tmp_path, "--size", size)
    assert result.exit_code == 0
    lacking = {known.name for known in recipes() if size not in known.sizes}
    assert lacking and all(name in result.output for name in lacking)
    assert {path.stem for path in tmp_path.glob("*.cfg")} == {known.name for known in recipes()} - lacking
    # Named ones are refused, and then none is written.
    for given in ((f"crf_ner,joint.ner,{min(lacking)}", size), (min(lacking), f"{size},cnn")):
        assert invoke(given[0], tmp_path / "new", "--size", given[1]).exit_code == 1
        assert not (tmp_path / "new").exists()


def test_a_folder(tmp_path):
    assert invoke("crf_ner,best.gold", tmp_path, "--size", "linear").exit_code == 0
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["best.gold.cfg", "crf_ner.cfg"]
    assert (tmp_path / "crf_ner.cfg").read_text(encoding="utf-8") == render_config("crf_ner", "linear")
    assert (tmp_path / "best.gold.cfg").read_text(encoding="utf-8") == render_config("best.gold", "linear")
    assert "cnnn" in invoke("crf_ner", tmp_path, "--size", "linear,cnnn").output
    for sizes in ("linear,cnn", "cnn,cnn"):
        assert invoke("crf_ner", tmp_path / sizes, "--size", sizes).exit_code == 0
        for size in sizes.split(","):
            assert (tmp_path / sizes / size / "crf_ner.cfg").read_text(encoding="utf-8") == render_config(
                "crf_ner", size
            )
        shutil.rmtree(tmp_path / sizes)
    assert invoke("all", tmp_path, "--overwrite").exit_code == 0
    assert len(list(tmp_path.glob("*.cfg"))) == len(recipes())
    # Several files need a folder, whatever its name looks like.
    for several in (("crf_ner,best.gold",), ("crf_ner", "--size", "linear,cnn")):
        assert invoke(several[0], tmp_path / "new" / "my.configs", *several[1:]).exit_code == 0
    names = {path.relative_to(tmp_path / "new").as_posix() for path in (tmp_path / "new").rglob("*.cfg")}
    assert names == {f"my.configs/{name}.cfg" for name in ("crf_ner", "best.gold", "linear/crf_ner", "cnn/crf_ner")}


def test_the_list():
    result = invoke()
    assert result.exit_code == 0
    assert all(recipe.name in result.output and recipe.help in result.output for recipe in recipes())


RATIO = "components.span_ner.sampler.ratio"


def test_settings_of_recipes(tmp_path):
    given = f"span_ner*:{RATIO}=0.1 crf_ner:training.optimizer.learn_rate=5e-5"
    result = invoke("crf_ner,span_ner,span_ner.oracle", tmp_path, "--set", given, "--set", "")
    assert result.exit_code == 0, result.output
    for name, values in {
        "crf_ner": {"training.optimizer.learn_rate": 5e-5},
        "span_ner": {RATIO: 0.1},
        "span_ner.oracle": {RATIO: 0.1},
    }.items():
        assert (tmp_path / f"{name}.cfg").read_text() == render_config(name, overrides=values)
        assert load_config_from_str(render_config(name, overrides=values)) == make_config(name, overrides=values)
    # Without them, a config that was not changed by hand is written anew.
    assert invoke("crf_ner", tmp_path / "", "--size", "cnn").exit_code == 0
    assert (tmp_path / "crf_ner.cfg").read_text() == render_config("crf_ner")


@pytest.mark.parametrize(
    "given, named",
    [
        ("crf_ner:training.optimizer.learn_rat=1", "one of: training.optimizer.learn_rate,"),
        ("crf_nr:training.dropout=1", "one of: crf_ner,"),
        ("crf_ner:training.dropout=much", "such as 0.2"),
        ("crf_ner:training.dropout=true", "such as 0.2"),
        ("crf_ner:training.dropout=null", "such as 0.2"),
        ("crf_ner:training.max_steps=1.5", "such as"),
        ("crf_ner:training.max_steps=true", "such as"),
        ("crf_ner:training=3", "a section"),
        ('crf_ner:training.batcher={"@batchers":"x"}', "a section"),
        ("crf_ner:training.dropout='0.1", "quote"),
        ("training.dropout=0.1", "RECIPE:SETTING=VALUE"),
        ("crf_ner:training.dropout", "RECIPE:SETTING=VALUE"),
    ],
)
@pytest.mark.parametrize("output", ["-", "out.cfg", "folder"])
def test_unknown_settings_are_refused(tmp_path, given, named, output):
    output = output if output == "-" else tmp_path / output
    result = invoke("crf_ner", output, "--set", given)
    assert result.exit_code == 1 and "[WK005]" in result.output and named in result.output
    assert not list(tmp_path.iterdir())
    assert len(result.output) < 600


def test_values_of_sections_and_variables(tmp_path):
    section = '{"@misc":"spacy_weakner.UniformNegativeSampler.v1","ratio":0.1}'
    given = f"'span_ner:{RATIO.rpartition('.')[0]}={section}' span_ner:training.max_steps=${{training.patience}}"
    result = invoke("span_ner", tmp_path / "out.cfg", "--set", given)
    assert result.exit_code == 0, result.output
    assert load_config(tmp_path / "out.cfg")["components"]["span_ner"]["sampler"]["ratio"] == 0.1


def test_a_config_changed_by_hand_takes_no_values(tmp_path):
    assert invoke("crf_ner,span_ner", tmp_path).exit_code == 0
    path, other = tmp_path / "crf_ner.cfg", tmp_path / "span_ner.cfg"
    path.write_text(path.read_text() + "# by hand\n")
    before = other.read_text()
    result = invoke("span_ner,crf_ner", tmp_path, "--set", "*:training.dropout=0.3")
    assert result.exit_code == 1 and "[WK331]" in result.output and "crf_ner.cfg" in result.output
    assert other.read_text() == before and path.read_text().endswith("# by hand\n")
    # Values for other recipes are no matter.
    assert invoke("span_ner,crf_ner", tmp_path, "--set", "span_ner:training.dropout=0.3").exit_code == 0
    assert other.read_text() != before and path.read_text().endswith("# by hand\n")


def test_settings_of_one_of_several_sizes(tmp_path):
    setting = "components.crf_ner.model.tok2vec.embed_size"
    result = invoke("crf_ner", tmp_path, "--size", "linear,cnn", "--set", f"crf_ner:{setting}=500")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "cnn/crf_ner.cfg").read_text() == render_config("crf_ner", "cnn", overrides={setting: 500})
    assert (tmp_path / "linear/crf_ner.cfg").read_text() == render_config("crf_ner", "linear")


def test_nothing_is_written_after_an_error(tmp_path):
    (tmp_path / "span_ner.cfg").write_text("x")
    assert invoke("crf_ner,span_ner", tmp_path).exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["span_ner.cfg"]


def test_settings_of_other_recipes_are_said(tmp_path):
    result = invoke("crf_ner", tmp_path, "--set", f"span_ner:{RATIO}=0.1")
    assert result.exit_code == 0 and "Not set" in result.output


def test_a_file_is_written_again_unless_it_was_changed(tmp_path):
    path = tmp_path / "config.cfg"
    for more in ((), (), ("--size", "linear")):
        assert invoke("crf_ner", path, *more).exit_code == 0
    assert path.read_text(encoding="utf-8") == render_config("crf_ner", "linear")
    path.write_text(path.read_text() + "\n# mine\n")
    assert "[WK314]" in invoke("crf_ner", path).output and "# mine" in path.read_text()
    assert invoke("crf_ner", path, "--overwrite").exit_code == 0
    assert path.read_text(encoding="utf-8") == render_config("crf_ner")
