"""Which component of a pipeline is asked, and how it splits texts."""

import pytest
import spacy

from spacy_weakner.heads.entities import EntityHead
from spacy_weakner.pipelines import TOKENIZER, add_sentences, blank_pipeline, default_component, load_pipeline

from .util import head_config


def pipeline_of(*parts):
    nlp = spacy.blank("xx")
    for name, annotate_ents in parts:
        nlp.add_pipe("crf_ner", name=name, config={**head_config("crf_ner"), "annotate_ents": annotate_ents})
    return nlp


@pytest.mark.parametrize(
    "parts, expected",
    [
        ((), None),
        ((("a", True),), "a"),
        ((("a", True), ("b", True)), "b"),
        # What only proposes decides nothing.
        ((("a", True), ("b", False)), "a"),
        ((("a", False), ("b", False)), "b"),
    ],
)
def test_the_last_that_writes_entities_decides(parts, expected):
    found = default_component(pipeline_of(*parts), lambda pipe: isinstance(pipe, EntityHead))
    assert (None if found is None else found[0]) == expected


@pytest.mark.parametrize("there, names", [([], ["sentencizer"]), (["senter"], ["senter"]), (["parser"], ["parser"])])
def test_a_pipeline_splits_texts_once(there, names):
    nlp = spacy.blank("xx")
    for name in there:
        nlp.add_pipe(name)
    add_sentences(nlp)
    add_sentences(nlp)
    assert nlp.pipe_names == names


@pytest.mark.parametrize("tokenizer", [None, "spacy_weakner.WordTokenizer.v1"])
def test_an_excluded_tokenizer_is_not_created(tmp_path, tokenizer):
    nlp = blank_pipeline("en", tokenizer)
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path)
    found = load_pipeline(tmp_path, TOKENIZER)
    assert not found.tokenizer.rules
    assert found.pipe_names == ["sentencizer"] and found.vocab.lang == "en"
    assert load_pipeline(tmp_path).tokenizer.to_bytes() == nlp.tokenizer.to_bytes()
