"""Uncertain spans of a sentence, by the probabilities of a model or by the disagreement of voters."""

from collections import Counter
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..corpus.overlaps import overlapping
from ..ty import Entity

# Minimum probability of a possible entity.
LEAST = 0.1
# Weight of a voter without entities in a span if it does not find all entities, such as a term list.
SILENCE = 0.25


class UncertainSpan(NamedTuple):
    """Some tokens, and the probability that the best decision on them is wrong, in [0, 1)."""

    start: int
    end: int
    label: str  # the most probable label, even if the tokens are no entity
    uncertainty: float
    why: str  # the reason of the uncertainty, without the tokens


class Vote(NamedTuple):
    """The entities of a source or pipeline. `complete` is True if it finds all entities."""

    entities: List[Entity]
    complete: bool


def spans_of_tokens(rows: NDArray[numpy.floating], tags: Sequence[str]) -> List[UncertainSpan]:
    """Return uncertain spans from distributions over tags (the columns; rows sum to 1), from left to right: runs of
    tokens that may belong to entities. The least certain token of a run determines its uncertainty."""
    outside = tags.index("O")
    labels = sorted({tag[2:] for tag in tags if tag != "O"})
    if not len(rows) or not labels:
        return []
    by_label = numpy.stack([rows[:, [tag[2:] == label for tag in tags]].sum(axis=1) for label in labels], axis=1)
    probable = rows[:, outside] <= 1.0 - LEAST
    uncertainties = 1.0 - rows.max(axis=1)
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], probable, [False]]).astype("int8")))
    spans = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        token = start + int(uncertainties[start:end].argmax())
        best = int(by_label[token].argmax())
        is_predicted = int(rows[token].argmax()) != outside
        why = _in_words(labels[best], float(by_label[token, best]), is_predicted)
        spans.append(UncertainSpan(start, end, labels[best], float(uncertainties[token]), why))
    return spans


def spans_of_candidates(candidates: Iterable[Tuple[Entity, Optional[float]]]) -> List[UncertainSpan]:
    """Return uncertain spans from candidates with probabilities, from left to right; overlapping candidates form one
    span. The remaining probability is that of no entity. Candidates without a probability are skipped."""
    scores: Dict[Entity, float] = {}
    for entity, score in candidates:
        if score is not None and score >= LEAST:
            scores[entity] = max(float(score), scores.get(entity, 0.0))
    spans = []
    for group in overlapping(scores):
        best = max(group, key=lambda entity: (scores[entity], entity))
        nothing = max(0.0, 1.0 - sum(scores[entity] for entity in group))
        uncertainty = min(1.0, max(0.0, 1.0 - max(scores[best], nothing)))
        spans.append(UncertainSpan(*best, uncertainty, _in_words(best[2], scores[best], scores[best] >= nothing)))
    return spans


def spans_of_votes(votes: Mapping[str, Vote]) -> List[UncertainSpan]:
    """Return spans on which voters disagree, from left to right, with the share of votes against the majority."""
    if len(votes) < 2:
        return []
    spans = []
    for group in overlapping(entity for vote in votes.values() for entity in vote.entities):
        answers = {name: tuple(sorted({*group} & {*vote.entities})) for name, vote in votes.items()}
        weights: Dict[Tuple[Entity, ...], float] = {}
        for name, answer in answers.items():
            weight = 1.0 if answer or votes[name].complete else SILENCE
            weights[answer] = weights.get(answer, 0.0) + weight
        uncertainty = 1.0 - max(weights.values()) / sum(weights.values())
        if uncertainty > 0.0:
            counts = Counter(entity for answer in answers.values() for entity in answer)
            start, end, label = max(counts, key=lambda entity: (counts[entity], entity))
            start, end = min(start, group[0][0]), max(end, *(other for _, other, _ in group))
            listed = (
                f"{name} {'+'.join(name_ for *_, name_ in found) or 'nothing'}" for name, found in answers.items()
            )
            spans.append(UncertainSpan(start, end, label, uncertainty, f"disagreement: {', '.join(listed)}"))
    return spans


def sum_by_label(spans: Iterable[UncertainSpan]) -> Dict[str, float]:
    """Return the sum of the uncertainties of the spans of each label."""
    result: Dict[str, float] = {}
    for span in spans:
        result[span.label] = result.get(span.label, 0.0) + span.uncertainty
    return result


def _in_words(label: str, probability: float, is_predicted: bool) -> str:
    return f"{label} {100 * probability:.0f} %" + ("" if is_predicted else ", not predicted")
