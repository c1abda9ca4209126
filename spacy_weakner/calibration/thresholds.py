"""Score thresholds above which entities have a wanted precision.

For each label, from the highest threshold downwards, we test the hypothesis that the entities which reach the threshold
are right less often than wanted (learn then test, Angelopoulos et al. 2021). If k of the n entities that reach it are
right, the probability of this result under the hypothesis is at most

    p = P(X >= k)   where X is binomial with n trials and the wanted precision

and the hypothesis is rejected if p is small enough. The tests continue downwards until the first hypothesis that is not
rejected. Since their order is fixed by the scores alone, and they end at the first failure, no correction for multiple
tests is needed. Four such sequences start at different thresholds, since the highest scores are not always the most
precise. The first one, which may use half of delta, starts at 20 entities or at twice the minimum number that can be
convincing, whichever is larger, but at most at half of all entities; the others, which share the rest of delta, start
at all entities, half and a quarter of them. The lowest threshold accepted by any sequence is used. For each label, the
probability that its threshold does not have the wanted precision is thus at most delta.

The guarantee and its conditions: given the scores of the held-out entities, with a probability of at least 1 - delta,
the kept entities have on average at least the wanted probability of being right (by Hoeffding 1956, for delta up to
0.25, even if the probabilities differ). This holds for new text if

- the gold was not used to fit the pipeline, or to choose it or its settings;
- new text comes from the same distribution as the gold (the entities are exchangeable);
- whether an entity is right does not depend on others. Many mentions of one name in a document carry less information,
  which makes thresholds too low;
- thresholds only remove present predictions of the pipeline. If it then decides on another entity, nothing is
  guaranteed for that.

Recall is not guaranteed.

A label for which no threshold is accepted would lose all its entities. Unless that is wanted, it gets the best
threshold there is, without a guarantee: the lowest one whose kept entities, at least 20 of them, were as precise as
wanted; or else the one with the highest lower bound of its precision.
"""

import math
from bisect import bisect_left
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy

# The first sequence of tests starts with this number of entities, if there are twice as many.
FEWEST = 20
# Maximum distance of a threshold below the score that it keeps: the same text may get a slightly lower score in another
# batch.
MARGIN = 1e-6
# An entity: its score, and whether it is right.
ScoredEntity = Tuple[float, bool]


class Threshold(NamedTuple):
    """The threshold of a label, or of several pooled labels."""

    threshold: Optional[float]  # scores from here on have the wanted precision; None if no such score was found
    # True if the label had too few entities, so that it was pooled with others; the counts are those of all pooled
    # labels.
    pooled: bool
    entities: int  # entities with a score used for the fit
    right: int  # of these, entities that are right
    kept: int = 0  # entities that reach the threshold
    kept_right: int = 0  # of these, entities that are right
    # Exact lower bound of the precision of kept entities, from the test that accepted the threshold; None without one.
    bound: Optional[float] = None
    guaranteed: bool = True  # False for the best threshold there is, if none was accepted

    @property
    def precision(self) -> Optional[float]:
        """Precision of the kept entities; None if none was kept."""
        return self.kept_right / self.kept if self.kept else None

    @property
    def recall(self) -> Optional[float]:
        """Share of the right entities that are kept; None if there are none."""
        return self.kept_right / self.right if self.right else None


class Thresholds(NamedTuple):
    """Thresholds per label, sorted, and for labels that were not seen: those with too few entities, pooled; if these
    are still too few, all labels pooled."""

    labels: Dict[str, Threshold]
    others: Threshold


def fit_thresholds(
    scored: Mapping[str, Sequence[ScoredEntity]],
    precision: float,
    delta: float,
    min_entities: int = 0,
    strict: bool = True,
) -> Thresholds:
    """Fit a threshold for each label. Labels with fewer than `min_entities` entities, or with too few to be convincing,
    are pooled. If no threshold is accepted, there is none if `strict`, else the best one."""
    needed = max(min_entities, convincing(precision, delta))
    few = {label for label, entities in scored.items() if len(entities) < needed}
    together = [entity for label in sorted(few) for entity in scored[label]]
    if len(together) < needed:
        together = [entity for label in sorted(scored) for entity in scored[label]]
    others = find_threshold(together, precision, delta, strict)._replace(pooled=True)
    found = {
        label: others if label in few else find_threshold(scored[label], precision, delta, strict)
        for label in sorted(scored)
    }
    return Thresholds(found, others)


def find_threshold(scored: Sequence[ScoredEntity], precision: float, delta: float, strict: bool = True) -> Threshold:
    """Return the threshold of some entities; see the top of this module."""
    ordered = sorted(scored, key=lambda entity: -entity[0])
    scores = [score for score, _ in ordered]
    hits = numpy.cumsum([right for _, right in ordered], dtype="int64").tolist()
    # The number of entities that reach each threshold, highest first; equal scores are counted together.
    numbers = [i for i in range(1, len(scores) + 1) if i == len(scores) or scores[i] < scores[i - 1]]
    kept, by = 0, delta
    for start, share in _sequences(len(scores), precision, delta):
        for n in numbers[bisect_left(numbers, start) :]:
            if upper_tail(hits[n - 1], n, precision) > share:
                break
            kept, by = max((kept, by), (n, share))
    right = hits[-1] if hits else 0
    guaranteed = kept > 0
    if not (strict or guaranteed) and right:
        kept = max(
            (n for n in numbers if n >= FEWEST and hits[n - 1] >= precision * n),
            default=max(numbers, key=lambda n: lower_bound(hits[n - 1], n, delta)),
        )
    if not kept:
        return Threshold(None, False, len(scores), right)
    below = scores[kept] if kept < len(scores) else -math.inf
    threshold = max(0.0, scores[kept - 1] - MARGIN, (scores[kept - 1] + below) / 2.0)
    hit = hits[kept - 1]
    return Threshold(threshold, False, len(scores), right, kept, hit, lower_bound(hit, kept, by), guaranteed)


def convincing(precision: float, delta: float) -> int:
    """Return the minimum number of entities, all right, that shows that the precision is as wanted."""
    return max(1, math.ceil(math.log(delta) / math.log(precision) - 1e-9))


def _sequences(n: int, precision: float, delta: float) -> List[Tuple[int, float]]:
    """Return the starts of the sequences of tests, in numbers of entities, and the share of delta of each."""
    least = convincing(precision, delta / 2)
    first = max(least, min(max(2 * least, FEWEST), n // 2))
    later = [start for start in (n // 4, n // 2, n) if start > first]
    if not later:
        return [(convincing(precision, delta), delta)]
    return [(first, delta / 2), *((start, delta / 2 / len(later)) for start in later)]


# The binomial distribution


def upper_tail(k: int, n: int, p: float) -> float:
    """Return P(X >= k) for a binomial X: the probability of at least k successes in n trials with probability p."""
    from scipy.special import betainc

    return 1.0 if k <= 0 else 0.0 if k > n else float(betainc(k, n - k + 1, p))


def lower_bound(k: int, n: int, delta: float) -> float:
    """Return the exact lower bound of a share (Clopper and Pearson 1934): the largest p for which at least k successes
    in n trials have a probability of at most delta; 0 if k is 0."""
    from scipy.special import betaincinv

    return float(betaincinv(k, n - k + 1, delta)) if k > 0 else 0.0
