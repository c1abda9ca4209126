"""What heads that classify spans or pairs of boundaries say of entities that they do not write."""

import pytest
import spacy

from spacy_weakner.active_learning.scoring import Model
from spacy_weakner.corpus.weak import doc_entities

from ..util import ENTITY_HEADS, TEXTS, raw
from .util import TALKATIVE


@pytest.mark.parametrize("head", ["span_ner", "mrc_ner"])
def test_candidates_hold_the_entities(load, head):
    nlp = load(**TALKATIVE[head])
    ner = nlp.get_pipe(head)
    docs = [raw(nlp, text) for text in [*TEXTS, ""]]
    found = ner.score_candidates(docs)
    assert not any(doc.ents for doc in docs)
    assert found[-1] == []
    for doc, candidates in zip(docs, found, strict=True):
        scores = dict(candidates)
        for ent in nlp(doc).ents:
            assert scores[(ent.start, ent.end, ent.label_)] == pytest.approx(ent._.weakner_score, abs=1e-5)
        assert all(0.0 < score <= 1.0 for score in scores.values())


@pytest.mark.parametrize("head", ENTITY_HEADS)
def test_every_head_tells_where_it_is_not_sure(paths, head):
    model = Model(paths / head)
    assert model.gives_probabilities
    docs = [raw(spacy.blank("xx"), text) for text in [*TEXTS, "Xyz zyx"]]
    for spans, predicted in zip(model.uncertain_spans(docs), model.predict(docs), strict=True):
        assert all(0.0 <= span.uncertainty < 1.0 for span in spans)
        # What it writes is probable, so it is among the spans.
        assert {(ent.start, ent.end) for ent in predicted.ents} <= {(span.start, span.end) for span in spans}
    assert not any(doc_entities(doc) for doc in docs)
