"""Recipes, parts and sizes of other packages."""

import pytest

from spacy_weakner.configs import make_config, reading, recipes, render_config
from spacy_weakner.configs.recipes import recipes as every
from spacy_weakner.errors import WeaknerError

from ..cli.util import invoke

RECIPE = """# Self-training.

[recipe]
help = "Learns what it is sure of"
sizes = ["tiny", "cnn"]
parts = ["token_ner", "train", "sure"]
"""
PART = """[components.token_ner]
scheme = "BIO"
"""
SIZE = """# Encoder: a tiny one.

[size]
base = "cnn"

[ENCODER]
width = 8
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a package whose import would fail."""

    def install(value="my_method.configs", recipe="my_method"):
        info = tmp_path / "my_method-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-method\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[spacy_weakner_recipes]\nmy_method = {value}\n")
        folder = tmp_path / "my_method" / "configs"
        for name, text in ((f"recipes/{recipe}", RECIPE), ("parts/sure", PART), ("sizes/tiny", SIZE)):
            path = folder / f"{name}.cfg"
            path.parent.mkdir(parents=True)
            path.write_text(text)
        (tmp_path / "my_method" / "__init__.py").write_text("raise ImportError")
        clear()

    def clear():
        for cached in (reading.folders, reading.read_part, every):
            cached.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    clear()


def test_they_are_found_and_composed(package, tmp_path):
    package()
    assert {recipe.name: recipe.sizes for recipe in recipes()}["my_method"] == ("tiny", "cnn")
    config = make_config("my_method")
    ner = config["components"]["token_ner"]
    assert ner["scheme"] == "BIO" and ner["model"]["tok2vec"]["width"] == 8
    assert make_config("my_method", "cnn")["components"]["token_ner"]["model"]["tok2vec"]["width"] > 8
    assert "# Encoder: a tiny one." in render_config("my_method")
    assert "my_method" in invoke("init", "config").stdout
    result = invoke("init", "config", "my_method,crf_ner", tmp_path / "out", "--size", "tiny,cnn")
    assert "crf_ner" in result.stderr or result.exit_code == 1  # which has no size "tiny"
    assert invoke("init", "config", "my_method", tmp_path / "more", "--size", "tiny,cnn").exit_code == 0
    assert (tmp_path / "more" / "tiny" / "my_method.cfg").is_file()


def test_a_name_that_is_taken(package):
    package(recipe="crf_ner")
    assert make_config("crf_ner")["nlp"]["pipeline"] == ["crf_ner"]
    with pytest.raises(WeaknerError, match=r"WK013.*crf_ner"):
        recipes()


@pytest.mark.parametrize("value", ["my_method.none", "nowhere.configs"])
def test_a_folder_that_is_not_there(package, value):
    package(value)
    assert make_config("crf_ner")
    with pytest.raises(WeaknerError, match=r"WK100.*entry point 'my_method'"):
        recipes()
