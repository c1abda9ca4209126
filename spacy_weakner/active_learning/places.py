"""Places of a sentence where it is not certain what stands there: by what a model gives for probable."""

from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray

from ..ty import Entity

# From which probability on something may be an entity.
LEAST = 0.1


class Place(NamedTuple):
    """Some tokens, and how likely a decision on them is wrong.

    start (int): The first token.
    end (int): The token after the last one.
    label (str): Their most probable label, whether or not they are an entity.
    doubt (float): Probability that the best decision is wrong, in [0, 1).
    why (str): What is uncertain, in words, without the tokens themselves.
    """

    start: int
    end: int
    label: str
    doubt: float
    why: str


def places_of_tokens(rows: NDArray[numpy.floating], tags: Sequence[str]) -> List[Place]:
    """Places by distributions over tags: runs of tokens that may belong to entities. The least sure token of a run
    says how sure all of it is.

    rows (NDArray[numpy.floating]): Shape (n_tokens, n_tags); rows sum to 1.
    tags (Sequence[str]): The columns: "O", and a prefix with a label, like "B-PER".
    RETURNS (List[Place]): From left to right.
    """
    outside = tags.index("O")
    labels = sorted({tag[2:] for tag in tags if tag != "O"})
    if not len(rows) or not labels:
        return []
    by_label = numpy.stack([rows[:, [tag[2:] == label for tag in tags]].sum(axis=1) for label in labels], axis=1)
    probable = rows[:, outside] <= 1.0 - LEAST
    doubts = 1.0 - rows.max(axis=1)
    edges = numpy.flatnonzero(numpy.diff(numpy.concatenate([[False], probable, [False]]).astype("int8")))
    places = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        token = start + int(doubts[start:end].argmax())
        best = int(by_label[token].argmax())
        taken = int(rows[token].argmax()) != outside
        why = _in_words(labels[best], float(by_label[token, best]), taken)
        places.append(Place(start, end, labels[best], float(doubts[token]), why))
    return places


def places_of_candidates(candidates: Iterable[Tuple[Entity, Optional[float]]]) -> List[Place]:
    """Places by candidates for entities: those that overlap are one place. What they leave of the probability is that
    nothing stands there.

    candidates (Iterable[Tuple[Entity, Optional[float]]]): With their probabilities; those without one are passed over.
    RETURNS (List[Place]): From left to right.
    """
    scores: Dict[Entity, float] = {}
    for entity, score in candidates:
        if score is not None and score >= LEAST:
            scores[entity] = max(float(score), scores.get(entity, 0.0))
    places = []
    for group in overlapping(scores):
        members = {entity: scores[entity] for entity in group}
        best = max(members, key=lambda entity: (members[entity], entity))
        nothing = max(0.0, 1.0 - sum(members.values()))
        taken = members[best] >= nothing
        doubt = min(1.0 - max(members[best], nothing), 1.0)
        why = _in_words(best[2], members[best], taken)
        places.append(Place(best[0], best[1], best[2], max(0.0, doubt), why))
    return places


def overlapping(entities: Iterable[Entity]) -> List[List[Entity]]:
    """Group entities so that those of two groups do not overlap.

    entities (Iterable[Entity]): The entities; repeated ones count once.
    RETURNS (List[List[Entity]]): The groups, from left to right.
    """
    groups: List[List[Entity]] = []
    reach = -1
    for entity in sorted(set(entities)):
        if entity[0] >= reach:
            groups.append([])
        groups[-1].append(entity)
        reach = max(reach, entity[1])
    return groups


def doubt_by_label(places: Iterable[Place]) -> Dict[str, float]:
    """RETURNS (Dict[str, float]): The doubts about places of each label, summed up."""
    result: Dict[str, float] = {}
    for place in places:
        result[place.label] = result.get(place.label, 0.0) + place.doubt
    return result


def _in_words(label: str, probability: float, taken: bool) -> str:
    return f"{label} {100 * probability:.0f} %" if taken else f"{label} {100 * probability:.0f} %, not predicted"
