"""Every config that was a file before recipes came is still there, with all its settings."""

import inspect
import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import spacy
from spacy import registry
from spacy.language import Language

from spacy_weakner.configs import make_config, recipes

ROOT = Path(__file__).parent.parent.parent
EARLIER_FILE = Path(__file__).parent / "earlier.txt"
PAGE = ROOT / "docs" / "configs.md"


# Recipes that came later.
NEW = {"best.gold", "cofee.labels", "crf_ner.votes", "span_ner.oracle"}
# What is something else now, on purpose: the paper's C is the number of epochs of a training, whatever that is.
ADDED = {"components.tok2vec.model.gate", "components.mrc_ner.relabel.at_start"}
CHANGED = {"components.span_ner.sampler.n_epochs": None}
# Picking begins with a model that has learned the labels before, so that it is shorter. A Transformer that is asked
# questions learns from small batches, so that there are more of them.
LENGTHS = {
    ("cofee.picking", "cnn"): {"training.max_steps": 300, "training.before_update.interval": 150},
    ("cofee.picking", "transformer"): {"training.before_update.interval": 125},
    ("cofee.spans", "transformer"): {"training.max_steps": 500},
    ("mrc_ner", "transformer"): {"training.max_steps": 500},
    ("mrc_ner.cross_encoder", "transformer"): {"training.max_steps": 500},
}
# Negative sampling with a CNN averages its weights, which helps.
AVERAGED = ("span_ner", "cnn")
# CoFEE's Transformers read a text once for all questions, as only one recipe did before.
ENCODER = "components.mrc_ner.model.encoder."
ONCE = "mrc_ner/transformer_conditioned"


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


def groups() -> List[Tuple[List[str], Dict[str, Any]]]:
    """Patterns of files, and the settings that these have in common by dotted name."""
    found = []
    for group in EARLIER_FILE.read_text(encoding="utf-8").split("\n\n")[1:]:
        patterns, *settings = group.strip().splitlines()
        pairs = (setting.split(" = ", 1) for setting in settings)
        found.append((patterns.split()[1:], {key: json.loads(value) for key, value in pairs}))
    return found


GROUPS = groups()


def earlier(name: str) -> Dict[str, Any]:
    """The settings of a file by dotted name."""
    own = [settings for patterns, settings in GROUPS if any(fnmatch(name, pattern) for pattern in patterns)]
    return {key: value for settings in own for key, value in settings.items()}


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
    exact = {name for patterns, _ in GROUPS for name in patterns if "*" not in name}
    assert len(EARLIER) == 54 and exact <= set(EARLIER)
    assert set(EARLIER.values()) == {
        (recipe.name, size)
        for recipe in recipes()
        for size in recipe.sizes
        if (recipe.name, size) != ("mrc_ner", "gpu")
        and recipe.name not in NEW
        and size not in ("linear", "linear-static", "static")
    }


@pytest.fixture(scope="module")
def registries():
    spacy.blank("xx")  # fills them


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("name", EARLIER)
def test_every_setting_is_what_it_was(name):
    recipe, size = EARLIER[name]
    config = make_config(recipe, size)
    before, now = earlier(name), flat(config)
    if recipe.startswith("cofee.") and size != "cnn":
        before = {key: value for key, value in before.items() if not key.startswith(ENCODER)}
        before.update({key: value for key, value in earlier(ONCE).items() if key.startswith(ENCODER)})
        before[f"{ENCODER}tok2vec.mixed_precision"] = size == "gpu"
    changed = {**CHANGED, **LENGTHS.get((recipe, size), {})}
    if (recipe.split(".")[0], size) == AVERAGED:
        changed["training.optimizer.use_averages"] = True
    if recipe.startswith("roster."):
        changed["training.eval_frequency"] = "${training.max_steps}"
    before.update({key: value for key, value in changed.items() if key in before})
    now = {key: value for key, value in now.items() if key not in ADDED}
    assert before and set(now) <= set(before)
    assert now == {key: before[key] for key in now}
    left_out = set(before) - set(now)
    assert {key: default(config, key) for key in left_out} == {key: before[key] for key in left_out}
