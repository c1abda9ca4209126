"""Precision, recall and F1 of entities."""

from collections import Counter
from dataclasses import fields, is_dataclass
from typing import Any, Collection, Dict, Iterable, NamedTuple, Tuple

from pydantic import BaseModel, ConfigDict

from .ty import Entities, Entity


class Strict(BaseModel):
    """Base of data stored as JSON: no other keys or types, finite numbers, immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Counts(NamedTuple):
    """Counts of exact matches (same bounds, same label): entities in both, only predicted, only gold."""

    tp: int = 0
    fp: int = 0
    fn: int = 0

    @property
    def precision(self) -> float:
        """RETURNS (float): Precision in [0, 100]; 0 if nothing was predicted."""
        return 100.0 * self.tp / max(1, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """RETURNS (float): Recall in [0, 100]; 0 if there is no gold."""
        return 100.0 * self.tp / max(1, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """RETURNS (float): F1 in [0, 100]."""
        return 100.0 * 2 * self.tp / max(1, 2 * self.tp + self.fp + self.fn)


class Accuracy(NamedTuple):
    """Numbers of right tokens and sentences, as defined for query understanding (Jiang et al. 2021, Table 7; its share
    of gold spans found is the recall)."""

    tokens: int = 0
    right_tokens: int = 0  # with the right label and the right position (at the start of an entity, or not)
    sentences: int = 0
    right_sentences: int = 0  # with all gold entities, and no others

    @property
    def of_tokens(self) -> float:
        """RETURNS (float): Token accuracy in [0, 100]."""
        return 100.0 * self.right_tokens / max(1, self.tokens)

    @property
    def of_sentences(self) -> float:
        """RETURNS (float): Sentence accuracy in [0, 100]."""
        return 100.0 * self.right_sentences / max(1, self.sentences)

    def with_sentence(self, gold: Entities, predicted: Entities, length: int) -> "Accuracy":
        """Return the accuracy with one more sentence, of `length` tokens."""
        wanted, found = _tags(gold), _tags(predicted)
        wrong = sum(wanted.get(i) != found.get(i) for i in wanted.keys() | found.keys())
        right = set(gold) == set(predicted)
        return Accuracy(
            self.tokens + length, self.right_tokens + length - wrong, self.sentences + 1, self.right_sentences + right
        )


def _tags(entities: Entities) -> Dict[int, Tuple[str, bool]]:
    return {i: (label, i == start) for start, end, label in entities for i in range(start, end)}


def count_matches(pairs: Iterable[Tuple[Collection[Entity], Collection[Entity]]]) -> Tuple[Counts, Dict[str, Counts]]:
    """Count matching entities over a corpus (micro average).

    pairs (Iterable[Tuple[Collection[Entity], Collection[Entity]]]): (gold, predicted) entities of each sentence.
    RETURNS (Tuple[Counts, Dict[str, Counts]]): Over all labels, and per label (sorted).
    """
    kinds: Tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    for gold, predicted in pairs:
        right = set(gold) & set(predicted)
        for kind, entities in zip(kinds, (right, set(predicted) - right, set(gold) - right), strict=True):
            kind.update(label for _, _, label in entities)
    labels = sorted({label for kind in kinds for label in kind})
    per_label = {label: Counts(*(kind[label] for kind in kinds)) for label in labels}
    return Counts(*(kind.total() for kind in kinds)), per_label


def as_json(value: Any) -> Any:
    """Convert results to JSON-compatible values: a NamedTuple or dataclass becomes a dict of its fields and properties,
    and `Counts` also get the keys "p", "r" and "f1".

    value (Any): NamedTuples, dataclasses, dicts, lists, tuples and plain values, arbitrarily nested.
    RETURNS (Any): The same as dicts, lists and plain values.
    """
    if isinstance(value, Counts):
        scores = {"p": value.precision, "r": value.recall, "f1": value.f1}
        return {**{key: round(score, 2) for key, score in scores.items()}, **value._asdict()}
    if isinstance(value, BaseModel):
        return as_json(value.model_dump())
    names = [field_.name for field_ in fields(value)] if is_dataclass(value) else getattr(value, "_fields", None)
    if names is not None:
        properties = [name for name, member in vars(type(value)).items() if isinstance(member, property)]
        return {name: as_json(getattr(value, name)) for name in (*names, *properties)}
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value
