"""Fitting of the outside bias and the temperature of a head."""

import math
from typing import Callable, List, NamedTuple, Sequence, Tuple

import numpy
from spacy.training import Example

from ..corpus.weak import doc_entities
from ..heads.entities import EntityHead
from ..scores import count_matches
from ..ty import Entity

# Biases to try; those around the best one are then tried in finer steps.
WIDEST_BIAS, STEP, FINE_STEP = 8.0, 0.5, 0.1
# Range of temperatures to search.
LOWEST, HIGHEST = 0.05, 20.0


class FittedNumber(NamedTuple):
    """A fitted number."""

    value: float
    before: float  # the criterion on the gold with the former value
    after: float  # the same with the new value
    at_bound: bool  # True if the value is at the end of the search range


def fit_bias(pipe: EntityHead, examples: Sequence[Example]) -> FittedNumber:
    """Set the outside bias with the best F1."""
    docs = [example.predicted for example in examples]
    wanted = [doc_entities(example.reference) for example in examples]
    kept = [[] if pipe.overwrite else doc_entities(doc) for doc in docs]

    def f1(biases: Sequence[float]) -> List[float]:
        found = pipe.entities_under(docs, biases)
        both = [[more + before for more in by_bias] for before, by_bias in zip(kept, found, strict=True)]
        return f1_under(wanted, both)

    (before,) = f1([pipe.bias])
    coarse = numpy.arange(-WIDEST_BIAS, WIDEST_BIAS + STEP, STEP).tolist()
    middle, _ = best_bias(coarse, f1(coarse))
    around = numpy.arange(middle - STEP, middle + STEP + FINE_STEP / 2, FINE_STEP).round(6).tolist()
    fine = [0.0, pipe.bias, *(bias for bias in around if abs(bias) <= WIDEST_BIAS)]
    best, after = best_bias(fine, f1(fine))
    pipe.set_bias(best)
    return FittedNumber(best, before, after, abs(best) >= WIDEST_BIAS)


def f1_under(wanted: Sequence[Sequence[Entity]], found: Sequence[Sequence[Sequence[Entity]]]) -> List[float]:
    """Return F1 in [0, 100] for each bias, given the entities per Doc and bias; 0 without gold and found entities."""
    return [count_matches(zip(wanted, of_bias, strict=True))[0].f1 for of_bias in zip(*found, strict=True)]


def best_bias(biases: Sequence[float], scores: Sequence[float]) -> Tuple[float, float]:
    """Return the bias with the best score, and its score; of equally good biases, the one nearest to 0."""
    best = max(range(len(biases)), key=lambda i: (scores[i], -abs(biases[i])))
    return biases[best], scores[best]


def fit_temperature(pipe: EntityHead, examples: Sequence[Example]) -> FittedNumber:
    """Set the temperature that maximizes the likelihood of the gold.

    RAISES (WeaknerError): If the loss is not finite.
    """
    loss = pipe.held_out_loss(examples)
    before = loss(pipe.temperature)
    pipe.check_loss(before)
    best = find_temperature(loss)
    pipe.set_temperature(best)
    return FittedNumber(best, before, loss(best), best < LOWEST * 1.01 or best > HIGHEST / 1.01)


def find_temperature(loss: Callable[[float], float]) -> float:
    """Return the temperature with the lowest loss, from `LOWEST` to `HIGHEST`; see `EntityHead.held_out_loss`."""
    from scipy.optimize import minimize_scalar

    bounds = (math.log(LOWEST), math.log(HIGHEST))
    found = minimize_scalar(lambda x: loss(math.exp(x)), bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return math.exp(found.x)
