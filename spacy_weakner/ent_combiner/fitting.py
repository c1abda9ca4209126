"""Fitting to gold: how strongly weights are held back, from which probability on candidates are taken, and whether all
that is better than one group alone. All is chosen by what models say of Docs that they were not fitted on."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.gold import Gold
from ..corpus.weak import PREDICTED_PREFIX
from .candidates import Candidates
from .competition import Competition, Floats, Ints
from .features import FeatureSpace
from .memory import COLUMNS, Hashes, Memory, held_out_columns, memory_keys, remember
from .regression import fit_weights
from .scored import choose
from .words import read_words

# Penalties of squared weights that are tried, the strongest first.
PENALTIES = (30.0, 10.0, 3.0, 1.0)
# Penalty of the weights of what matters most: whether a group names the candidate, and its probability.
MAIN_PENALTY = 0.3
# As good as any where there are no Docs to choose by.
DEFAULT_PENALTY, DEFAULT_THRESHOLD = 3.0, 0.4
COMBINED = "combined"
# Points of F1 by which a component's prediction must be better to be taken alone: less may be chance, and the
# combination knows it too. A list is taken if it is better at all.
CLEARLY = 1.0


class FitDoc(NamedTuple):
    """A Doc to fit to.

    length (int): Its number of tokens.
    spans (Ints): Shape (n_candidates, 3): the candidates that gold can tell right from wrong, see `Candidates`.
    features (Floats): Shape (n_candidates, n_features).
    right (Floats): Shape (n_candidates,): 1 if it is gold, else 0.
    keys (Hashes): Shape (n_candidates, len(WORDS)): by what each is remembered.
    n_gold (int): The number of gold entities, also those that are not among the candidates.
    alone (Dict[str, Tuple[int, int]]): Per group how many entities it gives if it is taken as it is, and how many of
        them are right.
    """

    length: int
    spans: Ints
    features: Floats
    right: Floats
    keys: Hashes
    n_gold: int
    alone: Dict[str, Tuple[int, int]]


def read_fit_doc(doc: Doc, gold: Gold, candidates: Candidates, space: FeatureSpace) -> FitDoc:
    """Hold candidates against gold.

    doc (Doc): The Doc.
    gold (Gold): Its gold.
    candidates (Candidates): Its candidates; those that touch tokens without gold are left out.
    space (FeatureSpace): What is to be known about them.
    RETURNS (FitDoc): What to fit to.
    """
    # Of other labels nothing is to be found.
    gold = gold._replace(entities=frozenset(entity for entity in gold.entities if entity[2] in space.labels))
    entities = candidates.entities(space.labels)
    known = set(gold.scorable(entities))
    index = [i for i, entity in enumerate(entities) if entity in known]
    alone = {}
    for row, group in enumerate(space.groups):
        own = gold.scorable([entities[i] for i in take_alone(candidates, row).tolist()])
        alone[group] = (len(own), sum(entity in gold.entities for entity in own))
    right = numpy.array([entities[i] in gold.entities for i in index], dtype="float64")
    words = read_words([doc])
    features = space.matrix(words, candidates, Memory())[index]
    keys = memory_keys(words.hashes, candidates, space.labels)[index]
    return FitDoc(len(doc), candidates.spans[index], features, right, keys, len(gold.entities), alone)


class FitReport(NamedTuple):
    """What came of it. Figures are of Docs that the models were not fitted on.

    docs (int): Number of Docs.
    candidates (int): Their candidates.
    gold (int): Their gold entities.
    reach (float): Share of gold that is among the candidates: no choice has a higher recall.
    penalty (float): The chosen penalty.
    threshold (float): The chosen threshold.
    f1 (Optional[float]): F1 of the combination, in [0, 100]; None if there was only one Doc.
    alone (Dict[str, float]): F1 of each group, taken as it is.
    calibration_error (Optional[float]): Expected calibration error of the chosen entities' probabilities, in [0, 1].
    choice (str): "combined", or the group that is taken as it is.
    """

    docs: int
    candidates: int
    gold: int
    reach: float
    penalty: float
    threshold: float
    f1: Optional[float]
    alone: Dict[str, float]
    calibration_error: Optional[float]
    choice: str


class Fitted(NamedTuple):
    """What was learnt.

    weights (Floats): Shape (n_features,).
    memory (Memory): What is remembered of words.
    report (FitReport): What came of it.
    """

    weights: Floats
    memory: Memory
    report: FitReport


def fit(
    docs: Sequence[FitDoc],
    main: Any,
    folds: int,
    penalty: Optional[float] = None,
    threshold: Optional[float] = None,
) -> Fitted:
    """Fit weights to some Docs, and choose the settings by cross-validation over Docs.

    docs (Sequence[FitDoc]): The Docs, one or more.
    main (Any): Shape (n_features,): which features are held back but little.
    folds (int): Into how many parts the Docs are split, at most.
    penalty, threshold (Optional[float]): The penalty, and the threshold; None: choose it.
    RETURNS (Fitted): The weights, and what came of it.
    """
    fold_of = numpy.random.default_rng(0).permutation(len(docs)) % min(folds, len(docs))
    docs, memory = _remember(docs, fold_of)
    tried = sorted(PENALTIES if penalty is None else [penalty], reverse=True)
    every = _Sample.of(docs)
    n_gold = sum(doc.n_gold for doc in docs)
    alone = {name: _alone(docs, name) for name in docs[0].alone}
    chosen, f1, error = tried[0], None, None
    least = DEFAULT_THRESHOLD if threshold is None else threshold
    if len(docs) < 2:
        chosen = DEFAULT_PENALTY if penalty is None else penalty
    else:
        held_out = _cross_validate(docs, main, tried, fold_of)
        values = [every.likelihood(scores) for scores in held_out]
        best = int(numpy.argmax(values))  # of equal ones the strongest
        chosen = tried[best]
        probabilities = every.competition.probabilities(held_out[best])
        if threshold is None:
            least, f1 = best_threshold(every, probabilities, n_gold)
        else:
            f1 = _f1_of(every, choose(every.spans, probabilities - least), n_gold)
        error = _calibration_error(every, probabilities, least)
    choice = COMBINED
    if f1 is not None and alone:
        needed = {name: f1 + (CLEARLY if name.startswith(PREDICTED_PREFIX) else 0.0) for name in alone}
        single = max(alone, key=lambda name: alone[name] - needed[name])
        choice = single if alone[single] > needed[single] else COMBINED
    weights = fit_weights(every.features, every.right, every.competition, penalties(main, chosen))
    reach = float(every.right.sum()) / max(1, n_gold)
    report = FitReport(len(docs), len(every.right), n_gold, reach, chosen, least, f1, alone, error, choice)
    return Fitted(weights, memory, report)


def penalties(main: Any, penalty: float) -> Floats:
    """RETURNS (Floats): Shape (n_features,): the penalty of each weight."""
    return numpy.where(main, min(MAIN_PENALTY, penalty), penalty)


def best_threshold(sample: "_Sample", probabilities: Floats, n_gold: int) -> Tuple[float, float]:
    """Find the threshold at which F1 is best. For the largest expected F1, F, candidates are worth their probability
    less F / 2 (Dinkelbach 1967): taken in turns, the two settle at once.

    sample (_Sample): The candidates.
    probabilities (Floats): Shape (n,): of the candidates.
    n_gold (int): The number of gold entities.
    RETURNS (Tuple[float, float]): The threshold, and F1 in [0, 100].
    """
    threshold, f1 = DEFAULT_THRESHOLD, 0.0
    for _ in range(5):
        f1 = _f1_of(sample, choose(sample.spans, probabilities - threshold), n_gold)
        # Where nothing is right, anything may be tried but not everything.
        threshold = max(0.1, f1 / 200.0)
    return threshold, f1


def take_alone(candidates: Candidates, group: int) -> Ints:
    """The entities of a group as they are: of those that overlap the ones with the largest sum of probabilities above
    one half; without probabilities the ones that cover most tokens, in as few entities as can be.

    candidates (Candidates): The candidates.
    group (int): Number of the group.
    RETURNS (Ints): Numbers of the candidates, by start.
    """
    lengths = numpy.diff(candidates.offsets)[candidates.docs]
    start, end, scores = candidates.spans[:, 0], candidates.spans[:, 1], candidates.scores[group]
    weights = numpy.where(numpy.isnan(scores), end - start - 1 / (lengths + 1), scores - 0.5)
    return choose(candidates.spans, numpy.where(candidates.named[group], weights, 0.0))


class _Sample(NamedTuple):
    """The candidates of several Docs as one table, and their places where the tokens of all Docs stand in one row."""

    features: Floats
    right: Floats
    spans: Ints
    competition: Competition

    @classmethod
    def of(cls, docs: Sequence[FitDoc]) -> "_Sample":
        features = numpy.concatenate([doc.features for doc in docs])
        right = numpy.concatenate([doc.right for doc in docs])
        rows = numpy.repeat(numpy.arange(len(docs)), [len(doc.spans) for doc in docs])
        offsets = numpy.cumsum([0, *(doc.length for doc in docs)])[rows]
        spans = numpy.concatenate([doc.spans[:, :2] for doc in docs]) + offsets[:, None]
        return cls(features, right, spans, Competition.of(rows, spans, len(docs)))

    def likelihood(self, scores: Floats) -> float:
        return float(self.right @ scores - self.competition.log_partitions(scores).sum())


def _remember(docs: Sequence[FitDoc], fold_of: Any) -> Tuple[List[FitDoc], Memory]:
    """The Docs with what is remembered of their candidates' words, and all that there is to remember."""
    keys, right = [doc.keys for doc in docs], [doc.right for doc in docs]
    result = []
    for doc, columns in zip(docs, held_out_columns(keys, right, fold_of), strict=True):
        features = numpy.concatenate([doc.features[:, : -len(COLUMNS)], columns], axis=1)
        result.append(doc._replace(features=features))
    return result, remember(keys, right)


def _cross_validate(docs: Sequence[FitDoc], main: Any, tried: Sequence[float], fold_of: Any) -> List[Floats]:
    """Per penalty, the log-odds of all candidates by the models that have not seen their Docs, nor remember them."""
    parts: List[List[Floats]] = [[numpy.zeros(0)] * len(docs) for _ in tried]
    for fold in numpy.unique(fold_of).tolist():
        others = numpy.flatnonzero(fold_of != fold)
        sample = _Sample.of(_remember([docs[i] for i in others.tolist()], fold_of[others])[0])
        weights: Optional[Floats] = None
        for i, penalty in enumerate(tried):
            weights = fit_weights(sample.features, sample.right, sample.competition, penalties(main, penalty), weights)
            for j in numpy.flatnonzero(fold_of == fold).tolist():
                parts[i][j] = docs[j].features @ weights
    return [numpy.concatenate(part) for part in parts]


def _alone(docs: Sequence[FitDoc], name: str) -> float:
    given, right = (sum(doc.alone[name][i] for doc in docs) for i in range(2))
    return _f1(right, given, sum(doc.n_gold for doc in docs))


def _f1_of(sample: _Sample, chosen: Ints, n_gold: int) -> float:
    return _f1(float(sample.right[chosen].sum()), len(chosen), n_gold)


def _f1(right: float, given: int, gold: int) -> float:
    return 200.0 * right / max(1, given + gold)


def _calibration_error(sample: _Sample, probabilities: Floats, threshold: float) -> float:
    chosen = choose(sample.spans, probabilities - threshold)
    bins = numpy.minimum((probabilities[chosen] * 10).astype("int64"), 9)
    gaps = numpy.bincount(bins, weights=probabilities[chosen] - sample.right[chosen], minlength=10)
    return float(numpy.abs(gaps).sum()) / max(1, len(chosen))
