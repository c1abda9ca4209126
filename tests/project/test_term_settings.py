"""Settings of term lists are proposed only if the package gains by them on gold that did not choose them."""

import pytest

from spacy_weakner.corpus.weak import group_entities, set_source
from spacy_weakner.evaluation.terms.proposal import Proposal
from spacy_weakner.project import term_settings as module
from spacy_weakner.project.combine import CombinedFold
from spacy_weakner.project.term_settings import propose_settings
from spacy_weakner.scores import Counts, as_json

from ..util import make_doc
from .util import LANGUAGE, NLP

DIFFERENCE = {"baseline": "before", "f1": 9.0, "low": 5.0, "high": 13.0, "p": 0.01}
GOOD, BAD = ("Annabell", "Benjamin", "Clarissa"), ("nothing", "anybody", "somebody", "whatever")


def proposal(**changes):
    given = {"stop": BAD, "min_length": None, "ambiguity": None, "without": None}
    counts = {"before": Counts(5, 5, 0), "after": Counts(5, 0, 0), "difference": DIFFERENCE}
    return as_json(Proposal(**{"source": "terms", **given, **counts, **changes}))


class OfLists:
    """A package that finds what the lists find."""

    def __init__(self, lists, heads, folds, language):
        self.lists, self.heads, self.folds, self.language = lists, heads, folds, language

    def decide_fold(self, n):
        return [make_doc(NLP, doc.text, self.decide(doc)) for doc in self.folds[n].docs]

    def decide(self, doc):
        return group_entities(doc, "weak:terms")


class OfHeads(OfLists):
    """A package that knows better than its lists."""

    def decide(self, doc):
        return [(0, 1, "PER")]


def make_folds(bad_of_fold):
    folds = []
    for n in range(3):
        docs = []
        for i in range(12):
            doc = make_doc(NLP, f"{GOOD[i % 3]} saw {bad_of_fold(n, i)} {n} {i}", [(0, 1, "PER")])
            set_source(doc, "terms", [(0, 1, "PER"), (2, 3, "PER")])
            docs.append(doc)
        folds.append(CombinedFold(docs, [doc.copy() for doc in docs[:2]]))
    return folds


@pytest.fixture
def propose(monkeypatch):
    def run(package, bad_of_fold=lambda n, i: BAD[i % 4], proposals=None, lists=("terms",)):
        monkeypatch.setattr(module, "Combination", package)
        combination = package(dict.fromkeys(lists), [], make_folds(bad_of_fold), LANGUAGE)
        before = [[dict(doc.spans) for doc in fold.docs] for fold in combination.folds]
        found = propose_settings(combination, [proposal()] if proposals is None else proposals, seed=0)
        assert [[dict(doc.spans) for doc in fold.docs] for fold in combination.folds] == before
        return found

    return run


def test_proposed_if_the_package_gains(propose):
    ((gain, text),), notes = propose(OfLists)
    # From two thirds (all right, half of them wrong) to all.
    assert gain == pytest.approx(100 - 100 * 2 / 3, abs=0.1) and not notes
    assert 'terms: stop: add ["nothing", "anybody", "somebody", "whatever"]' in text
    assert "33.3 F1 points more" in text and text.endswith(", significant.")


def test_not_proposed_if_the_heads_know_it_already(propose):
    recommended, (note,) = propose(OfHeads)
    assert not recommended and "'terms'" in note and "0.0 F1 points" in note


def test_not_proposed_if_only_the_same_sentences_gain(propose):
    # Each wrong term occurs in one fold, so that the other folds cannot choose to stop it.
    recommended, notes = propose(OfLists, lambda n, i: BAD[n])
    assert not recommended and len(notes) == 1


@pytest.mark.parametrize("proposals, lists", [([], ("terms",)), ([proposal(source="llm")], ("terms",)), (None, ())])
def test_nothing_to_propose(propose, proposals, lists):
    assert propose(OfLists, proposals=proposals, lists=lists) == ([], [])
