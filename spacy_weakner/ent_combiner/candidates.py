"""What is decided about: the entities that somebody names, and their neighbours."""

from typing import Collection, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set

from spacy.tokens import Doc

from ..annotations.weak import PREDICTED_PREFIX, group_entities, group_scores
from ..ty import Entity

# What a group says: its entities, and their probabilities where it gives any.
Votes = Dict[Entity, Optional[float]]


class Candidates(NamedTuple):
    """The candidates of one Doc.

    entities (List[Entity]): Without duplicates, sorted by end, start and label. They may overlap.
    votes (List[Optional[Votes]]): What each group says; None if it has not looked.
    """

    entities: List[Entity]
    votes: List[Optional[Votes]]


def read_candidates(doc: Doc, groups: Sequence[str], labels: FrozenSet[str], border: int) -> Candidates:
    """Collect the entities of some span groups, and variants of them. What other components predict has been thought
    over; a match of a list or a rule has not, so that of matches there are variants.

    doc (Doc): The Doc.
    groups (Sequence[str]): Names of the groups, such as "weak:terms" and "pred:crf_ner".
    labels (FrozenSet[str]): Entities with other labels are left out.
    border (int): By how many tokens, at most, one end of a variant differs from a match.
    RETURNS (Candidates): The candidates.
    """
    votes = [read_votes(doc, group, labels) for group in groups]
    found: Set[Entity] = set()
    for group, said in zip(groups, votes, strict=True):
        found.update(said or ())
        if border and said and not group.startswith(PREDICTED_PREFIX):
            found.update(border_variants(said, border, len(doc)))
    return Candidates(sorted(found, key=lambda entity: (entity[1], entity[0], entity[2])), votes)


def read_votes(doc: Doc, group: str, labels: Collection[str]) -> Optional[Votes]:
    """Read what a group says.

    doc (Doc): The Doc.
    group (str): Name of the group.
    labels (Collection[str]): Labels that count.
    RETURNS (Optional[Votes]): Its entities; of those that are named twice the larger score. None if the Doc does not
        have the group.
    """
    if group not in doc.spans:
        return None
    votes: Votes = {}
    for entity, score in zip(group_entities(doc, group), group_scores(doc, group), strict=True):
        if entity[2] in labels:
            earlier = votes.get(entity)
            votes[entity] = score if earlier is None else max(earlier, score or 0.0)
    return votes


def border_variants(entities: Iterable[Entity], border: int, n_tokens: int) -> List[Entity]:
    """Spans with one end elsewhere.

    entities (Iterable[Entity]): The entities.
    border (int): By how many tokens, at most.
    n_tokens (int): Length of the Doc.
    RETURNS (List[Entity]): The variants that are inside the Doc and not empty; without the entities themselves.
    """
    result = []
    for start, end, label in entities:
        for by in [*range(-border, 0), *range(1, border + 1)]:
            for low, high in ((start + by, end), (start, end + by)):
                if 0 <= low < high <= n_tokens:
                    result.append((low, high, label))
    return result
