import importlib.util
import json
import re

import pytest

from spacy_weakner.configs import render_config
from spacy_weakner.errors import WeaknerError

from .conftest import GOLD, found


@pytest.fixture(autouse=True)
def no_hub(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def installed(monkeypatch):
    """Pretends that only the packages given are missing."""
    find = importlib.util.find_spec

    def installed(*missing):
        def fake(name):
            return None if name in missing else object() if "transformers" in name else find(name)

        monkeypatch.setattr("spacy_weakner.checks.settings.find_spec", fake)

    return installed


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"size": "cn"}, "--size cn: .WK005.*one of: cnn, .*static, bilstm, transformer, gpu"),
        ({"lang": "qq"}, "--lang qq: .WK005.*one of: "),
        ({"lang": "char_classes"}, "--lang char_classes: .WK005"),
        ({"lang": "en.stop_words"}, "--lang en.stop_words: .WK005"),
        ({"tokenizer": "qq"}, r"--tokenizer qq: .WK005.*spacy_weakner.WordTokenizer.v1"),
        ({"gpu_id": 99}, "--gpu-id 99: .WK432"),
        ({"gpu_id": -2}, "--gpu-id -2: .WK005"),
    ],
)
def test_bad_settings(check, settings, expected):
    report = check(settings, gold=GOLD)
    (error,) = found(report, "error")
    assert re.search(expected, error)
    assert report.labels[0].counts == {"PER": 60, "DRUG": 60}  # everything else was looked at


@pytest.mark.parametrize("size, n", [("cnn", 0), ("frozen-tok2vec", 0), ("frozen", 1), ("transformer", 1)])
def test_missing_extras(check, installed, size, n):
    installed("transformers")
    errors = found(check({"size": size}), "error")
    cure = 'needs a package that is not installed: transformers. -> pip install "spacy_weakner[transformers]"'
    assert len(errors) == n and all(cure in error for error in errors)


def test_a_large_encoder_on_the_cpu(check, installed):
    installed()
    assert "takes hours" in found(check({"size": "gpu"}), "warning")[0]


@pytest.mark.parametrize(
    "name, level, expected",
    [
        ("org/model", "info", "will be downloaded"),
        ("./model", "error", "no such folder"),
        ("a/b/c", "error", "no such folder"),
        ("{tmp}/empty", "error", "lacks config.json"),
        ("{tmp}/file", "error", "This is a file"),
    ],
)
def test_transformer(check, installed, monkeypatch, tmp_path, name, level, expected):
    installed()
    monkeypatch.delenv("HF_HUB_OFFLINE")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    settings = {"size": "transformer", "transformer": name.format(tmp=tmp_path)}
    (message,) = found(check(settings), level)
    assert expected in message


def test_a_transformer_that_is_there(check, installed, tmp_path):
    installed()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()
    assert not check({"size": "transformer", "transformer": str(tmp_path)}).findings
    (tmp_path / "hub" / "models--org--model" / "snapshots" / "1").mkdir(parents=True)
    assert not check({"size": "transformer", "transformer": "org/model"}).findings


@pytest.fixture
def check_transformer(check, installed, tmp_path):
    """Checks a Transformer in a folder, by its config.json, with a config of a size."""
    installed()
    bert, configs = tmp_path / "bert", tmp_path / "configs"
    bert.mkdir()
    for name in ("model.safetensors", "tokenizer.json"):
        (bert / name).touch()

    def check_transformer(described, size="transformer", config=None):
        (bert / "config.json").write_text(described)
        (configs / size).mkdir(parents=True)
        (configs / size / "best.gold.cfg").write_text(
            config or render_config("best.gold", size, lang="xx", transformer=str(bert))
        )
        return check({"size": size, "transformer": str(bert), "configs": configs}, gold=GOLD)

    return check_transformer


@pytest.mark.parametrize(
    "width, size, is_warned", [(768, "transformer", True), (384, "transformer", False), (768, "gpu", False)]
)
def test_learning_rates_of_small_transformers(check_transformer, width, size, is_warned):
    warnings = found(check_transformer(json.dumps({"hidden_size": width}), size), "warning")
    assert any("vectors of width 768" in text for text in warnings) is is_warned


@pytest.mark.parametrize(
    "size, config_size, precision, cure",
    [
        ("frozen", "frozen", None, "--size frozen --transformer {bert}"),
        ("transformer", "transformer", "medium", "--size transformer --transformer {bert} --precision medium"),
        ("frozen", "frozen-tok2vec", None, "make a new project.* --transformer {bert}"),
    ],
)
def test_a_config_of_another_transformer(check_transformer, tmp_path, size, config_size, precision, cure):
    config = render_config("best.gold", config_size, lang="xx", transformer="other/model", precision=precision)
    (error,) = found(check_transformer("{}", size, config), "error")
    assert re.search(f"its Transformer is 'other/model'.*{cure.format(bert=tmp_path / 'bert')}", error, re.DOTALL)


@pytest.mark.parametrize("size, there, errors", [("gpu", "frozen", 0), ("gpu", "linear", 1), ("linear", "frozen", 1)])
def test_configs_of_a_size(check, installed, tmp_path, size, there, errors):
    installed()
    (tmp_path / "configs" / there).mkdir(parents=True)
    report = check({"size": size, "configs": tmp_path / "configs"}, gold=GOLD)
    assert sum("no configs of the size" in text for text in found(report, "error")) == errors


@pytest.mark.parametrize(
    "described, config, errors",
    [
        ("{", None, [r"--transformer .*WK206.*config\.json"]),
        ("[]", None, []),
        ('{"hidden_size": null}', None, []),
        ('{"hidden_size": 768}', "[training", [r"--configs .*best\.gold\.cfg: .WK108"]),
    ],
)
def test_damaged_configs_end_no_check(check_transformer, described, config, errors):
    report = check_transformer(described, config=config)
    for error, expected in zip(found(report, "error"), errors, strict=True):
        assert re.search(expected, error)
    assert report.labels[0].counts == {"PER": 60, "DRUG": 60}  # everything else was looked at


def test_a_name_without_network(check, installed):
    installed()  # HF_HUB_OFFLINE is set for all tests
    (error,) = found(check({"size": "transformer", "transformer": "org/model"}), "error")
    assert "HF_HUB_OFFLINE is set" in error


def test_settings_of_the_check_itself(check):
    with pytest.raises(WeaknerError, match=r"WK005.*misaligned"):
        check({"misaligned": "guess"})
