"""Nested entities from a term list to scores, by the commands."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.corpus.weak import group_entities, set_group

from ..cli.util import invoke
from ..util import head_config, train

TERMS = "label,term\nORG,University of Rome\nLOC,Rome\nLOC,Oslo\nORG,Bank of Oslo\n"
TEXTS = ["University of Rome grows", "Rome has a Bank of Oslo", "Oslo sleeps"]
NESTED = [
    [(0, 3, "ORG"), (2, 3, "LOC")],
    [(0, 1, "LOC"), (3, 6, "ORG"), (5, 6, "LOC")],
    [(0, 1, "LOC")],
]


@pytest.mark.slow
def test_from_a_list_to_scores(tmp_path):
    nlp = spacy.blank("xx")
    gold = [Doc(nlp.vocab, words=text.split()) for text in TEXTS]
    for doc, spans in zip(gold, NESTED, strict=True):
        set_group(doc, "sc", spans)
    write_docs(tmp_path / "gold.spacy", gold)
    (tmp_path / "terms.csv").write_text(TERMS)
    for args in (
        ("label", tmp_path / "gold.spacy", tmp_path / "labeled.spacy", "--terms", tmp_path / "terms.csv"),
        ("aggregate", tmp_path / "labeled.spacy", tmp_path / "weak.spacy", "--nested"),
    ):
        result = invoke(*args)
        assert result.exit_code == 0, result.output
    docs = list(read_docs(tmp_path / "weak.spacy", nlp.vocab))
    for name in ("sc", "gold", "weak:gazetteer"):
        assert [sorted(group_entities(doc, name)) for doc in docs] == NESTED
    settings = {"spans_key": "sc", "nested": True}
    nlp.add_pipe("span_ner", config=head_config("span_ner", **settings))
    examples = [spacy.training.Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in docs]
    nlp.initialize(lambda: examples)
    train(nlp, examples, steps=150)
    nlp.to_disk(tmp_path / "model")
    args = ("--spans-key", "sc", "--bootstrap", "0", "--output", tmp_path / "scores.json")
    result = invoke("evaluate", tmp_path / "gold.spacy", tmp_path / "model", *args)
    assert result.exit_code == 0 and "100.0" in result.output, result.output
