"""A label model that combines sources without gold, based on their agreement.

A hidden Markov model (Rabiner 1989) over the sources, as in Lison et al. (2020) and skweak (2021), which extend Dawid
and Skene (1979) to sequences. The states are the true BIO tags and a distractor state, which is also "O"; given the
states, the sources are independent, each as in `source_model`:

    p(z, votes) = start(z_1) prod_t transition(z_t, z_t+1) prod_t prod_s p_s(votes_t,s | z_t)

A source that has not labeled a Doc contributes no factor. The parameters maximize the posterior density (EM, Baum et
al. 1970). Only the prior gives a state its meaning, so EM starts from the prior, in which every source is better than
chance, and the prior has the weight of `strength` observations of each parameter.

At least three sources with independent errors are needed to estimate accuracies (with fewer, agreement can be explained
in many ways). With one source, the result is nearly its labels. The same holds per label: the accuracy at a label that
only one source uses follows from the prior, and is marked as not identified (`SourceAccuracy.identified`). Sources that
make the same mistakes are assumed to be right together, which no method without gold can avoid.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple

import numpy

from ..batching import group_by_length
from ..corpus.tags import IntTags, make_scheme
from ..crf.kernel import CRFParameters, PaddedBatch, pad_emissions
from ..crf.scaled import partition
from ..ty import Floats
from .methods import SCHEME, Method
from .observations import ObservedSource, SourceAccuracy
from .source_model import DEFAULT_RELIABILITY, HIT, SourceParameters, events, log_prior, maximize, prior

# Weight of the prior of each parameter, in observations: small for any corpus that can teach the model something.
STRENGTH = 100.0
MAX_ITERATIONS = 100
# EM ends when an iteration gains less than this per token.
TOLERANCE = 1e-4
# Tokens of a batch, padding included.
BATCH_TOKENS = 20_000
# Prior probability that an entity, or a distractor, continues with the next token.
STAYS = 0.5


@dataclass(frozen=True)
class LabelModel:
    """The parameters of the model."""

    labels: Tuple[str, ...]
    start: Floats  # shape (n_states,): the tags of the BIO scheme, and the distractor
    transitions: Floats  # shape (n_states, n_states), from row to column; 0 where the scheme forbids it
    sources: Tuple[SourceParameters, ...]

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        """Return the probability of each tag at each token of each Doc, (n_tokens, n_tags), given the votes of all
        sources on the whole Doc, (n_tokens, n_sources)."""
        n_tags = 1 + 2 * len(self.labels)
        result = [numpy.zeros((len(votes), n_tags)) for votes in docs]
        log_events = [source.log_events() for source in self.sources]
        for members in group_by_length([len(votes) for votes in docs], BATCH_TOKENS):
            observed = [events(docs[i], len(self.labels)) for i in members]
            batch = pad_emissions([_emissions(log_events, what) for what in observed])
            _, marginals = partition(self._parameters(), batch)
            for i, states in zip(members, batch.unpad(marginals(None).tokens), strict=True):
                result[i] = states[:, :-1]
                result[i][:, 0] += states[:, -1]
        return result

    def _parameters(self) -> CRFParameters:
        with numpy.errstate(divide="ignore"):
            return CRFParameters(numpy.log(self.start), numpy.log(self.transitions), numpy.zeros(len(self.start)))


@dataclass(frozen=True, kw_only=True)
class FittedModel(Method):
    """A label model with its fit. It has converged if the last iteration gained almost nothing."""

    model: LabelModel
    objective: Tuple[float, ...]  # log-likelihood plus log-prior before every iteration, and at the end

    def distributions(self, docs: Sequence[IntTags]) -> List[Floats]:
        return self.model.distributions(docs)


def fit_label_model(
    docs: Sequence[IntTags],
    sources: Sequence[ObservedSource],
    labels: Sequence[str],
    *,
    strength: float = STRENGTH,
    max_iterations: int = MAX_ITERATIONS,
    tolerance: float = TOLERANCE,
) -> FittedModel:
    """Fit a label model by EM. The order of the Docs does not matter, up to rounding.

    The votes of a Doc have shape (n_tokens, n_sources), see `observations.observe`. The prior of each parameter has the
    weight of `strength` observations; EM ends when an iteration gains less than `tolerance` per token.
    """
    data = _Data([votes for votes in docs if len(votes)], len(labels), len(sources))
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
            _normalized(start + strength * means.start),
            _normalized(transitions + strength * means.transitions),
            tuple(maximize(c, m, strength) for c, m in zip(counts, means.sources, strict=True)),
        )
    accuracies = tuple(_accuracies(model, sources, counts))
    return FittedModel(
        scheme=make_scheme(SCHEME, tuple(labels)),
        sources=tuple(sources),
        docs=len(docs),
        iterations=len(objective) - 1,
        converged=converged,
        source_accuracies=accuracies,
        model=model,
        objective=tuple(objective),
    )


def prior_model(rates: Floats, sources: Sequence[ObservedSource], labels: Sequence[str]) -> LabelModel:
    """Return the model before EM: the means of the prior. The numbers of entities and distractors follow from the rates
    of the sources (entities per token, shape (n_sources, n_labels)). A source with rate R, reliability r and hit rate h
    implies R r / h entities per token, and R distractors, each of which it labels with probability 1 - r."""
    reliability = numpy.array([DEFAULT_RELIABILITY if s.reliability is None else s.reliability for s in sources])
    hit = numpy.array([HIT[s.complete] for s in sources])
    uses = rates > 0
    implied = rates * (reliability / hit)[:, None]
    # The frequency of a label is estimated only from sources that use it.
    entities = implied.sum(0) / numpy.maximum(uses.sum(0), 1)
    distractors = rates.sum() / max(1, uses.any(1).sum())
    # Estimates from dense, overlapping sources could leave no share for "O".
    share = min(1.0, 0.5 / max(entities.sum() + distractors, 1e-12))
    n_states = 2 * len(labels) + 2
    fresh = numpy.zeros(n_states)
    fresh[1:-1:2], fresh[-1] = entities * share, distractors * share
    fresh[0] = 1 - fresh.sum()
    transitions = numpy.tile(fresh, (n_states, 1))
    for state in range(1, n_states):
        # Any tag of an entity may be followed by the inside tag of its label.
        stays = state if state == n_states - 1 else state + state % 2
        transitions[state] *= 1 - STAYS
        transitions[state, stays] += STAYS
    given = [prior(row, r, s.complete) for row, r, s in zip(rates, reliability, sources, strict=True)]
    return LabelModel(tuple(labels), fresh, transitions, tuple(given))


class _Data:
    """The votes of Docs as patterns: most tokens have one of few combinations of the events of all sources."""

    def __init__(self, docs: List[IntTags], n_labels: int, n_sources: int) -> None:
        self.n_labels = n_labels
        observed = [events(votes, n_labels).astype("int32") for votes in docs]
        together = numpy.concatenate([numpy.zeros((0, n_sources), dtype="int32"), *observed])
        self.patterns, ids = numpy.unique(together, axis=0, return_inverse=True)
        self.tokens = len(together)
        ends = numpy.cumsum([len(votes) for votes in docs], dtype="int64")
        self.docs = numpy.split(ids.reshape(-1), ends[:-1]) if docs else []
        self.seen = numpy.array([(together[:, s] != n_labels + 1).sum() for s in range(n_sources)])
        self.repeats = numpy.bincount(ids.reshape(-1), minlength=len(self.patterns))

    def rates(self) -> Floats:
        """Return the entities per token that a source has labeled, shape (n_sources, n_labels)."""
        what = self.patterns % (self.n_labels + 2)
        opened = [(self.repeats[:, None] * (what == label)).sum(0) for label in range(1, self.n_labels + 1)]
        return numpy.array(opened).T.reshape(len(self.seen), -1) / numpy.maximum(self.seen, 1)[:, None]

    def expect(self, model: LabelModel) -> Tuple[float, Floats, Floats, List[Floats]]:
        """Compute the E-step: log-likelihood; expected numbers of starts, of transitions, and, per source, of each
        event in each state (n_events, n_states)."""
        n_states = len(model.start)
        log_events = [source.log_events() for source in model.sources]
        emissions = _emissions(log_events, self.patterns)
        parameters = model._parameters()
        log_likelihood, start = 0.0, numpy.zeros(n_states)
        transitions = numpy.zeros((n_states, n_states))
        met = numpy.zeros(len(self.patterns) * n_states)
        for members in group_by_length([len(ids) for ids in self.docs], BATCH_TOKENS):
            batch: PaddedBatch = pad_emissions([emissions[self.docs[i]] for i in members])
            log_z, marginals = partition(parameters, batch)
            tokens, used = marginals(None)
            log_likelihood += float(log_z.sum())
            start += used.start
            transitions += used.transitions
            ids = batch.pad_like([self.docs[i] for i in members], 0, "int64")
            # The probabilities of padding are 0.
            places = ids[:, :, None] * n_states + numpy.arange(n_states)
            met += numpy.bincount(places.ravel(), tokens.ravel(), minlength=len(met))
        counts = []
        for column, table in zip(self.patterns.T, log_events, strict=True):
            count = numpy.zeros_like(table)
            numpy.add.at(count, column, met.reshape(-1, n_states))
            # The event of sources that have not labeled the Doc.
            count[self.n_labels + 1] = 0.0
            counts.append(count)
        return log_likelihood, start, transitions, counts


def _emissions(log_events: Sequence[Floats], observed: IntTags) -> Floats:
    # (n_tokens, n_states): the sum over the sources.
    total: Floats = numpy.sum([table[observed[:, s]] for s, table in enumerate(log_events)], axis=0)
    return total


def _log_prior(model: LabelModel, means: LabelModel, strength: float) -> float:
    allowed = means.transitions > 0
    opens = means.start > 0
    total = (means.start[opens] * numpy.log(model.start[opens])).sum()
    total += (means.transitions[allowed] * numpy.log(model.transitions[allowed])).sum()
    given = sum(log_prior(s, m, strength) for s, m in zip(model.sources, means.sources, strict=True))
    return strength * float(total) + given


def _accuracies(
    model: LabelModel, sources: Sequence[ObservedSource], counts: Sequence[Floats]
) -> Iterator[SourceAccuracy]:
    n = len(model.labels)
    users = Counter(label for source in sources for label in source.labels)
    for source, count in zip(sources, counts, strict=True):
        opened = count.reshape(n + 1, n + 2, -1)[:, :-1].sum(0)  # (1 + n_labels, n_states)
        began = count.sum(0)  # (n_states,)
        for label in source.labels:
            x = model.labels.index(label)
            right, claimed = opened[1 + x, 1 + 2 * x], opened[1 + x].sum()
            yield SourceAccuracy(
                source.name,
                label,
                float(right / claimed) if claimed > 0 else 0.0,
                float(right / began[1 + 2 * x]) if began[1 + 2 * x] > 0 else 0.0,
                identified=users[label] > 1,
            )


def _normalized(raised: Floats) -> Floats:
    result: Floats = raised / raised.sum(-1, keepdims=True)
    return result
