"""Evaluation of labels on gold: scores of exact spans, kinds of errors, recall by length, frequent errors."""

from collections import Counter
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from spacy.tokens import Doc

from ..corpus.gold import Gold
from ..scores import Counts
from ..ty import Entities, Entity

# Relations of a span to other spans: kinds of errors against gold, and kinds of disagreement between sources.
SAME, TYPE, BOUNDARY, BOTH, NONE = "same", "type", "boundary", "both", "none"
# Classes of span lengths: first and last number of tokens.
LENGTHS: Tuple[Tuple[int, Optional[int]], ...] = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 8), (9, None))


class ErrorCounts(NamedTuple):
    """Counts of errors by kind. The first four are predicted spans, and sum to the false positives."""

    boundary: int = 0  # overlaps a gold entity with the same label, but has other bounds
    type: int = 0  # has the bounds of a gold entity, but another label
    both: int = 0  # overlaps only gold entities of other labels, and has other bounds
    spurious: int = 0  # overlaps no gold entity
    missed: int = 0  # gold entities that no predicted span overlaps; the others have a boundary or type error


class LengthRecall(NamedTuple):
    """The number of gold entities in one class of lengths, and how many of them were found exactly."""

    length: str  # number of tokens: "1", or "6-8", or "9+"
    gold: int
    found: int
    cumulative: float  # percentage of all gold entities that are at most this long

    @property
    def recall(self) -> float:
        """RETURNS (float): Recall in [0, 100]."""
        return 100.0 * self.found / max(1, self.gold)


class PhraseCount(NamedTuple):
    """A phrase that is wrong (or missed) in `n` of the `of` cases in which it has this label (in gold)."""

    text: str
    label: str
    n: int
    of: int


class LabelScores(NamedTuple):
    """Scores of one label, or of all labels, on exact spans. A false span counts for its predicted label."""

    exact: Counts
    errors: ErrorCounts


class GoldScores(NamedTuple):
    """Scores of a source's labels or a pipeline's entities on gold; the most frequent errors first."""

    docs: int
    total: LabelScores
    per_label: Dict[str, LabelScores]
    unscored: int  # predicted spans that touch tokens without gold
    lengths: List[LengthRecall]
    false: List[PhraseCount]
    missed: List[PhraseCount]


class SpanIndex:
    """An index of the spans of one Doc, which may overlap, to compare other spans with."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.entities: Set[Entity] = set(entities)
        self.bounds: Dict[Tuple[int, int], Set[str]] = {}
        self.tokens: Dict[int, Set[Entity]] = {}  # the spans over each token
        for entity in self.entities:
            start, end, label = entity
            self.bounds.setdefault((start, end), set()).add(label)
            for token in range(start, end):
                self.tokens.setdefault(token, set()).add(entity)

    def relation(self, entity: Entity) -> str:
        """Return the relation of a span to the indexed spans; of several, the first in the order of the constants."""
        start, end, label = entity
        if entity in self.entities:
            return SAME
        if (start, end) in self.bounds:
            return TYPE
        touched = {other[2] for token in range(start, end) for other in self.tokens.get(token, ())}
        if label in touched:
            return BOUNDARY
        return BOTH if touched else NONE

    def overlapping(self) -> Set[Entity]:
        """Return the indexed spans that overlap another one with different bounds."""
        several = [i for i, entities in self.tokens.items() if len({entity[:2] for entity in entities}) > 1]
        return {entity for i in several for entity in self.tokens[i]}


class Evaluation:
    """Counts of matches and errors, added Doc by Doc; no Doc is kept."""

    def __init__(self) -> None:
        self.docs = 0
        self.unscored = 0
        self._errors: Dict[str, Counter[str]] = {kind: Counter() for kind in (BOUNDARY, TYPE, BOTH, NONE, "missed")}
        self._gold_lengths: Counter[int] = Counter()
        self._found_lengths: Counter[int] = Counter()
        self._phrases: Dict[str, Counter[Tuple[str, str]]] = {kind: Counter() for kind in Counts._fields}

    def add(self, doc: Doc, entities: Entities, gold: Gold) -> None:
        """Add the counts of one Doc."""
        self.docs += 1
        unique = set(entities)
        predicted, actual = SpanIndex(gold.scorable(list(unique))), SpanIndex(gold.entities)
        self.unscored += len(unique) - len(predicted.entities)
        for entity in predicted.entities:
            relation = actual.relation(entity)
            self._phrases["tp" if relation == SAME else "fp"][_text(doc, entity), entity[2]] += 1
            if relation != SAME:
                self._errors[relation][entity[2]] += 1
        for entity in actual.entities:
            relation = predicted.relation(entity)
            self._gold_lengths[entity[1] - entity[0]] += 1
            if relation == SAME:
                self._found_lengths[entity[1] - entity[0]] += 1
            else:
                self._phrases["fn"][_text(doc, entity), entity[2]] += 1
            if relation == NONE:
                self._errors["missed"][entity[2]] += 1

    def result(self, top: int = 10) -> GoldScores:
        """Return the scores."""
        exact: Dict[str, List[int]] = {}
        for kind, phrases in enumerate(self._phrases.values()):
            for (_, label), n in phrases.items():
                exact.setdefault(label, [0, 0, 0])[kind] += n
        per_label = {
            label: LabelScores(Counts(*exact[label]), ErrorCounts(*(errors[label] for errors in self._errors.values())))
            for label in sorted(exact)
        }
        everything = LabelScores(
            Counts(*(phrases.total() for phrases in self._phrases.values())),
            ErrorCounts(*(errors.total() for errors in self._errors.values())),
        )
        right, wrong, missed = self._phrases.values()
        return GoldScores(
            docs=self.docs,
            total=everything,
            per_label=per_label,
            unscored=self.unscored,
            lengths=recall_by_length(self._gold_lengths, self._found_lengths),
            false=_frequent(wrong, right, top),
            missed=_frequent(missed, right, top),
        )


def recall_by_length(gold: "Counter[int]", found: "Counter[int]") -> List[LengthRecall]:
    """Compute recall by length from the numbers of gold and found entities by their number of tokens."""
    n_gold, seen, rows = sum(gold.values()), 0, []
    for first, last in LENGTHS:
        widths = [width for width in gold if first <= width and (last is None or width <= last)]
        n = sum(gold[width] for width in widths)
        seen += n
        name = f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"
        rows.append(LengthRecall(name, n, sum(found[width] for width in widths), 100.0 * seen / max(1, n_gold)))
    return rows


def _text(doc: Doc, entity: Entity) -> str:
    return doc[entity[0] : entity[1]].text


def _frequent(counts: "Counter[Tuple[str, str]]", right: "Counter[Tuple[str, str]]", top: int) -> List[PhraseCount]:
    """Return the most frequent phrases; ties are sorted, so that results do not depend on the order of Docs."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    return [PhraseCount(text, label, n, n + right[text, label]) for (text, label), n in ranked]
