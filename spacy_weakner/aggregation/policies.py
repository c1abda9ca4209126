"""Selection among overlapping candidates of all sources."""

from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

from spacy.tokens import Doc, Span

from ..corpus import weak
from ..errors import check_choice
from ..ty import Entity

POLICIES = ("longest", "priority", "agreement", "drop")


class ProposedSpan(NamedTuple):
    """A span that a weak source proposes; `characters` is the length of its text."""

    start: int
    end: int
    label: str
    source: str
    characters: int = 0

    @classmethod
    def of(cls, span: Span, source: str) -> "ProposedSpan":
        return cls(span.start, span.end, span.label_, source, span.end_char - span.start_char)

    @property
    def entity(self) -> Entity:
        return (self.start, self.end, self.label)


def select_spans(candidates: Sequence[ProposedSpan], policy: str, priority: Sequence[str]) -> List[Entity]:
    """Select entities without overlaps.

    Longer means: more characters, then more tokens, then further left, then a source earlier in `priority`, then the
    alphabetically first label. Policies:

    - longest: the longest candidate first, then the longest that does not overlap it, and so on;
    - priority: the same, but candidates of earlier sources come before all others;
    - agreement: the same, but candidates that more sources agree on come first;
    - drop: all candidates that overlap another span or label are dropped.

    `priority` lists all sources, the most trusted first.
    """
    check_choice("policy", policy, POLICIES)
    if policy == "drop":
        lost = {candidate.entity for candidate in contested(candidates)}
        return sorted({candidate.entity for candidate in candidates} - lost)
    rank = {source: i for i, source in enumerate(priority)}
    votes: Dict[Entity, Set[str]] = {}
    for c in candidates:
        votes.setdefault(c.entity, set()).add(c.source)

    def key(c: ProposedSpan) -> Tuple[int, int, int, int, int, str]:
        first = {"longest": 0, "priority": rank[c.source], "agreement": -len(votes[c.entity])}[policy]
        return (first, -c.characters, c.start - c.end, c.start, rank[c.source], c.label)

    chosen: List[Entity] = []
    taken: Set[int] = set()
    for c in sorted(candidates, key=key):
        tokens = range(c.start, c.end)
        if taken.isdisjoint(tokens):
            chosen.append(c.entity)
            taken.update(tokens)
    return sorted(chosen)


def all_spans(candidates: Iterable[ProposedSpan]) -> List[Entity]:
    """Select all spans, including overlapping ones, each with the label of its first candidate."""
    labels: Dict[Tuple[int, int], str] = {}
    for c in candidates:
        labels.setdefault((c.start, c.end), c.label)
    return sorted((*bounds, label) for bounds, label in labels.items())


def contested(candidates: Sequence[ProposedSpan]) -> List[ProposedSpan]:
    """Return the candidates that overlap a candidate with another span or another label."""
    entities = {c.entity for c in candidates}
    users: Counter[int] = Counter(i for start, end, _ in entities for i in range(start, end))
    return [c for c in candidates if any(users[i] > 1 for i in range(c.start, c.end))]


def candidates_of(doc: Doc, source: str) -> List[ProposedSpan]:
    """Return the candidates of a source that has labeled a Doc, in the order of the span group."""
    return [ProposedSpan.of(span, source) for span in doc.spans[weak.weak_group(source)]]
