"""Which component of a pipeline is asked, and how it splits texts."""

import pytest
import spacy

from spacy_weakner.heads.entities import EntityHead
from spacy_weakner.pipelines import TOKENIZER, add_sentences, default_component, load_pipeline

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


def test_components_keep_what_they_tokenize_when_they_are_loaded(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "X", "pattern": "it isn't in the U.K."}])
    nlp.to_disk(tmp_path)
    assert load_pipeline(tmp_path, TOKENIZER)(nlp.make_doc("Now it isn't in the U.K.")).ents
