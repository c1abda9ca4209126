"""The CRF by enumeration of all tag sequences, summed with `math.fsum`: the twin that the kernel is tested against."""

import math
from itertools import pairwise, product
from typing import Any, Callable, List, Sequence, Tuple

import numpy

from spacy_weakner.crf.kernel import CRFParameters

TOLERANCE = 1e-8  # absolute or relative
Tags = Tuple[int, ...]

# (number of tags, lengths of the sequences, scale of the emissions, scale of the transitions, share forbidden)
CASES = [
    (3, [4], 1.0, 1.0, 0.0),
    (4, [2, 5, 1, 4, 3], 1.0, 1.0, 0.0),
    (2, [8, 8], 3.0, 1.0, 0.0),
    (1, [3, 1, 2], 1.0, 1.0, 0.0),
    (5, [1], 1.0, 1.0, 0.0),
    (5, [1, 1, 1], 5.0, 5.0, 0.2),
    (3, [3, 6, 1, 6], 10.0, 5.0, 0.3),
    (3, [3, 6, 1, 6], 2.0, 2.0, 0.5),
    (4, [5, 2, 4], 100.0, 25.0, 0.0),
    (4, [1, 5, 3], 200.0, 50.0, 0.0),
    (4, [1, 3, 5], 200.0, 50.0, 0.3),
    (3, [6, 6, 2], 200.0, 50.0, 0.5),
]


def random_case(
    case: Tuple[int, List[int], float, float, float], seed: int = 0
) -> Tuple[CRFParameters, List[numpy.ndarray]]:
    """Draw parameters and emissions of a case."""
    n_tags, lengths, emission_scale, scale, forbidden = case
    random = numpy.random.RandomState(seed)

    def draw(*shape: int) -> numpy.ndarray:
        scores = random.uniform(-scale, scale, size=shape)
        return numpy.where(random.uniform(size=shape) < forbidden, -numpy.inf, scores)

    parameters = CRFParameters(draw(n_tags), draw(n_tags, n_tags), draw(n_tags))
    emissions = [random.uniform(-emission_scale, emission_scale, size=(n, n_tags)) for n in lengths]
    return parameters, [e.astype("float32") for e in emissions]


def score(parameters: CRFParameters, emissions: numpy.ndarray, tags: Sequence[int]) -> float:
    start, transitions, end = parameters
    parts = [float(start[tags[0]]), float(end[tags[-1]])]
    parts += [float(emissions[t, tag]) for t, tag in enumerate(tags)]
    parts += [float(transitions[a, b]) for a, b in pairwise(tags)]
    return math.fsum(parts)


def all_paths(parameters: CRFParameters, emissions: numpy.ndarray) -> List[Tuple[float, Tags]]:
    """Every tag sequence with its score, best first; without those that are forbidden."""
    n_tokens, n_tags = emissions.shape
    scored = [(score(parameters, emissions, tags), tags) for tags in product(range(n_tags), repeat=n_tokens)]
    return sorted((path for path in scored if path[0] > -math.inf), reverse=True)


def log_sum(scores: Sequence[float]) -> float:
    top = max(scores, default=-math.inf)
    return top + math.log(math.fsum(math.exp(s - top) for s in scores)) if top > -math.inf else -math.inf


def log_z(
    parameters: CRFParameters, emissions: numpy.ndarray, agrees: Callable[[Tags], bool] = lambda tags: True
) -> float:
    """Log-sum over the sequences that agree with something."""
    return log_sum([s for s, tags in all_paths(parameters, emissions) if agrees(tags)])


def expectation(
    parameters: CRFParameters, emissions: numpy.ndarray, statistic: Callable[[Tags], Any], shape: Tuple[int, ...]
) -> numpy.ndarray:
    """Expected value of an array; zero if there is no path."""
    paths = all_paths(parameters, emissions)
    total = log_sum([s for s, _ in paths])
    weighted = [math.exp(s - total) * numpy.asarray(statistic(tags), dtype="longdouble") for s, tags in paths]
    return numpy.asarray(sum(weighted, numpy.zeros(shape, dtype="longdouble")), dtype="float64")


def tokens(n_tags: int) -> Callable[[Tags], numpy.ndarray]:
    """Which tag stands at each token: (n_tokens, n_tags)."""
    return lambda tags: numpy.eye(n_tags)[list(tags)]


def edges(n_tags: int) -> Callable[[Tags], numpy.ndarray]:
    """Which pair of tags stands at each two neighbors: (n_tokens - 1, n_tags, n_tags)."""

    def statistic(tags: Tags) -> numpy.ndarray:
        result = numpy.zeros((len(tags) - 1, n_tags, n_tags))
        for t, (a, b) in enumerate(pairwise(tags)):
            result[t, a, b] = 1
        return result

    return statistic


def close(actual: Any, expected: Any) -> None:
    numpy.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)
