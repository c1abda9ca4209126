"""Places of a sentence where several voters, weak sources or pipelines, do not say the same."""

from collections import Counter
from typing import Iterable, List, Mapping, NamedTuple, Tuple

from ..ty import Entity
from .places import Place, overlapping

# What the silence of a voter counts that does not know all entities, such as a term list.
SILENCE = 0.25


class Vote(NamedTuple):
    """What a voter says of a sentence that it has looked at.

    entities (List[Entity]): Its entities.
    complete (bool): Whether its silence means that there is nothing.
    """

    entities: List[Entity]
    complete: bool


def places_of_votes(votes: Mapping[str, Vote]) -> List[Place]:
    """Find the places on which voters disagree.

    votes (Mapping[str, Vote]): By name of the voter.
    RETURNS (List[Place]): From left to right. The doubt is the share of the voters against what most of them say.
    """
    if len(votes) < 2:
        return []
    places = []
    for group in overlapping(entity for vote in votes.values() for entity in vote.entities):
        members = set(group)
        readings = {name: tuple(sorted(members & set(vote.entities))) for name, vote in votes.items()}
        weights: Counter[Tuple[Entity, ...]] = Counter()
        for name, reading in readings.items():
            weights[reading] += 1.0 if reading or votes[name].complete else SILENCE  # type: ignore[assignment]
        doubt = 1.0 - max(weights.values()) / sum(weights.values())
        if doubt > 0.0:
            spoken = Counter(entity for reading in readings.values() for entity in reading)
            start, end, label = max(spoken, key=lambda entity: (spoken[entity], entity))
            start, end = min(start, group[0][0]), max(end, *(other for _, other, _ in group))
            places.append(Place(start, end, label, doubt, _in_words(readings.items())))
    return places


def _in_words(readings: Iterable[Tuple[str, Tuple[Entity, ...]]]) -> str:
    said = (f"{name} {'+'.join(label for _, _, label in own) or 'nothing'}" for name, own in readings)
    return f"not agreed: {', '.join(said)}"
