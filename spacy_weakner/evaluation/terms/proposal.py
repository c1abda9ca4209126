"""Proposes settings of a term list that improve its labels, judged by gold.

Leaving out a group of matches raises F1 = 2 tp / (matches + gold entities) exactly if the precision of the group is
below half of F1. So a term is stopped if its precision is below that. Since samples are small, the precision of a term
is estimated from its matches and from other terms (a Beta prior around the precision of its label). The weight of the
prior is estimated as well: if most terms are always or never right, one match is informative; if all terms are equally
often right, they differ only by chance, and none is stopped. The terms of a label, short terms, and phrases with
several labels are judged as groups in which every term counts once, since settings also apply to unseen terms.

Settings are measured on gold that was not used to choose them: for each fold they are chosen on the other folds.
"""

import json
from collections import Counter
from math import lgamma, sqrt
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ...progress import Progress
from ...scores import Counts, count_matches
from ..bootstrap import Bootstrap, Difference
from .combining import FOLDS
from .matches import Match, MatchedSentence, ambiguous, choose_matches, commonest

# Fewer sentences are too few to choose settings and to measure them.
MIN_SENTENCES = 10
# Gains with a larger p-value (two-sided bootstrap) are not proposed.
MAX_P = 0.1
MAX_LENGTH = 6
# A term with at most this number of wrong matches, and no right one, may be an entity that was forgotten in the gold.
FEW = 2
# Smaller groups of terms are not judged.
MIN_TERMS = 4
# Candidate weights of the prior, as numbers of matches.
STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
# Terms are stopped in several rounds, since without a term shorter ones match.
_ROUNDS = 4


class TermSettings(NamedTuple):
    """Settings of a term list."""

    without: FrozenSet[str] = frozenset()  # labels whose terms are not matched
    stop: FrozenSet[str] = frozenset()  # terms that are not matched, in the form of `folded`
    min_length: int = 1
    ambiguity: str = "all"  # or "drop": phrases with several labels are not matched

    def apply(self, matches: Sequence[Match]) -> List[Match]:
        """Return the matches that the term list still has with these settings."""
        kept = [match for match in matches if match.length >= self.min_length and match.key not in self.stop]
        if self.ambiguity == "drop":
            unclear = ambiguous(kept)
            kept = [match for match in kept if match.candidate.entity[:2] not in unclear]
        # The setting `labels` is applied last.
        return [match for match in kept if match.candidate.label not in self.without]


class Proposal(NamedTuple):
    """Settings that improve the labels of a term list; None if a setting does not change."""

    source: str
    stop: Tuple[str, ...]  # terms to add to its stop list, the most often wrong first
    min_length: Optional[int]
    ambiguity: Optional[str]
    without: Optional[Tuple[str, ...]]  # labels to leave out
    before: Counts  # with the present settings
    after: Counts  # on the same sentences, each with settings that were chosen without it
    difference: Difference  # gain in F1, with its confidence interval
    unsure: Tuple[str, ...] = ()  # of `stop`: terms that are never right, but wrong at most `FEW` times

    def lines(self) -> List[str]:
        """Return the changes to the settings of the source in a sources file."""
        changes = {
            "labels: leave out ": self.without,
            "stop: add ": self.stop or None,
            "min_length = ": self.min_length,
            "ambiguity = ": self.ambiguity,
        }
        given = {start: value for start, value in changes.items() if value is not None}
        # A single "$" would begin a variable.
        return [start + json.dumps(value, ensure_ascii=False).replace("$", "$$") for start, value in given.items()]

    def doubts(self) -> str:
        """Return a sentence on terms to stop that may be right, or "" if there are none."""
        if not self.unsure:
            return ""
        listed = ", ".join(f"'{term}'" for term in self.unsure)
        return f"Or the gold is incomplete: it has each of these terms only once or twice, never as an entity: {listed}"


class _Tried(NamedTuple):
    """The matches of a list with certain settings."""

    matches: List[Tuple[Match, bool, bool]]  # match, whether it is right, whether it is ambiguous
    gold: int  # number of gold entities

    @property
    def f1(self) -> float:
        right = sum(is_right for _, is_right, _ in self.matches)
        return 2 * right / max(1, len(self.matches) + self.gold)


def propose(
    source: str,
    sentences: Sequence[MatchedSentence],
    policy: str,
    *,
    samples: int,
    seed: int = 0,
    folds: int = FOLDS,
    progress: bool = False,
) -> Optional[Proposal]:
    """Search for better settings of a term list; None without a significant gain on held-out sentences. `samples` is
    the number of resampled test sets, `folds` the number of parts that the sentences are split into."""
    if len(sentences) < MIN_SENTENCES:
        return None
    settings = choose_term_settings(sentences, policy)
    if settings == TermSettings():
        return None
    fold_of = numpy.random.default_rng(seed).permutation(len(sentences)) % folds
    counts = numpy.zeros((2, len(sentences), 3), dtype="int64")
    for fold in Progress(range(folds), desc=f"analyze: tune {source}", unit="fold", enabled=progress):
        chosen = choose_term_settings([sentences[i] for i in numpy.flatnonzero(fold_of != fold).tolist()], policy)
        for i in numpy.flatnonzero(fold_of == fold).tolist():
            counts[0, i] = _count(sentences[i], TermSettings(), policy)
            counts[1, i] = _count(sentences[i], chosen, policy)
    difference = Bootstrap(counts, samples, seed).difference(1, 0, "before")
    if difference.f1 <= 0 or difference.p > MAX_P:
        return None
    before, after = (Counts(*map(int, row)) for row in counts.sum(1))
    stop = _names(sentences, settings.stop)
    return Proposal(
        source,
        tuple(stop),
        settings.min_length if settings.min_length > 1 else None,
        settings.ambiguity if settings.ambiguity != "all" else None,
        tuple(sorted(settings.without)) or None,
        before,
        after,
        difference,
        tuple(term for term, (wrong, right) in stop.items() if not right and wrong <= FEW),
    )


def choose_term_settings(sentences: Sequence[MatchedSentence], policy: str) -> TermSettings:
    """Choose settings on gold sentences; return the default ones if there is no gain on these sentences."""
    settings = TermSettings()
    tried = before = _try(sentences, settings, policy)
    labels = {match.candidate.label for match, _, _ in tried.matches}
    for label in sorted(labels):
        if _is_bad([(m, right) for m, right, _ in tried.matches if m.candidate.label == label], tried.f1):
            settings = settings._replace(without=settings.without | {label})
    tried = _try(sentences, settings, policy)
    if _is_bad([(m, right) for m, right, unclear in tried.matches if unclear], tried.f1):
        settings = settings._replace(ambiguity="drop")
        tried = _try(sentences, settings, policy)
    start, threshold = settings, tried.f1
    known = [(match, right) for match, right, _ in tried.matches]
    for length in range(2, MAX_LENGTH + 1):
        if _is_bad([(match, right) for match, right in known if match.length < length], threshold):
            shortened = start._replace(min_length=length)
            again = _try(sentences, shortened, policy)
            if again.f1 > tried.f1:
                settings, tried = shortened, again
    for _ in range(_ROUNDS):
        bad = _bad_terms(tried)
        if not bad:
            break
        settings = settings._replace(stop=settings.stop | bad)
        tried = _try(sentences, settings, policy)
    return settings if tried.f1 > before.f1 else TermSettings()


def prior_strength(terms: Iterable[Tuple[int, int, float]]) -> float:
    """Estimate the weight of a label's precision, as a number of matches: the value of `STRENGTHS` under which the
    counts are most likely (empirical Bayes with a beta-binomial); without repeated terms, the largest."""
    repeated = [(right, wrong, mean) for right, wrong, mean in terms if right + wrong > 1]

    def log_likelihood(strength: float) -> float:
        total = 0.0
        for right, wrong, mean in repeated:
            a, b = strength * mean, strength * (1 - mean)
            total += lgamma(right + a) - lgamma(a) + lgamma(wrong + b) - lgamma(b)
            total += lgamma(strength) - lgamma(right + wrong + strength)
        return total

    return max(STRENGTHS, key=lambda strength: (log_likelihood(strength), strength))


def _try(sentences: Sequence[MatchedSentence], settings: TermSettings, policy: str) -> _Tried:
    matches = []
    for gold, proposed in sentences:
        unclear = ambiguous(proposed)
        for match in choose_matches(settings.apply(proposed), policy):
            entity = match.candidate.entity
            matches.append((match, entity in gold.entities, entity[:2] in unclear))
    return _Tried(matches, sum(len(sentence.gold.entities) for sentence in sentences))


def _is_bad(group: Sequence[Tuple[Match, bool]], f1: float) -> bool:
    """Return True if terms of this group are probably right too seldom."""
    shares: Dict[str, List[bool]] = {}
    for match, right in group:
        shares.setdefault(match.key, []).append(right)
    n = len(shares)
    if n < MIN_TERMS:
        return False
    # Add two terms, one of them right, so that no estimate is 0 with certainty.
    mean = (sum(sum(rights) / len(rights) for rights in shares.values()) + 1) / (n + 2)
    return mean + sqrt(mean * (1 - mean) / (n + 2)) < f1 / 2


def _bad_terms(tried: _Tried) -> FrozenSet[str]:
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    labels: Dict[str, Counter[str]] = {}
    by_label: Dict[str, List[bool]] = {}
    for match, is_right, _ in tried.matches:
        (right if is_right else wrong)[match.key] += 1
        labels.setdefault(match.key, Counter())[match.candidate.label] += 1
        by_label.setdefault(match.candidate.label, []).append(is_right)
    overall = (sum(right.values()) + 1) / (len(tried.matches) + 2)
    # Smoothed towards the precision of all labels, with the weight of four matches, so that it is never 0 or 1.
    precision = {label: (sum(seen) + 4 * overall) / (len(seen) + 4) for label, seen in by_label.items()}
    means = {key: sum(precision[x] * n for x, n in given.items()) / given.total() for key, given in labels.items()}
    strength = prior_strength((right[key], wrong[key], mean) for key, mean in means.items())
    return frozenset(
        key
        for key, mean in means.items()
        if wrong[key] and (right[key] + strength * mean) / (right[key] + wrong[key] + strength) < tried.f1 / 2
    )


def _count(sentence: MatchedSentence, settings: TermSettings, policy: str) -> Counts:
    found = [match.candidate.entity for match in choose_matches(settings.apply(sentence.matches), policy)]
    return count_matches([(sentence.gold.entities, found)])[0]


def _names(sentences: Sequence[MatchedSentence], keys: FrozenSet[str]) -> Dict[str, Tuple[int, int]]:
    """Return stopped terms in their most frequent spelling, the most often wrong first, with their numbers of wrong and
    right matches."""
    texts: Dict[str, Counter[str]] = {}
    right: Counter[str] = Counter()
    for gold, matches in sentences:
        for match in matches:
            if match.key in keys:
                texts.setdefault(match.key, Counter())[match.term] += 1
                right[match.key] += match.candidate.entity in gold.entities
    counts = {key: (found.total() - right[key], right[key]) for key, found in texts.items()}
    return {commonest(texts[key]): counts[key] for key in sorted(counts, key=lambda key: (-counts[key][0], key))}
