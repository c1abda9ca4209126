"""Every config that was a file before recipes came is still there, with all its settings."""

import inspect
import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict

import pytest
import spacy
from spacy import registry
from spacy.language import Language

from spacy_weakner.configs import make_config, recipes

ROOT = Path(__file__).parent.parent.parent
GROUPS = (Path(__file__).parent / "earlier.txt").read_text(encoding="utf-8").split("\n\n")[1:]
PAGE = ROOT / "docs" / "configs.md"


def table():
    """Recipe and size by earlier file, as the page for users has them."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        recipe = re.match(r"\| `([\w.]+)` \|", line)
        for size, name in re.findall(r"(\w+): `configs/([\w/]+)\.cfg`", line):
            found[name] = recipe[1], size
    return found


EARLIER = table() if PAGE.exists() else {}
pytestmark = pytest.mark.skipif(not EARLIER, reason="not in a source tree")


def earlier(name: str) -> Dict[str, Any]:
    """The settings of a file by dotted name."""
    found = {}
    for group in GROUPS:
        patterns, *settings = group.strip().splitlines()
        if any(fnmatch(name, pattern) for pattern in patterns.split()[1:]):
            found.update(setting.split(" = ", 1) for setting in settings)
    return {key: json.loads(value) for key, value in found.items()}


def flat(config: Dict[str, Any], prefix: str = "") -> Dict[str, Any]:
    """The settings of a config by dotted name."""
    found: Dict[str, Any] = {}
    for key, value in config.items():
        inner = isinstance(value, dict) and value
        found.update(flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value})
    return found


def default(config: Dict[str, Any], name: str) -> Any:
    """What a setting is that a config leaves out."""
    *path, key = name.split(".")
    if path == ["training", "score_weights"]:
        factories = [settings["factory"] for settings in config["components"].values()]
        weights = [Language.get_factory_meta(factory).default_score_weights for factory in factories]
        return {name: value for own in weights for name, value in own.items()}[key]
    section = config
    for step in path:
        section = section[step]
    if "factory" in section:
        return Language.get_factory_meta(section["factory"]).default_config[key]
    (kind,) = (kind for kind in section if kind.startswith("@"))
    return inspect.signature(registry.get(kind[1:], section[kind])).parameters[key].default


def test_the_table_names_every_earlier_file():
    exact = {name for group in GROUPS for name in group.splitlines()[0].split()[1:] if "*" not in name}
    assert len(EARLIER) == 54 and exact <= set(EARLIER)
    assert set(EARLIER.values()) == {
        (recipe.name, size)
        for recipe in recipes()
        for size in recipe.sizes
        if (recipe.name, size) != ("mrc_ner.conditioned", "gpu")  # new
    }


@pytest.mark.parametrize("name", EARLIER)
def test_every_setting_is_what_it_was(name):
    spacy.blank("en")  # fills the registries
    recipe, size = EARLIER[name]
    config = make_config(recipe, size)
    before, now = earlier(name), flat(config)
    assert before and set(now) <= set(before)
    assert now == {key: before[key] for key in now}
    left_out = set(before) - set(now)
    assert {key: default(config, key) for key in left_out} == {key: before[key] for key in left_out}
