"""Fine-grained types as clusters of entities (Xue et al. 2020, Section 4.3)."""

from typing import List, NamedTuple, Optional

import numpy
from numpy.typing import NDArray

from ..errors import WeaknerError
from ..ty import Array

# Smaller clusters are dropped: a single entity has no spread.
MIN_SIZE = 2
# Smallest spread: equal vectors would have infinite weight.
MIN_SPREAD = 1e-3


class Clusters(NamedTuple):
    """The clusters of the entities in a corpus.

    centers (Array): Shape (n_types, width): m_k.
    spreads (Array): Shape (n_types,): V_k; infinite for dropped clusters.
    weights (Array): Shape (n_types,): alpha_k; 0 for dropped clusters.
    """

    centers: Array
    spreads: Array
    weights: Array

    def ordered(self, numbers: List[int]) -> "Clusters":
        """Renumber the clusters.

        numbers (List[int]): The new number of each cluster, a permutation.
        RETURNS (Clusters): The clusters.
        """
        order = numpy.argsort(numbers)
        return Clusters(self.centers[order], self.spreads[order], self.weights[order])

    def assign(self, vectors: Array) -> NDArray[numpy.int64]:
        """Find the nearest cluster of each entity.

        vectors (Array): Shape (n, width).
        RETURNS (NDArray[numpy.int64]): Shape (n,).
        """
        wide = numpy.asarray(vectors, dtype="float64")
        distances = (self.centers**2).sum(axis=1)[None] - 2.0 * wide @ self.centers.T
        result: NDArray[numpy.int64] = distances.argmin(axis=1)
        return result


def find_clusters(vectors: Array, n_types: int, seed: int) -> Clusters:
    """Cluster entities by k-means.

    vectors (Array): Shape (n, width): one per entity.
    n_types (int): Number of clusters.
    seed (int): Seed of the initial centers.
    RETURNS (Clusters): The clusters.
    RAISES (WeaknerError): If there are fewer entities than clusters.
    """
    if len(vectors) < n_types:
        raise WeaknerError(
            f"{len(vectors)} entities were found, too few for {n_types} types. Lower n_types, or give a larger corpus "
            "to the training clock."
        )
    from sklearn.cluster import KMeans

    fitted = KMeans(n_types, n_init=1, random_state=seed).fit(numpy.asarray(vectors, dtype="float32"))
    spreads = numpy.full(n_types, numpy.inf)
    for k in range(n_types):
        members = vectors[fitted.labels_ == k]
        if len(members) >= MIN_SIZE:
            spreads[k] = spread(members)
    return Clusters(fitted.cluster_centers_, spreads, cluster_weights(spreads))


def spread(members: Array) -> float:
    """Compute V_k: the mean squared distance of a cluster's entities from its center, per dimension. (With the sum over
    entities and dimensions, as in the paper, 1 / V is nearly 0 for every cluster except single entities, and all
    weights are equal.)

    members (Array): Shape (n, width).
    RETURNS (float): The spread.
    """
    wide = numpy.asarray(members, dtype="float64")
    return float(((wide - wide.mean(axis=0)) ** 2).mean())


def cluster_weights(spreads: Array) -> Array:
    """Compute alpha_k, proportional to exp(1 / V_k) (Equation 10), with a mean of 1 over the clusters that are kept.

    spreads (Array): Shape (n_types,): V_k; infinite for dropped clusters.
    RETURNS (Array): Shape (n_types,); 0 for dropped clusters.
    """
    kept = numpy.isfinite(spreads)
    if not kept.any():
        return numpy.zeros(len(spreads))
    inverse = 1.0 / numpy.maximum(spreads, MIN_SPREAD)
    weights = numpy.where(kept, numpy.exp(inverse - inverse[kept].max()), 0.0)
    return weights * kept.sum() / weights.sum()


def match_clusters(old: Optional[Clusters], new: Clusters) -> List[int]:
    """Match new clusters to those of an earlier renewal, since the numbers of k-means clusters are arbitrary. The sum
    of the squared distances of the centers is minimized.

    old (Optional[Clusters]): The earlier clusters, if there are any.
    new (Clusters): The new clusters.
    RETURNS (List[int]): An old cluster for every new one, each used once.
    """
    if old is None:
        return list(range(len(new.centers)))
    from scipy.optimize import linear_sum_assignment

    distances = ((new.centers[:, None] - old.centers[None]) ** 2).sum(axis=2)
    _, columns = linear_sum_assignment(distances)
    return [int(column) for column in columns]
