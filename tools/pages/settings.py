"""Ini blocks: each has to be what its page says it is."""

import re
from pathlib import Path
from typing import Any, Dict, Set

from spacy import registry, util
from spacy.language import Language
from spacy.schemas import ConfigSchemaPretrain, ConfigSchemaTraining
from thinc.api import Config

from spacy_weakner.configs import render_config
from spacy_weakner.labeling.sources import read_sources

from .blocks import Block

# The recipe (and size) whose config has what a block about a component needs.
HOMES = {
    "crf_ner": "crf_ner cnn",
    "span_ner": "span_ner cnn",
    "token_ner": "roster.noise_robust cnn",
    "mrc_ner": "mrc_ner cnn",
    "sentence_category": "joint.joint bilstm",
}
PATHS = {"train": "gold.spacy", "dev": "dev.spacy", "strong": "gold.spacy", "weak": "weak.spacy"}


def check_settings(block: Block, transformer: Path) -> None:
    """Make sure that the settings exist and can be resolved."""
    given = Config().from_str(with_parents(block.text), interpolate=False)
    if "part" in block.marks:
        return
    if set(given) == {"sources"}:
        if "file" not in block.marks:
            Path("sources.cfg").write_text(block.text, encoding="utf-8")
        assert read_sources(Path(block.marks.get("file") or "sources.cfg"))
        return
    if set(given) <= {"grid"} or set(given) == {"paths"}:
        return
    config = given if "nlp" in given else _home(block, given)
    paths = {**PATHS, "transformer": str(transformer), "initial": "training/model-best", "queries": "queries.json"}
    config.setdefault("paths", {})
    config["paths"].update({key: value for key, value in paths.items() if config["paths"].get(key, "") is None})
    config["paths"]["transformer"] = str(transformer)
    config.setdefault("system", {}).setdefault("seed", 0)
    resolve_all(config, set(given))


def with_parents(text: str) -> str:
    """The text with the sections above each section, which a whole config has."""
    sections = re.findall(r"^\[([^\]]+)\]", text, flags=re.M)
    above = [section[: found.start()] for section in sections for found in re.finditer(r"\.", section)]
    # "*" holds positional arguments, and is no section.
    missing = [section for section in dict.fromkeys(above) if section not in sections and not section.endswith(".*")]
    return "".join(f"[{section}]\n\n" for section in missing) + text


def resolve_all(config: Config, sections: Set[str]) -> Language:
    """Make the pipeline of a config, and whatever else the sections of a block say."""
    config = config.interpolate()
    nlp = util.load_model_from_config(config, auto_fill=True, validate=True)
    filled = nlp.config.interpolate()
    if "training" in sections and "training" in config:
        registry.resolve(config["training"], schema=ConfigSchemaTraining, validate=False)
    if "pretraining" in sections and config["pretraining"]:
        registry.resolve(config["pretraining"], schema=ConfigSchemaPretrain, validate=False)
    if "corpora" in sections:
        registry.resolve(config["corpora"])
    if "initialize" in sections:
        given: Dict[str, Any] = filled["initialize"]
        registry.resolve({key: given[key] for key in ("components", "before_init", "after_init") if given.get(key)})
    return nlp


def _home(block: Block, given: Config) -> Config:
    """A whole config that has the settings of a block."""
    names = [*given.get("components", {}), *given.get("initialize", {}).get("components", {})]
    names = [name for name in dict.fromkeys(names) if name not in ("tok2vec", "transformer")]
    homes = [HOMES[name] for name in names if name in HOMES]
    home = block.marks.get("onto") or (homes[-1] if homes else "" if names else "crf_ner cnn")
    base = Config({"nlp": {"lang": "en", "pipeline": []}, "components": {}})
    if home:
        base = Config().from_str(render_config(*home.split()), interpolate=False)
    config = base.merge(given)
    for name in names:
        config["components"].setdefault(name, {"factory": name})
        config["components"][name].setdefault("factory", name)
        if name not in config["nlp"]["pipeline"]:
            config["nlp"]["pipeline"].append(name)
    return config
