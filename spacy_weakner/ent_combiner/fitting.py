"""Fits the combiner on gold: the weights and, by cross-validation over Docs, their penalty, the threshold, and whether
the combination is better than one group alone."""

from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.gold import Gold
from ..corpus.weak import PREDICTED_PREFIX
from ..ty import Floats, Hashes, Ints
from .candidates import Candidates, choose_spans
from .features import COLUMNS, FeatureSpace, WordCounts, count_words, held_out_columns, read_words, word_keys
from .span_partition import SpanPartition, fit_weights

# L2 penalties to choose from, the strongest first.
PENALTIES = (30.0, 10.0, 3.0, 1.0)
# Penalty of the most important weights: whether a group has the candidate, and its probability.
MAIN_PENALTY = 0.3
# Used if there are too few Docs for cross-validation.
DEFAULT_PENALTY, DEFAULT_THRESHOLD = 3.0, 0.4
COMBINED = "combined"
# Points of F1 by which a component, which is part of the combination, must be better to be used alone: less may be
# chance. With fewer than FEW_DOCS Docs, a combination cannot be fitted reliably, so it must be better than the
# component by some points (best.md). A list is used alone if it is better at all.
CLEARLY, CLEARLY_WITH_FEW, FEW_DOCS = 1.0, -2.0, 75


class FitDoc(NamedTuple):
    """The candidates of a Doc to fit the combiner on."""

    length: int  # in tokens
    text: str
    spans: Ints  # shape (n_candidates, 3): candidates without missing tokens, see `Candidates`
    features: Floats  # shape (n_candidates, n_features)
    right: Floats  # shape (n_candidates,): 1 if it is gold, else 0
    keys: Hashes  # shape (n_candidates, len(WORDS)): see `word_keys`
    n_gold: int  # number of gold entities, including those that are not among the candidates
    alone: Dict[str, Tuple[int, int]]  # number of entities and of right entities of each group alone


def read_fit_doc(doc: Doc, gold: Gold, candidates: Candidates, space: FeatureSpace) -> FitDoc:
    """Compare the candidates of a Doc with its gold; those that touch tokens without gold are left out."""
    # Gold with other labels does not count.
    gold = gold._replace(entities=frozenset(entity for entity in gold.entities if entity[2] in space.labels))
    entities = candidates.entities(space.labels)
    known = set(gold.scorable(entities))
    index = [i for i, entity in enumerate(entities) if entity in known]
    alone = {}
    for row, group in enumerate(space.groups):
        given = gold.scorable([entities[i] for i in choose_alone(candidates, row).tolist()])
        alone[group] = (len(given), sum(entity in gold.entities for entity in given))
    right = numpy.array([entities[i] in gold.entities for i in index], dtype="float64")
    words = read_words(candidates.sentences)
    features = space.matrix(words, candidates, WordCounts())[index]
    keys = word_keys(words.hashes, candidates, space.labels)[index]
    return FitDoc(len(doc), doc.text, candidates.spans[index], features, right, keys, len(gold.entities), alone)


class FitReport(NamedTuple):
    """The result of a fit. Scores were measured on Docs that the models were not fitted on."""

    sentences: int  # without copies in other case
    candidates: int
    gold: int
    reach: float  # share of gold that is among the candidates, the upper bound of recall
    penalty: float
    threshold: float
    f1: Optional[float]  # F1 of the combination, in [0, 100]; None with only one fold
    alone: Dict[str, float]  # F1 of each group alone
    choice: str  # "combined", or the group that is used alone


class FittedCombiner(NamedTuple):
    """The fitted weights and counts."""

    weights: Floats
    counts: WordCounts
    report: FitReport


def fit_combiner(
    docs: Sequence[FitDoc],
    keys: Sequence[str],
    main: Any,
    folds: int,
    penalty: Optional[float] = None,
    threshold: Optional[float] = None,
) -> FittedCombiner:
    """Fit weights on Docs, and choose penalty and threshold, unless they are given, by cross-validation over Docs. Docs
    with equal keys are in one fold. `main` is a mask, shape (n_features,), of the features with a weak penalty."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    n_folds = min(folds, len(numbers))
    fold_of = (numpy.random.default_rng(0).permutation(len(numbers)) % n_folds)[[numbers[key] for key in keys]]
    docs, counts = _with_counts(docs, fold_of)
    tried = sorted(PENALTIES if penalty is None else [penalty], reverse=True)
    # Settings are chosen without copies in other case.
    first = _find_originals(docs)
    originals = [docs[i] for i in first]
    every = _Sample.of(originals)
    n_gold = sum(doc.n_gold for doc in originals)
    alone = {name: _alone(originals, name) for name in docs[0].alone}
    chosen, f1 = tried[0], None
    least = DEFAULT_THRESHOLD if threshold is None else threshold
    if n_folds < 2:
        chosen = DEFAULT_PENALTY if penalty is None else penalty
    else:
        held_out = [
            numpy.concatenate([scores[i] for i in first]) for scores in _cross_validate(docs, main, tried, fold_of)
        ]
        values = [every.likelihood(scores) for scores in held_out]
        best = int(numpy.argmax(values))  # of equals, the strongest penalty
        chosen = tried[best]
        probabilities = every.partition.probabilities(held_out[best])
        if threshold is None:
            least, f1 = best_threshold(every, probabilities, n_gold)
        else:
            f1 = _f1_of(every, choose_spans(every.spans, probabilities - least), n_gold)
    choice = COMBINED
    if f1 is not None and alone:
        margin = CLEARLY_WITH_FEW if len(originals) < FEW_DOCS else CLEARLY
        needed = {name: f1 + (margin if name.startswith(PREDICTED_PREFIX) else 0.0) for name in alone}
        single = max(alone, key=lambda name: alone[name] - needed[name])
        choice = single if alone[single] > needed[single] else COMBINED
    sample = _Sample.of(docs)
    weights = fit_weights(sample.features, sample.right, sample.partition, penalties(main, chosen))
    reach = float(every.right.sum()) / max(1, n_gold)
    report = FitReport(len(originals), len(every.right), n_gold, reach, chosen, least, f1, alone, choice)
    return FittedCombiner(weights, counts, report)


def _find_originals(docs: Sequence[FitDoc]) -> List[int]:
    """Return the indices of all Docs that are not copies in other case of an earlier one."""
    originals: Dict[Tuple[str, int], int] = {}
    seen: Counter[str] = Counter()
    for i, doc in enumerate(docs):
        originals.setdefault((doc.text.casefold(), seen[doc.text]), i)
        seen[doc.text] += 1
    return list(originals.values())


def penalties(main: Any, penalty: float) -> Floats:
    """Return the penalty of each weight."""
    return numpy.where(main, min(MAIN_PENALTY, penalty), penalty)


def best_threshold(sample: "_Sample", probabilities: Floats, n_gold: int) -> Tuple[float, float]:
    """Find the threshold with the best F1, and this F1 in [0, 100]. To maximize the expected F1, F, the weight of a
    candidate is its probability minus F / 2 (Dinkelbach 1967): F and threshold, computed in turns, soon converge."""
    threshold, f1 = DEFAULT_THRESHOLD, 0.0
    for _ in range(5):
        f1 = _f1_of(sample, choose_spans(sample.spans, probabilities - threshold), n_gold)
        threshold = max(0.1, f1 / 200.0)
    return threshold, f1


def choose_alone(candidates: Candidates, group: int) -> Ints:
    """Return the indices, by start, of the entities of a group alone: the non-overlapping candidates with the largest
    sum of probabilities minus one half; without probabilities, those that cover most tokens with the fewest
    entities."""
    lengths = numpy.diff(candidates.sentences.offsets)[candidates.in_sentence]
    start, end, scores = candidates.spans[:, 0], candidates.spans[:, 1], candidates.scores[group]
    weights = numpy.where(numpy.isnan(scores), end - start - 1 / (lengths + 1), scores - 0.5)
    return choose_spans(candidates.spans, numpy.where(candidates.proposed[group], weights, 0.0))


class _Sample(NamedTuple):
    """The candidates of several Docs as one table; the tokens of all Docs are numbered consecutively."""

    features: Floats
    right: Floats
    spans: Ints
    partition: SpanPartition

    @classmethod
    def of(cls, docs: Sequence[FitDoc]) -> "_Sample":
        features = numpy.concatenate([doc.features for doc in docs])
        right = numpy.concatenate([doc.right for doc in docs])
        rows = numpy.repeat(numpy.arange(len(docs)), [len(doc.spans) for doc in docs])
        offsets = numpy.cumsum([0, *(doc.length for doc in docs)])[rows]
        spans = numpy.concatenate([doc.spans[:, :2] for doc in docs]) + offsets[:, None]
        return cls(features, right, spans, SpanPartition.of(rows, spans, len(docs)))

    def likelihood(self, scores: Floats) -> float:
        return float(self.right @ scores - self.partition.log_totals(scores).sum())


def _with_counts(docs: Sequence[FitDoc], fold_of: Any) -> Tuple[List[FitDoc], WordCounts]:
    """Return the Docs with counts of their candidates' words in other folds, and the counts in all Docs."""
    keys, right = [doc.keys for doc in docs], [doc.right for doc in docs]
    result = []
    for doc, columns in zip(docs, held_out_columns(keys, right, fold_of), strict=True):
        features = numpy.concatenate([doc.features[:, : -len(COLUMNS)], columns], axis=1)
        result.append(doc._replace(features=features))
    return result, count_words(keys, right)


def _cross_validate(docs: Sequence[FitDoc], main: Any, tried: Sequence[float], fold_of: Any) -> List[List[Floats]]:
    """Return, for each penalty and Doc, the log-odds of its candidates by models and counts of other folds."""
    parts: List[List[Floats]] = [[numpy.zeros(0)] * len(docs) for _ in tried]
    for fold in numpy.unique(fold_of).tolist():
        others = numpy.flatnonzero(fold_of != fold)
        sample = _Sample.of(_with_counts([docs[i] for i in others.tolist()], fold_of[others])[0])
        weights: Optional[Floats] = None
        for i, penalty in enumerate(tried):
            weights = fit_weights(sample.features, sample.right, sample.partition, penalties(main, penalty), weights)
            for j in numpy.flatnonzero(fold_of == fold).tolist():
                parts[i][j] = docs[j].features @ weights
    return parts


def _alone(docs: Sequence[FitDoc], name: str) -> float:
    given, right = (sum(doc.alone[name][i] for doc in docs) for i in range(2))
    return _f1(right, given, sum(doc.n_gold for doc in docs))


def _f1_of(sample: _Sample, chosen: Ints, n_gold: int) -> float:
    return _f1(float(sample.right[chosen].sum()), len(chosen), n_gold)


def _f1(right: float, given: int, gold: int) -> float:
    return 200.0 * right / max(1, given + gold)
