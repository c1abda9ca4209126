"""What functions of the model's outputs are given."""

from copy import deepcopy

import pytest

from spacy_weakner.heads import head as base

from ..util import raw


@pytest.mark.parametrize("padded_tokens", [1, 6, 1000])
def test_each_doc_comes_with_what_belongs_to_it(nlp, ner, monkeypatch, padded_tokens):
    monkeypatch.setattr(base, "PADDED_TOKENS", padded_tokens)
    texts, groups = ["a b c", "d", "", "e f", "g h i", ""], []

    def look(docs, outputs, texts, numbers):
        groups.append(len(docs))
        assert len(docs) == len(outputs) == len(texts) == len(numbers)
        return [(doc.text, text, n) for doc, text, n in zip(docs, texts, numbers, strict=True)]

    docs = (raw(nlp, text) for text in texts)
    found = ner.map_outputs(docs, look, "nothing", texts, range(6))
    assert found == [(text, text, i) if text else "nothing" for i, text in enumerate(texts)]
    assert groups == {1: [1, 1, 1, 1], 6: [2, 2], 1000: [4]}[padded_tokens]


def test_another_model_is_run(nlp, ner):
    teacher, docs = deepcopy(ner.model), [raw(nlp, "a b")]
    for node in teacher.walk():
        for name in node.param_names:
            if node.has_param(name):
                node.set_param(name, node.get_param(name) + 1.0)
    own, other = (ner.map_outputs(docs, lambda _, outputs: list(outputs), None, model=m)[0] for m in (None, teacher))
    assert own.shape == other.shape and (own != other).any()
