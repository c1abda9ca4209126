"""Term lists that were collected from the gold: they know nearly all of it, and match more often than anywhere else."""

import math
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Dict, FrozenSet, NamedTuple, Sequence, Tuple

from spacy.vocab import Vocab

from ...corpus.docbin import read_docs
from ...corpus.gold import find_gold
from ...corpus.weak import group_entities, weak_group
from ...ty import Entity

# The ratio of densities was at most 1.12 for nine lists that were made elsewhere, and 2.3 for one of the gold's own
# entities (best.md).
CLEARLY_ABOVE = 1.25
# Share of the gold entities of a label that such a list finds, and how many at least: matches come in bursts, so that
# the density alone tells little of a label.
KNOWN, MIN_RIGHT = 0.85, 10
_LOOKED_AT = 20_000  # Docs
_WIDTH = 1.96  # standard errors; counts are taken as Poisson's
# A source and a label.
Key = Tuple[str, str]


class Collected(NamedTuple):
    """A label of a list that matches in the gold more often than in the text."""

    ratio: float  # how many times as often
    kept: float  # share of its right matches with which it matches as often as there


def find_collected(gold: Path, text: Path, sources: Sequence[str]) -> Dict[Key, Collected]:
    """Find lists that know the gold better than the text: of a label nearly all gold entities are among their terms,
    and they match far more often than in the text."""
    here, there = _count(gold, sources, is_gold=True), _count(text, sources, is_gold=False)
    found: Dict[Key, Collected] = {}
    for key, right in here.right.items():
        source, label = key
        if right < max(MIN_RIGHT, KNOWN * here.entities[source, label]) or not there.tokens[source]:
            continue
        matches, elsewhere = here.matches[key], there.matches[key] + 0.5
        expected = elsewhere * here.tokens[source] / there.tokens[source]
        error = math.sqrt(1 / matches + 1 / elsewhere)
        if matches / expected * math.exp(-_WIDTH * error) > CLEARLY_ABOVE:
            kept = (expected - (matches - right)) / right
            found[key] = Collected(matches / expected, min(1.0, max(0.0, kept)))
    return found


class _Counts(NamedTuple):
    """Of the Docs that a source has labeled: matches, those that are entities, all entities; tokens by source."""

    matches: "Counter[Key]"
    right: "Counter[Key]"
    entities: "Counter[Key]"
    tokens: "Counter[str]"


def _count(corpus: Path, sources: Sequence[str], is_gold: bool) -> _Counts:
    counts = _Counts(Counter(), Counter(), Counter(), Counter())
    for doc in islice(read_docs(corpus, Vocab()), _LOOKED_AT):
        gold = find_gold(doc)
        if is_gold and gold is None:
            continue
        entities: FrozenSet[Entity] = frozenset() if gold is None else gold.entities
        for source in sources:
            if weak_group(source) in doc.spans:
                counts.tokens[source] += len(doc)
                counts.entities.update((source, label) for _, _, label in entities)
                for entity in {*group_entities(doc, weak_group(source))}:
                    counts.matches[source, entity[2]] += 1
                    counts.right[source, entity[2]] += entity in entities
    return counts
