"""Learning of fine-grained types in addition to the labels (Xue et al. 2020, Section 4.3)."""

from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy
from thinc.api import Model, get_array_module, glorot_uniform_init

from ..errors import check_range
from ..losses import CategoricalCrossentropy, log_softmax, log_softmax_gradient
from ..mrc_ner.entity_types import Mentions
from ..ty import Array, SpanArray
from .clusters import Clusters, find_clusters, match_clusters


@dataclass
class FineTyping:
    """A method that clusters the corpus' entities by their vectors at every renewal, and trains a head to predict their
    clusters (Xue et al. 2020, Section 4.3). Entities of compact clusters have more weight (Equations 8 to 10):

        L = L_MRC + gamma * mean over the sentence's entities of alpha_{y_i} (-log P(y_i | e_i))

    where e_i is the sum of the vectors of an entity's tokens, and y_i its cluster by the vector of the teacher, the
    model at the renewal. alpha_k is proportional to exp(1 / V_k), where V_k is the mean squared distance of a cluster's
    entities from its center, per dimension. (The paper uses the sum; the authors' code has another form.) Due to the
    exponential, one cluster can get nearly all weight: spreads of 0.05 and 0.06 have weights of 28 to 1.

    n_types (int): The number of clusters, K.
    gamma (float): Weight of this loss relative to that of the boundaries. The weights alpha have a mean of 1 here, but
        sum to 1 in Equation 10: this is the paper's gamma divided by K.
    realign (bool): At a renewal, give new clusters the numbers of the nearest old ones. Otherwise the head is
        initialized again, since the numbers of clusters are arbitrary.
    max_entities (int): Maximum number of entities to cluster, sampled from the corpus.
    seed (int): Seed of the sampling and of k-means.
    RAISES (WeaknerError): If a setting is out of range.
    """

    n_types: int = 10
    gamma: float = 0.9
    realign: bool = True
    max_entities: int = 50_000
    seed: int = 0
    _clusters: Optional[Clusters] = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range("n_types", self.n_types, 2, None)
        check_range("gamma", self.gamma, 0.0, None)
        check_range("max_entities", self.max_entities, self.n_types, None)

    def reset(self) -> None:
        """Remove the clusters."""
        self._clusters = None

    def pool(self, vectors: Any, spans: SpanArray) -> Any:
        """Sum the vectors of each entity's tokens, for the question of its label: e_i. See `EntityTyping`."""
        if not len(spans):
            return vectors[:0, 0]
        return get_array_module(vectors).stack([vectors[start:end, k].sum(axis=0) for start, end, k in spans.tolist()])

    def renew(self, layer: Model, batches: Iterator[Array]) -> None:
        """Find clusters.

        layer (Model): The linear layer; initialized again if the numbers of the clusters have a new meaning.
        batches (Iterator[Array]): The teacher's vectors of entities, shape (n, width), batch by batch.
        RAISES (WeaknerError): If there are fewer entities than clusters.
        """
        vectors = self._draw(batches)
        new = find_clusters(vectors, self.n_types, self.seed)
        if self.realign and self._clusters is not None:
            new = new.ordered(match_clusters(self._clusters, new))
        self._clusters = new
        if not self.realign:
            shape = layer.get_param("W").shape
            layer.set_param("W", glorot_uniform_init(layer.ops, shape))
            layer.set_param("b", layer.ops.alloc1f(shape[0]))

    def loss(
        self, layer: Model, vectors: List[Any], mentions: List[Optional[Mentions]]
    ) -> Tuple[float, Callable[[List[Any]], None]]:
        """Compute the loss of the types: the mean over the entities of each sentence. See `EntityTyping`."""
        used = [(i, mention) for i, mention in enumerate(mentions) if mention is not None and len(mention.spans)]
        if not used:
            return 0.0, lambda gradients: None
        ops, width = layer.ops, layer.get_dim("nI")
        pooled = ops.xp.concatenate([self.pool(vectors[i][..., :width], mention.spans) for i, mention in used])
        scores, backprop = layer.begin_update(pooled)
        values, slope = self(ops.to_numpy(scores), numpy.concatenate([mention.vectors for _, mention in used]))
        shares = numpy.concatenate([numpy.full(len(mention.spans), 1.0 / len(mention.spans)) for _, mention in used])

        def learn(gradients: List[Any]) -> None:
            rows = iter(backprop(ops.asarray2f((slope * shares[:, None]).astype("float32"))))
            for i, mention in used:
                for start, end, k in mention.spans.tolist():
                    gradients[i][start:end, k, :width] += next(rows)

        return float((values * shares).sum()), learn

    def __call__(self, scores: Array, vectors: Array) -> Tuple[Array, Array]:
        """Compute the loss of some entities.

        scores (Array): Shape (n, n_types): scores of the head.
        vectors (Array): Shape (n, width): the teacher's vectors of the same entities.
        RETURNS (Tuple[Array, Array]): Loss of each entity, and its gradient, shape (n, n_types); 0 before the first
            renewal.
        """
        if self._clusters is None or not len(scores):
            return numpy.zeros(len(scores)), numpy.zeros(scores.shape)
        types = self._clusters.assign(vectors)
        weights = self.gamma * self._clusters.weights[types]
        found = log_softmax(scores)
        values, slope = CategoricalCrossentropy()(found, numpy.eye(self.n_types)[types])
        return weights * values, weights[:, None] * log_softmax_gradient(found, slope)

    def _draw(self, batches: Iterator[Array]) -> Array:
        # Each entity of the corpus has the same probability (Vitter's algorithm R).
        random = numpy.random.default_rng(self.seed)
        kept: List[Array] = []
        for seen, vector in enumerate(vector for batch in batches for vector in batch):
            if seen < self.max_entities:
                kept.append(vector.copy())  # not a view, which would keep its whole batch in memory
                continue
            place = int(random.integers(seen + 1))
            if place < self.max_entities:
                kept[place] = vector.copy()
        return numpy.asarray(kept)
