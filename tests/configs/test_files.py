"""What the repository and the wheel hold."""

import re
from pathlib import Path

import pytest
from spacy.util import load_config

import spacy_weakner
from spacy_weakner.configs import make_config, recipes, render_config

PACKAGE = Path(spacy_weakner.__file__).parent
ROOT = PACKAGE.parent
RENDERED = ROOT / "configs"
needs_source = pytest.mark.skipif(not RENDERED.exists(), reason="not in a source tree")


@needs_source
def test_there_is_one_config_for_every_recipe():
    assert {path.name for path in RENDERED.rglob("*")} == {f"{recipe.name}.cfg" for recipe in recipes()}


@needs_source
@pytest.mark.parametrize("name", [recipe.name for recipe in recipes()])
def test_it_is_what_init_config_writes(name):
    path = RENDERED / f"{name}.cfg"
    assert path.read_text(encoding="utf-8") == render_config(name), (
        f"configs/{name}.cfg is out of date. Write it anew: "
        f"python -m spacy_weakner init config {name} configs/{name}.cfg --overwrite"
    )


@needs_source
def test_settings_can_be_overridden():
    assert make_config("crf_ner")["corpora"]["train"]["path"] == "${paths.train}"
    overrides = {"paths.train": "a.spacy", "training.max_steps": 7, "corpora.train.limit": 3}
    overrides["initialize.after_init"] = None
    config = load_config(RENDERED / "needle.finetune.cfg", overrides=overrides).interpolate()
    assert config["corpora"]["train"] == {"@readers": "spacy_weakner.Corpus.v1", "path": "a.spacy", "limit": 3}
    assert config["training"]["max_steps"] == 7 and config["initialize"]["after_init"] is None


def test_comments_come_along():
    text = render_config("needle.noise_aware", "transformer")
    assert text.startswith("# NEEDLE, stage II:") and "# Encoder: a Transformer" in text
    assert '# Completed labels may violate the tag scheme; predictions never do.\nconstrain = "decoding"\n' in text
    assert "\n\n# Batches of sentences of similar length need little padding.\n[training.batcher]\n" in text
    assert "Share of gold among" not in text, "a comment that another replaces"


def test_every_part_is_used():
    used = {"base"} | {f"recipes/{recipe.name}" for recipe in recipes()}
    used |= {f"parts/{part}" for recipe in recipes() for part in recipe.parts}
    used |= {f"sizes/{size}" for recipe in recipes() for size in recipe.sizes}
    folder = PACKAGE / "configs"
    assert {str(path.relative_to(folder))[: -len(".cfg")] for path in folder.rglob("*.cfg")} == used


@needs_source
def test_the_page_lists_every_recipe():
    page = (ROOT / "docs" / "configs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \| ([^`]+) \| ([\w, -]+) \|$", page, flags=re.M)
    assert rows == [(recipe.name, recipe.help, ", ".join(recipe.sizes)) for recipe in recipes()]
