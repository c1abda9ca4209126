"""A small pipeline with terms, and slow twins of what the tables do."""

import spacy
from spacy.lookups import Lookups

from spacy_weakner.corpus.weak import group_entities
from spacy_weakner.gazetteer_ruler.terms import Term

TERMS = [
    Term("Disease", "heart failure"),
    Term("Disease", "congestive heart failure"),
    Term("Symptom", "failure"),
    Term("Chemical", "aspirin"),
    Term("Drug", "aspirin"),
    Term("Disease", "AIDS"),
    Term("Measure", "pH"),
]
TEXTS = [
    "Congestive heart failure and Aspirin.",
    "It aids in AIDS; PH and pH here",
    "",
    "  \n",
    "nothing here",
    "failure failure",
]
EXPECTED = [
    [(0, 3, "Disease"), (1, 3, "Disease"), (2, 3, "Symptom"), (4, 5, "Chemical"), (4, 5, "Drug")],
    [(3, 4, "Disease"), (7, 8, "Measure")],
    [],
    [],
    [],
    [(0, 1, "Symptom"), (1, 2, "Symptom")],
]


def make_nlp(terms=TERMS, lang="xx", **settings):
    nlp = spacy.blank(lang)
    ruler = nlp.add_pipe("gazetteer_ruler", config=settings)
    if terms:
        ruler.initialize(lambda: [], nlp=nlp, terms=terms)
    return nlp


def matches(nlp, texts=TEXTS, group="weak:gazetteer"):
    return [group_entities(nlp(text), group) for text in texts]


def matched(nlp, text):
    doc = nlp(text)
    return [(span.text, span.label_) for span in doc.spans["weak:gazetteer"]]


def lemma_nlp(**settings):
    nlp = spacy.blank("xx")
    lookups = Lookups()
    lookups.add_table("lemma_lookup", {"failures": "failure", "hearts": "heart", "Hearts": "heart"})
    nlp.add_pipe("lemmatizer", config={"mode": "lookup"}).initialize(lookups=lookups)
    nlp.add_pipe("gazetteer_ruler", config={"attr": "LEMMA", **settings})
    return nlp


def naive_find(phrases, ids, only_first=False):
    """Every phrase at every place.

    phrases (List[Tuple[Tuple[int, ...], int]]): Ids and label.
    ids (List[int]): A sequence.
    only_first (bool): Whether only the first label of a phrase counts.
    RETURNS (List[Tuple[int, int, int]]): (start, end, label), sorted.
    """
    labels = {}
    for key, label in phrases:
        labels.setdefault(tuple(key), []).append(label)
    return sorted(
        (start, start + len(key), label)
        for key, several in labels.items()
        for label in (several[:1] if only_first else set(several))
        for start in range(len(ids))
        if list(key) == list(ids[start : start + len(key)])
    )
