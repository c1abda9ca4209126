"""The combiner of a fold is fitted on the others."""

import spacy
from spacy.tokens import Doc, Span

from spacy_weakner.corpus.weak import doc_entities, set_spans
from spacy_weakner.project.combine import Combination, CombinedFold


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
    found = Combination({"terms": tmp_path}, [], folds).decide_fold(1)
    # Warnings are errors.
    assert [doc_entities(doc) for doc in found][-1] == []
