"""Every recipe is a pipeline in every size that it has."""

import json

import pytest
import spacy
from spacy.schemas import ConfigSchemaInit, ConfigSchemaNlp, ConfigSchemaPretrain, ConfigSchemaTraining
from spacy.util import load_config_from_str, load_model_from_config, registry

from spacy_weakner.configs import encoder_settings, make_config, recipes, render_config

from ..encoders.tables import write_table
from ..sentence_category.util import joint_examples
from ..util import needs_transformers

ALL = [(recipe.name, size) for recipe in recipes() for size in recipe.sizes]
IDS = [f"{name}-{size}" for name, size in ALL]
OWN = [(name, size) for name, size in ALL if size in ("cnn", "static", "bilstm", "linear", "linear-static")]
ON_TRANSFORMERS = [pair for pair in ALL if pair not in OWN]
QUERIES = {"PER": "Which people?", "LOC": "Which places?"}
# Paths without a value.
TO_BE_GIVEN = {"train", "dev", "strong", "weak", "initial", "queries", "terms", "vectors", "oracle", "pieces"}
SMALL = {"embed_size": 20, "max_length": 32, "stride": 4}


def build(name, size, folder, **options):
    """The pipeline of a recipe, initialized and used."""
    # With the tokenizer that is made fastest.
    config = make_config(name, size, lang="xx", **options)
    config["paths"].update(dict.fromkeys(set(config["paths"]) - {"transformer", "vectors"}, str(folder)))
    if "queries" in config["paths"]:
        (folder / "queries.json").write_text(json.dumps(QUERIES))
        config["paths"]["queries"] = str(folder / "queries.json")
    if "pieces" in config["paths"]:
        write_table(folder)
    if "terms" in config["paths"]:
        (folder / "terms.jsonl").write_text(json.dumps({"label": "LOC", "term": "Paris"}))
        config["paths"]["terms"] = str(folder / "terms.jsonl")
    if "oracle" in config["paths"]:
        build("span_ner", "cnn", folder).to_disk(folder / "oracle")
        config["paths"]["oracle"] = str(folder / "oracle")
    # There is no pipeline to start from.
    config["initialize"]["after_init"] = None
    narrow(config["components"])
    nlp = load_model_from_config(config.interpolate(), auto_fill=True)
    examples = joint_examples(nlp)
    if name == "cofee.spans":
        for example in examples:
            example.reference.set_ents([spacy.tokens.Span(example.reference, 0, 1, "Entity")])
    nlp.initialize(lambda: examples)
    nlp("Bob went to Paris")
    return nlp


def sections(config):
    """A config and all its sections."""
    yield config
    for value in config.values():
        if isinstance(value, dict):
            yield from sections(value)


def narrow(config):
    """Make encoders small; the tiny Transformer reads 32 pieces."""
    for section in sections(config):
        section.update({key: value for key, value in SMALL.items() if "@architectures" in section and key in section})
        if str(section.get("@architectures")).endswith("TransformerEncoder.v1") and "width" in section:
            section["width"] = 16
        if "frozen_layers" in section:
            section["frozen_layers"] = min(1, section["frozen_layers"])
        if "rows" in section:  # of one table or of several
            section["rows"] = [20] * len(section["rows"]) if isinstance(section["rows"], list) else 20


@pytest.mark.parametrize("name, size", OWN)
def test_it_is_a_pipeline(name, size, tmp_path):
    nlp = build(name, size, tmp_path)
    assert nlp.pipe_names == make_config(name, size)["nlp"]["pipeline"]


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize("name, size", ON_TRANSFORMERS)
def test_it_is_a_pipeline_on_a_transformer(name, size, tiny_bert, tmp_path):
    encoder = tiny_bert
    if size == "frozen-tok2vec":
        other, encoder = spacy.blank("en"), tmp_path / "other"
        other.add_pipe("tok2vec", config={"model": {"width": 8, "depth": 1}})
        other.initialize()
        other.to_disk(encoder)
    nlp = build(name, size, tmp_path, transformer=str(encoder))
    assert nlp.pipe_names == make_config(name, size)["nlp"]["pipeline"]


@pytest.mark.parametrize("name, size", ALL, ids=IDS)
def test_the_text_is_the_config_with_all_that_spacy_asks_for(name, size):
    text = render_config(name, size)
    config = load_config_from_str(text, interpolate=False)
    assert config == make_config(name, size)
    assert all(len(line) < 130 for line in text.splitlines())
    assert f"# Written by: spacy weakner init config {name} --size {size}\n" in text
    given = {key for key, value in config["paths"].items() if value is None}
    assert given and given <= TO_BE_GIVEN
    config = config.interpolate()
    ConfigSchemaNlp.model_validate(registry.resolve(config["nlp"]))
    before = registry.resolve({"it": config["initialize"]["before_init"]})
    ConfigSchemaInit.model_validate({**config["initialize"], "before_init": before["it"], "after_init": None})
    for section, schema in (("training", ConfigSchemaTraining), ("pretraining", ConfigSchemaPretrain)):
        needed = {name for name, field in schema.model_fields.items() if field.is_required()}
        assert section not in config or needed <= set(config[section])
    for section in ("batcher", "optimizer", "logger"):
        registry.resolve({"it": config["training"][section]})


@pytest.mark.parametrize("head", ["crf_ner", "span_ner", "token_ner", "mrc_ner"])
def test_a_component_that_is_told_nothing_is_that_of_its_recipe(head):
    spacy.blank("xx")
    defaults = spacy.Language.get_factory_meta(head).default_config
    settings = make_config(head)["components"][head]
    assert not {key for key in defaults if key in settings and settings[key] != defaults[key]}


def test_the_classifier_of_sentences_has_the_same_encoder():
    defaults = spacy.Language.get_factory_meta("sentence_category").default_config
    assert defaults["model"]["tok2vec"] == encoder_settings("cnn")
    assert encoder_settings("gpu")["mixed_precision"] == "bf16"
