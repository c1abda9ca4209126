"""Thresholds of scores from which on entities have a wanted precision.

For each label, from the highest threshold downwards, the hypothesis is tested that the entities which reach the
threshold are right less often than wanted (learn then test, Angelopoulos et al. 2021). Of n entities that reach it
k are right; under the hypothesis that happens with a chance of at most

    p = P(X >= k)   where X is binomial with n trials and the wanted precision

and the hypothesis is rejected if p is small enough. Tests go downwards until the first hypothesis that stands. As their
order is fixed by the scores alone, and they end at the first failure, no correction for their number is needed. Four
such sequences begin at different heights, since the highest scores are not always the best: the first one, which may
use half of delta, at 20 entities, or twice as many as can be convincing at all, or half of them; the others, which
share the rest, at all entities, half and a quarter of them. The lowest threshold that any of them accepts is taken. So
the chance that a label's threshold promises too much is at most delta, for each label.

What is guaranteed, and on which conditions: given the scores of the held-out entities, with a chance of at least
1 - delta, those that are kept have on average at least the wanted chance to be right (by Hoeffding 1956, for delta up
to 0.25, though the chances differ). This carries over to new text as far as

- the gold was not used to fit the pipeline, nor to choose it, nor its settings;
- new text comes from where the gold comes from (the entities are exchangeable);
- whether an entity is right does not depend on others. Many mentions of one name in a document are worth fewer, which
  makes thresholds too low;
- thresholds only take away what the pipeline predicts now. Where it then decides for something else, nothing is known
  of that.

Recall is promised nothing.
"""

import math
from bisect import bisect_left
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy

# The first sequence of tests begins with so many entities, if there are twice as many.
FEWEST = 20
# By how much a threshold lies below the score that it keeps, at most: the same text may get a slightly lower one in
# another batch.
MARGIN = 1e-6
# One entity: its score, and whether it is right.
Scored = Tuple[float, bool]


class Threshold(NamedTuple):
    """The threshold of a label, or of several together."""

    threshold: Optional[float]  # from here on scores have the wanted precision; None if no score is known to have it
    # True if the label had too few entities, so that it was taken together with others; the counts are those of all of
    # them.
    pooled: bool
    entities: int  # entities with a score that it was learned from
    right: int  # those of them that are right
    kept: int = 0  # entities that reach the threshold
    kept_right: int = 0  # those of them that are right
    # Exact lower bound of the precision of the kept ones, by the test that accepted the threshold; None if there is
    # none.
    bound: Optional[float] = None

    @property
    def precision(self) -> Optional[float]:
        """That of the kept ones; None if nothing was kept."""
        return self.kept_right / self.kept if self.kept else None

    @property
    def recall(self) -> Optional[float]:
        """Share of the right entities that are kept; None if there are none."""
        return self.kept_right / self.right if self.right else None


class Thresholds(NamedTuple):
    """Thresholds per label, sorted, and for labels that were not seen: all that had too few entities together; if these
    are too few, all labels."""

    labels: Dict[str, Threshold]
    others: Threshold


def fit_thresholds(
    scored: Mapping[str, Sequence[Scored]], precision: float, delta: float, min_entities: int = 0
) -> Thresholds:
    """Find a threshold for each label. Labels with fewer than `min_entities` entities, or with too few to be
    convincing, are taken together."""
    needed = max(min_entities, convincing(precision, delta))
    few = {label for label, entities in scored.items() if len(entities) < needed}
    together = [entity for label in sorted(few) for entity in scored[label]]
    if len(together) < needed:
        together = [entity for label in sorted(scored) for entity in scored[label]]
    others = find_threshold(together, precision, delta)._replace(pooled=True)
    found = {
        label: others if label in few else find_threshold(scored[label], precision, delta) for label in sorted(scored)
    }
    return Thresholds(found, others)


def find_threshold(scored: Sequence[Scored], precision: float, delta: float) -> Threshold:
    """Find the threshold of some entities; see the top of this module."""
    ordered = sorted(scored, key=lambda entity: -entity[0])
    scores = [score for score, _ in ordered]
    hits = numpy.cumsum([right for _, right in ordered], dtype="int64").tolist()
    # How many entities reach each threshold, the highest first: those of equal scores go together.
    numbers = [i for i in range(1, len(scores) + 1) if i == len(scores) or scores[i] < scores[i - 1]]
    kept, by = 0, delta
    for start, share in _sequences(len(scores), precision, delta):
        for n in numbers[bisect_left(numbers, start) :]:
            if upper_tail(hits[n - 1], n, precision) > share:
                break
            kept, by = max((kept, by), (n, share))
    right = hits[-1] if hits else 0
    if not kept:
        return Threshold(None, False, len(scores), right)
    below = scores[kept] if kept < len(scores) else -math.inf
    threshold = max(scores[kept - 1] - MARGIN, (scores[kept - 1] + below) / 2.0)
    hit = hits[kept - 1]
    return Threshold(threshold, False, len(scores), right, kept, hit, lower_bound(hit, kept, by))


def convincing(precision: float, delta: float) -> int:
    """How many entities have to be right without exception to tell that their precision is as wanted."""
    return max(1, math.ceil(math.log(delta) / math.log(precision) - 1e-9))


def _sequences(n: int, precision: float, delta: float) -> List[Tuple[int, float]]:
    """Where sequences of tests begin, in numbers of entities, and the share of delta that each may use."""
    least = convincing(precision, delta / 2)
    first = max(least, min(max(2 * least, FEWEST), n // 2))
    later = [start for start in (n // 4, n // 2, n) if start > first]
    if not later:
        return [(convincing(precision, delta), delta)]
    return [(first, delta / 2), *((start, delta / 2 / len(later)) for start in later)]


# The binomial distribution


def upper_tail(k: int, n: int, p: float) -> float:
    """P(X >= k) of a binomial X: the chance of at least k successes in n trials, each with the chance p."""
    from scipy.special import betainc

    return 1.0 if k <= 0 else 0.0 if k > n else float(betainc(k, n - k + 1, p))


def lower_bound(k: int, n: int, delta: float) -> float:
    """The exact lower bound of a share (Clopper and Pearson 1934): the largest p under which at least k successes in n
    trials have a chance of at most delta; 0 if k is 0."""
    from scipy.special import betaincinv

    return float(betaincinv(k, n - k + 1, delta)) if k > 0 else 0.0
