"""The combiner of a fold is fitted on other gold."""

from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus.case import change_case
from spacy_weakner.corpus.weak import doc_entities, set_id, set_spans
from spacy_weakner.project import combine, rules
from spacy_weakner.project.combine import PARTS, Combination, CombinedFold

from .util import LANGUAGE


def test_a_label_of_one_fold_alone_is_no_news(tmp_path):
    nlp = spacy.blank("xx")
    nlp.to_disk(tmp_path)

    def gold(name, label):
        doc = Doc(nlp.vocab, words=[name, "came"])
        doc.set_ents([Span(doc, 0, 1, label)], default="outside")
        set_spans(doc, "weak:terms", [Span(doc, 0, 1, label)], {})
        return doc

    folds = [CombinedFold([gold(name, "PER") for name in ("Ann", "Bob", "Eve", "Joe")]) for _ in range(2)]
    folds[1].docs.append(gold("Paris", "LOC"))
    found = Combination({"terms": tmp_path}, [], folds, LANGUAGE).decide_fold(1)
    # Warnings are errors.
    assert [doc_entities(doc) for doc in found][-1] == []


def test_sentences_without_tokens_have_no_candidates(tmp_path):
    nlp = spacy.blank("xx")
    nlp.to_disk(tmp_path)
    docs = [Doc(nlp.vocab, words=words) for words in ([], ["Ann", "came"], ["Bob", "left"], [])]
    for doc in docs:
        spans = [Span(doc, 0, 1, "PER")] if len(doc) else []
        doc.set_ents(spans, default="outside")
        set_spans(doc, "weak:terms", spans, {})
    combination = Combination({"terms": tmp_path}, [], [CombinedFold(docs)] * 2, LANGUAGE)
    combiner = combination.combiner(without=0)
    found = combination.decide(docs, combiner)
    assert [*map(len, found)] == [0, 2, 2, 0] and all(combine.DECIDED in doc.spans for doc in found)
    alone = combination.annotate(docs, combiner)
    assert [*map(doc_entities, alone)] == [*map(doc_entities, found)] and not any(map(doc_entities, found[::3]))


@pytest.mark.parametrize("n, is_little", [(199, True), (200, False)])
def test_little_gold(n, is_little):
    docs = [Doc(spacy.blank("xx").vocab, words=["word"])] * 100
    folds = [CombinedFold(docs, docs), CombinedFold(docs[: n - 100])]
    assert Combination({}, [], folds, LANGUAGE).has_little_gold is is_little


@pytest.mark.parametrize("n_documents, size", [(0, 2), (1, 2), (3, 2), (5, 2), (10, 1)])
def test_parts_of_a_fold(n_documents, size):
    docs = [Doc(spacy.blank("xx").vocab, words=[f"word{n}"]) for n in range(10)]
    for n, doc in enumerate(docs):
        if n_documents:
            set_id(doc, f"d{n % n_documents}.{n}")
    # With fewer documents than parts, sentences are dealt.
    assert [*Counter(CombinedFold(docs).deal(5 if size == 2 else 10)).values()] == [size] * (10 // size)


def test_a_combiner_is_fitted_on_all_gold_but_a_part_of_the_fold(tmp_path, monkeypatch):
    nlp = spacy.blank("xx")

    def gold(n):
        doc = Doc(nlp.vocab, words=[f"Name{n}", "came"])
        doc.set_ents([Span(doc, 0, 1, "PER")], default="outside")
        return doc

    fitted = []

    def fit(self, nlp, folds):
        fitted.append([doc.text for fold in folds for doc in (*fold.docs, *fold.copies)])
        return lambda doc: doc

    monkeypatch.setattr(Combination, "_add_combiner", fit)
    monkeypatch.setattr(Combination, "decide", lambda self, docs, combiner: [*docs])
    docs = [gold(n) for n in range(40)]
    copies = [change_case(doc, "lower") for doc in docs]
    # The third Doc is a copy of the first one.
    docs[2] = change_case(docs[0], "upper")
    folds = [CombinedFold(docs[:20], copies[:20]), CombinedFold(docs[20:], copies[20:])]
    assert Combination({"terms": tmp_path}, [], folds, LANGUAGE).decide_fold(0) == docs[:20]
    everything = {doc.text for doc in (*docs, *copies)}
    left_out = [everything - {*texts} for texts in fitted]
    assert len(fitted) == PARTS // 2
    # Each Doc is left out once, with its copies.
    assert sorted(text for texts in left_out for text in texts) == sorted({d.text for d in (*docs[:20], *copies[:20])})
    assert all(len({text.casefold() for text in texts}) < len(texts) for texts in left_out)
    assert any({docs[0].text, docs[2].text, copies[0].text} <= texts for texts in left_out)

    fitted.clear()
    monkeypatch.setattr(rules, "_LITTLE", 40)
    assert Combination({"terms": tmp_path}, [], folds, LANGUAGE).decide_fold(0) == docs[:20]
    assert fitted == [[doc.text for doc in (*docs[20:], *copies[20:])]]
