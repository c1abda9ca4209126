"""What can be asked for, and what is said when it does not exist."""

import pytest
from spacy.util import load_model_from_config

from spacy_weakner.configs import make_config, recipes, render_config
from spacy_weakner.configs.recipes import SIZES
from spacy_weakner.errors import WeaknerError

TOKENIZER = "spacy_weakner.WordTokenizer.v1"


def tokens(text, **options):
    config = make_config("crf_ner", **options)
    config["components"]["crf_ner"]["model"]["tok2vec"]["embed_size"] = 20
    nlp = load_model_from_config(config.interpolate(), auto_fill=True)
    return nlp.lang, [token.text for token in nlp.make_doc(text)]


@pytest.mark.parametrize(
    "options, found",
    [
        ({}, ("en", ["do", "n't"])),
        ({"lang": "xx"}, ("xx", ["don't"])),
        ({"lang": "zh"}, ("zh", list("don't"))),
        ({"tokenizer": TOKENIZER}, ("en", ["don", "'", "t"])),
        ({"lang": "zh", "tokenizer": TOKENIZER}, ("zh", ["don", "'", "t"])),
        ({"lang": "de", "tokenizer": ""}, ("de", ["don't"])),
    ],
)
def test_language_and_tokenizer(options, found):
    assert tokens("don't", **options) == found


def test_a_tokenizer_takes_its_settings_along():
    text = '[nlp.tokenizer]\n@tokenizers = "spacy.zh.ChineseTokenizer"\nsegmenter = "char"\n'
    assert text in render_config("crf_ner", lang="zh")
    config = make_config("token_ner", lang="de").interpolate()
    assert load_model_from_config(config, auto_fill=True).tokenizer.explain("z.B.")[0][1] == "z.B."


def test_size():
    cnn, large = make_config("crf_ner"), make_config("crf_ner", "gpu")
    assert cnn == make_config("crf_ner", "cnn") != large
    assert large["system"]["gpu_allocator"] == "pytorch" and cnn["system"]["gpu_allocator"] is None
    assert make_config("joint.joint") == make_config("joint.joint", "bilstm")


def test_precision():
    assert make_config("crf_ner", "transformer")["initialize"]["before_init"]["precision"] is None
    config = make_config("crf_ner", "transformer", precision="medium")
    assert config["initialize"]["before_init"]["precision"] == "medium"
    text = render_config("crf_ner", "transformer", precision="medium")
    assert "--size transformer --precision medium\n" in text and 'precision = "medium"' in text


def test_transformer():
    assert make_config("crf_ner", "gpu", transformer="")["paths"]["transformer"] == "roberta-base"
    config = make_config("crf_ner", "gpu", transformer="my folder")
    assert config["paths"]["transformer"] == "my folder"
    assert config.interpolate()["components"]["crf_ner"]["model"]["tok2vec"]["name"] == "my folder"
    # Every config is a new one, and its text says how it was made.
    assert make_config("crf_ner", "gpu")["paths"]["transformer"] == "roberta-base"
    text = render_config("crf_ner", "gpu", lang="zh", tokenizer=TOKENIZER, transformer="my folder")
    assert f"crf_ner --size gpu --lang zh --tokenizer {TOKENIZER} --transformer 'my folder'\n" in text


@pytest.mark.parametrize(
    "arguments, options, told",
    [
        (("crf_nr",), {}, r"WK005.*'crf_nr'.*: crf_ner, "),
        (("strong_weak",), {}, r"WK005.*: (crf|span)_ner\.strong_weak, (crf|span)_ner\.strong_weak, .*token_ner"),
        (("nothing like it",), {}, r"WK005.*: .*cofee\.finetune"),
        (("../base",), {}, "WK005"),
        (("crf_ner", "cpu"), {}, r"WK005.*'cpu'.*: .*cnn"),
        (("crf_ner", "transformers"), {}, r"WK005.*: transformer, cnn, static, gpu"),
        (("joint.ner", "gpu"), {}, r"WK005.*: bilstm"),
        (("crf_ner",), {"transformer": "x"}, r"WK602.*'cnn'.*: transformer, gpu"),
        (("joint.ner",), {"transformer": "x"}, r"WK602.*: none"),
        (("crf_ner",), {"precision": "medium"}, r"WK602.*'cnn'.*: transformer, gpu"),
        (("crf_ner", "gpu"), {"precision": "low"}, r"WK005.*'precision'.*highest, high, medium"),
        (("crf_ner",), {"lang": "e n"}, r"WK005.*'e n'.*: en, "),
        (("crf_ner",), {"tokenizer": "WordTokenizer.v1"}, rf"WK005.*{TOKENIZER}"),
    ],
)
def test_what_does_not_exist(arguments, options, told):
    with pytest.raises(WeaknerError, match=told):
        make_config(*arguments, **options)


def test_recipes_are_listed():
    found = {recipe.name: recipe for recipe in recipes()}
    assert len(found) >= 20 and list(found) == sorted(found)
    assert found["crf_ner"].sizes == tuple(size for size in SIZES if size != "bilstm")
    assert all(recipe.help and "\n" not in recipe.help and not recipe.help.endswith(".") for recipe in found.values())
