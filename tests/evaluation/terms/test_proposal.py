"""Proposed settings must hold on sentences that did not choose them, and chance alone must propose nothing."""

import random

import pytest

from spacy_weakner.aggregation.policies import ProposedSpan
from spacy_weakner.corpus.gold import Gold
from spacy_weakner.evaluation.terms.matches import Match, MatchedSentence
from spacy_weakner.evaluation.terms.proposal import TermSettings, choose_term_settings, prior_strength, propose


def make_match(term, label="A", at=0, width=1):
    return Match(ProposedSpan(at, at + width, label, "terms", len(term)), term, term, len(term))


def draw(rng, precision_of, n=200, missed=0.3, per_sentence=2):
    """Sentences with matches of terms that are right with the given probabilities, and gold entities without one."""
    terms, sentences = sorted(precision_of), []
    for _ in range(n):
        matches = [make_match(rng.choice(terms), at=3 * i) for i in range(per_sentence)]
        gold = [m.candidate.entity for m in matches if rng.random() < precision_of[m.term]]
        gold += [(100 + i, 101 + i, "A") for i in range(per_sentence) if rng.random() < missed]
        sentences.append(MatchedSentence(Gold(frozenset(gold)), tuple(matches)))
    return sentences


def run(sentences, seed=0):
    return propose("terms", sentences, "longest", samples=300, seed=seed)


@pytest.mark.parametrize("precision", [0.15, 0.5, 0.85])
@pytest.mark.parametrize("n_terms", [20, 200])
def test_chance_is_not_proposed(precision, n_terms):
    # All terms are equally good: whatever separates them on gold is noise, and helps there alone.
    proposed = 0
    for seed in range(6):
        rng = random.Random(seed)
        precision_of = {f"term{i}": precision for i in range(n_terms)}
        proposal = run(draw(rng, precision_of), seed)
        if proposal is not None:
            proposed += 1
    assert proposed <= 1


def test_bad_terms_are_stopped_and_the_gain_holds_on_new_sentences():
    rng = random.Random(0)
    precision_of = {f"good-{i:02d}": 0.95 for i in range(60)} | {f"bad-{i:03d}": 0.02 for i in range(20)}
    sentences, others = draw(rng, precision_of), draw(rng, precision_of)
    proposal = run(sentences)
    assert proposal.stop and {term[:3] for term in proposal.stop} == {"bad"}
    assert (proposal.min_length, proposal.ambiguity, proposal.without) == (None, None, None)
    assert (
        proposal.difference.f1 == pytest.approx(proposal.after.f1 - proposal.before.f1) and proposal.difference.f1 > 3
    )
    # Out of fold, as on sentences that nobody has seen.
    settings = choose_term_settings(sentences, "longest")

    def f1(settings):
        kept = [(s.gold, {m.candidate.entity for m in settings.apply(s.matches)}) for s in others]
        right = sum(len(gold.entities & found) for gold, found in kept)
        return 200 * right / sum(len(gold.entities) + len(found) for gold, found in kept)

    gain = f1(settings) - f1(TermSettings())
    assert gain == pytest.approx(proposal.difference.f1, abs=3)


def test_a_term_seen_once_is_stopped_only_where_terms_are_always_right_or_never():
    steady = [(9, 0, 0.6), (0, 6, 0.6), (4, 0, 0.6), (0, 3, 0.6)] * 5
    mixed = [(6, 3, 0.6), (4, 2, 0.6), (2, 2, 0.6), (2, 1, 0.6)] * 5
    assert prior_strength(steady) < 2 and prior_strength(mixed) == 64
    assert prior_strength([(0, 1, 0.5), (1, 0, 0.5)]) == 64


def test_short_terms_are_ruled_out_together():
    # None of them occurs twice, so that no stop list would help.
    rng = random.Random(1)
    sentences = []
    for i in range(120):
        matches = [make_match(f"{i:03d}", at=0), make_match(f"longer{i}", at=2)]
        gold = [(2, 3, "A")] if rng.random() < 0.9 else []
        sentences.append(MatchedSentence(Gold(frozenset(gold)), tuple(matches)))
    proposal = run(sentences)
    assert proposal.min_length > 3 and proposal.after.fp < 20 and proposal.after.tp == proposal.before.tp


def test_labels_and_ambiguous_phrases_are_ruled_out_together():
    sentences = []
    for i in range(60):
        names = [make_match(f"name{i}", "PER", 0), make_match(f"place{i}", "LOC", 2)]
        both = [make_match(f"both{i}", "LOC", 4), make_match(f"both{i}", "ORG", 4)]
        sentences.append(MatchedSentence(Gold(frozenset({(2, 3, "LOC"), (8, 9, "ORG")})), (*names, *both)))
    proposal = run(sentences)
    assert proposal.without == ("PER",) and proposal.ambiguity == "drop" and not proposal.stop
    assert proposal.after == (60, 0, 60)
    # Not as lines to paste: they would replace names of labels, and terms that are stopped already.
    assert proposal.lines() == ['labels: leave out ["PER"]', 'ambiguity = "drop"']
    changes = proposal._replace(stop=("us$", "a"), min_length=3).lines()
    assert changes[1:3] == ['stop: add ["us$$", "a"]', "min_length = 3"]


def test_stopping_a_term_uncovers_shorter_ones():
    matches = (make_match("new york", at=0, width=2), make_match("york", at=1))
    other = MatchedSentence(Gold(frozenset({(0, 1, "A")})), (make_match("oslo"),))
    sentences = [MatchedSentence(Gold(frozenset({(1, 2, "A")})), matches), other] * 20
    proposal = run(sentences)
    assert proposal.stop == ("new york",) and proposal.after == (40, 0, 0)


@pytest.mark.parametrize("n, unsure", [(1, True), (2, True), (3, False)])
def test_a_term_that_is_wrong_once_or_twice_may_be_right(n, unsure):
    good = MatchedSentence(Gold(frozenset({(0, 1, "A")})), (make_match("good"),))
    bad = MatchedSentence(Gold(frozenset({(5, 6, "A")})), (make_match("bad"),))
    rare = MatchedSentence(Gold(frozenset()), (make_match("rare"),))
    proposal = run([good, bad] * 20 + [rare] * n)
    assert {*proposal.stop} == {"bad", "rare"} and proposal.unsure == (("rare",) if unsure else ())
    assert bool(proposal.doubts()) == unsure and ("'rare'" in proposal.doubts()) == unsure


def test_too_few_sentences_and_sources_without_matches_give_no_proposal():
    bad = MatchedSentence(Gold(frozenset({(5, 6, "A")})), (make_match("bad"),))
    good = MatchedSentence(Gold(frozenset({(0, 1, "A")})), (make_match("good"),))
    assert run([bad, good] * 4) is None
    assert run([bad, good] * 20).stop == ("bad",)
    assert run([MatchedSentence(Gold(frozenset()), ())] * 20) is None
