"""A label model: combines sources without gold, by how they agree.

A hidden Markov model (Rabiner 1989) over the sources, as in Lison et al. (2020) and skweak (2021), which are Dawid and
Skene (1979) for sequences. The states are the true BIO tags and a `tempting` state, which is "O" as well; given the
states, the sources are independent, each as in `source_model`:

    p(z, says) = start(z_1) prod_t transition(z_t, z_t+1) prod_t prod_s p_s(says_t,s | z_t)

A source that has not looked at a Doc contributes no factor. The parameters maximise the posterior density (EM, Baum et
al. 1970). Nothing but the prior tells an EM algorithm what a state means, so it starts from the prior, in which every
source is better than chance, and the prior keeps the weight of `strength` observations of each parameter.

At least three sources that err apart are needed to learn whom to trust (with fewer, agreement can be explained in many
ways); with one source the result is nearly what it says. The same holds label by label: what is believed about a label
that one source alone ever gives follows from the prior, since there is no agreement to learn from, and is marked as not
identified (`Belief.identified`). Sources that make the same mistakes are taken to be right
together: no method without gold can see that.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy

from ..batching import group_by_length
from ..corpus.tags import IntTags, TagScheme
from ..crf.kernel import Batch, CRFParameters, pad
from ..crf.scaled import partition
from .decoding import Floats
from .observations import Belief, Source
from .source_model import DEFAULT_RELIABILITY, HIT, SourceParameters, events, log_prior, maximise, prior

# Observations that the prior of each parameter is worth: little to any corpus that can teach the model something.
STRENGTH = 100.0
MAX_ITERATIONS = 100
# EM ends when an iteration gains less than this per token.
TOLERANCE = 1e-4
# Tokens of a batch, padding included.
BATCH_TOKENS = 20_000
# Prior chances: the token after the first of an entity belongs to it, or after a tempting token is tempting.
STAYS = 0.5


@dataclass(frozen=True)
class LabelModel:
    """The parameters of the model.

    labels (Tuple[str, ...]): Entity labels.
    names (Tuple[str, ...]): Names of the sources.
    start (Floats): Shape (n_states,): the tags of the BIO scheme, and `tempting`.
    transitions (Floats): Shape (n_states, n_states), from row to column; 0 where the scheme forbids it.
    sources (Tuple[SourceParameters, ...]): One per source.
    """

    labels: Tuple[str, ...]
    names: Tuple[str, ...]
    start: Floats
    transitions: Floats
    sources: Tuple[SourceParameters, ...]

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        """The probability of each tag at each token, given what all sources say about the whole Doc.

        docs (Sequence[IntTags]): Per Doc (n_tokens, n_sources), see `observations.observe`.
        RETURNS (List[Floats]): Per Doc (n_tokens, n_tags); rows sum to 1.
        """
        n_tags = 1 + 2 * len(self.labels)
        result = [numpy.zeros((len(says), n_tags)) for says in docs]
        log_events = [source.log_events() for source in self.sources]
        for members in group_by_length([len(says) for says in docs], BATCH_TOKENS):
            did = [events(docs[i], len(self.labels)) for i in members]
            batch = pad([_emissions(log_events, what) for what in did])
            _, marginals = partition(self._parameters(), batch)
            for i, states in zip(members, batch.unpad(marginals(None).tokens), strict=True):
                result[i] = states[:, :-1]
                result[i][:, 0] += states[:, -1]
        return result

    def to_json(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): The parameters, as JSON can hold them."""
        return {
            "labels": list(self.labels),
            "states": [*TagScheme("BIO", self.labels).tags, "tempting"],
            "start": self.start.tolist(),
            "transitions": self.transitions.tolist(),
            "sources": {name: s.to_json() for name, s in zip(self.names, self.sources, strict=True)},
        }

    def _parameters(self) -> CRFParameters:
        with numpy.errstate(divide="ignore"):
            return CRFParameters(numpy.log(self.start), numpy.log(self.transitions), numpy.zeros(len(self.start)))


class Fitted(NamedTuple):
    """A label model and how it was fitted.

    model (LabelModel): The model.
    docs (int): Docs.
    tokens (int): Tokens.
    iterations (int): Iterations of EM.
    converged (bool): Whether the last one gained almost nothing.
    objective (Tuple[float, ...]): Log-likelihood plus log-prior before every iteration, and at the end.
    beliefs (Tuple[Belief, ...]): What the model believes about the sources.
    """

    model: LabelModel
    docs: int
    tokens: int
    iterations: int
    converged: bool
    objective: Tuple[float, ...]
    beliefs: Tuple[Belief, ...]

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        """As those of the model."""
        return self.model.distributions(docs)

    def to_json(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): All of it, as JSON can hold it."""
        how = {key: value for key, value in self._asdict().items() if key != "model"}
        how["beliefs"] = [belief._asdict() for belief in self.beliefs]
        return {"fit": how, "model": self.model.to_json()}


def fit(
    docs: Sequence[IntTags],
    sources: Sequence[Source],
    labels: Sequence[str],
    *,
    strength: float = STRENGTH,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Fitted:
    """Fit a label model. The order of the Docs does not matter, up to rounding.

    docs (Sequence[IntTags]): Per Doc (n_tokens, n_sources), see `observations.observe`.
    sources (Sequence[Source]): The sources, in the order of the columns.
    labels (Sequence[str]): All their labels.
    strength (float): How many observations the prior of each parameter is worth, above 0.
    max_iterations (int): Iterations of EM at most; 0 keeps the prior.
    tolerance (float): Gain per token below which EM ends.
    RETURNS (Fitted): The model, and how it was fitted.
    """
    data = _Data([says for says in docs if len(says)], len(labels), len(sources))
    means = prior_model(data.rates(), sources, labels)
    model = means
    objective: List[float] = []
    converged = False
    while True:
        log_likelihood, start, transitions, counts = data.expect(model)
        objective.append(log_likelihood + _log_prior(model, means, strength))
        if len(objective) > 1:
            converged = objective[-1] - objective[-2] < tolerance * max(1, data.tokens)
        if converged or len(objective) > max_iterations:
            break
        model = LabelModel(
            model.labels,
            model.names,
            _normalised(start + strength * means.start),
            _normalised(transitions + strength * means.transitions),
            tuple(maximise(c, m, strength) for c, m in zip(counts, means.sources, strict=True)),
        )
    beliefs = tuple(_beliefs(model, sources, counts))
    return Fitted(model, len(docs), data.tokens, len(objective) - 1, converged, tuple(objective), beliefs)


def prior_model(rates: Floats, sources: Sequence[Source], labels: Sequence[str]) -> LabelModel:
    """The model before EM. How many entities and tempting tokens there are follows from how much the sources write: a
    source with the rate R, reliability r and hit rate h speaks for R r / h entities per token, and for R tempting
    tokens, at each of which it fires with the probability 1 - r.

    rates (Floats): Shape (n_sources, n_labels): entities per token that each source writes.
    sources (Sequence[Source]): The sources.
    labels (Sequence[str]): All labels.
    RETURNS (LabelModel): Means of the prior.
    """
    reliability = numpy.array([DEFAULT_RELIABILITY if s.reliability is None else s.reliability for s in sources])
    hit = numpy.array([HIT[s.complete] for s in sources])
    speaks = rates > 0
    implied = rates * (reliability / hit)[:, None]
    # Sources that do not know a label say nothing about how frequent it is.
    entities = implied.sum(0) / numpy.maximum(speaks.sum(0), 1)
    tempting = rates.sum() / max(1, speaks.any(1).sum())
    # Overlapping estimates of dense sources could leave no room for "O".
    room = min(1.0, 0.5 / max(entities.sum() + tempting, 1e-12))
    n_states = 2 * len(labels) + 2
    fresh = numpy.zeros(n_states)
    fresh[1:-1:2], fresh[-1] = entities * room, tempting * room
    fresh[0] = 1 - fresh.sum()
    transitions = numpy.tile(fresh, (n_states, 1))
    for state in range(1, n_states):
        # Any tag of an entity may be followed by the inner tag of its label.
        stays = state if state == n_states - 1 else state + state % 2
        transitions[state] *= 1 - STAYS
        transitions[state, stays] += STAYS
    given = [prior(row, r, s.complete) for row, r, s in zip(rates, reliability, sources, strict=True)]
    return LabelModel(tuple(labels), tuple(s.name for s in sources), fresh, transitions, tuple(given))


class _Data:
    """The Docs as patterns: most tokens are one of few combinations of what all sources do.

    docs (List[IntTags]): Per Doc (n_tokens, n_sources).
    n_labels (int): Number of labels.
    n_sources (int): Number of sources.
    """

    def __init__(self, docs: List[IntTags], n_labels: int, n_sources: int) -> None:
        self.n_labels = n_labels
        did = [events(says, n_labels).astype("int32") for says in docs]
        together = numpy.concatenate([numpy.zeros((0, n_sources), dtype="int32"), *did])
        self.patterns, ids = numpy.unique(together, axis=0, return_inverse=True)
        self.tokens = len(together)
        ends = numpy.cumsum([len(says) for says in docs], dtype="int64")
        self.docs = numpy.split(ids.reshape(-1), ends[:-1]) if docs else []
        self.seen = numpy.array([(together[:, s] != n_labels + 1).sum() for s in range(n_sources)])
        self.repeats = numpy.bincount(ids.reshape(-1), minlength=len(self.patterns))

    def rates(self) -> Floats:
        """RETURNS (Floats): Shape (n_sources, n_labels): entities per token that a source has looked at."""
        what = self.patterns % (self.n_labels + 2)
        opened = [(self.repeats[:, None] * (what == label)).sum(0) for label in range(1, self.n_labels + 1)]
        return numpy.array(opened).T.reshape(len(self.seen), -1) / numpy.maximum(self.seen, 1)[:, None]

    def expect(self, model: LabelModel) -> Tuple[float, Floats, Floats, List[Floats]]:
        """The E-step.

        model (LabelModel): The model.
        RETURNS (Tuple[float, Floats, Floats, List[Floats]]): Log-likelihood; expected numbers of starts, of
            transitions, and per source of each event in each state (n_events, n_states).
        """
        n_states = len(model.start)
        log_events = [source.log_events() for source in model.sources]
        emissions = _emissions(log_events, self.patterns)
        parameters = model._parameters()
        log_likelihood, start = 0.0, numpy.zeros(n_states)
        transitions = numpy.zeros((n_states, n_states))
        met = numpy.zeros(len(self.patterns) * n_states)
        for members in group_by_length([len(ids) for ids in self.docs], BATCH_TOKENS):
            batch: Batch = pad([emissions[self.docs[i]] for i in members])
            log_z, marginals = partition(parameters, batch)
            tokens, used = marginals(None)
            log_likelihood += float(log_z.sum())
            start += used.start
            transitions += used.transitions
            ids = batch.pad_like([self.docs[i] for i in members], 0, "int64")
            # The probabilities of the padding are 0.
            places = ids[:, :, None] * n_states + numpy.arange(n_states)
            met += numpy.bincount(places.ravel(), tokens.ravel(), minlength=len(met))
        counts = []
        for column, table in zip(self.patterns.T, log_events, strict=True):
            count = numpy.zeros_like(table)
            numpy.add.at(count, column, met.reshape(-1, n_states))
            # The event of sources that have not looked.
            count[self.n_labels + 1] = 0.0
            counts.append(count)
        return log_likelihood, start, transitions, counts


def _emissions(log_events: Sequence[Floats], did: IntTags) -> Floats:
    # (n_tokens, n_states): the sum over the sources.
    total: Floats = numpy.sum([table[did[:, s]] for s, table in enumerate(log_events)], axis=0)
    return total


def _log_prior(model: LabelModel, means: LabelModel, strength: float) -> float:
    allowed = means.transitions > 0
    opens = means.start > 0
    total = (means.start[opens] * numpy.log(model.start[opens])).sum()
    total += (means.transitions[allowed] * numpy.log(model.transitions[allowed])).sum()
    given = sum(log_prior(s, m, strength) for s, m in zip(model.sources, means.sources, strict=True))
    return strength * float(total) + given


def _beliefs(model: LabelModel, sources: Sequence[Source], counts: Sequence[Floats]) -> Iterator[Belief]:
    n = len(model.labels)
    users = Counter(label for source in sources for label in source.labels)
    for source, count in zip(sources, counts, strict=True):
        opened = count.reshape(n + 1, n + 2, -1)[:, :-1].sum(0)  # (1 + n_labels, n_states)
        began = count.sum(0)  # (n_states,)
        for label in source.labels:
            x = model.labels.index(label)
            right, claimed = opened[1 + x, 1 + 2 * x], opened[1 + x].sum()
            yield Belief(
                source.name,
                label,
                float(right / claimed) if claimed > 0 else 0.0,
                float(right / began[1 + 2 * x]) if began[1 + 2 * x] > 0 else 0.0,
                identified=users[label] > 1,
            )


def _normalised(raised: Floats) -> Floats:
    result: Floats = raised / raised.sum(-1, keepdims=True)
    return result
