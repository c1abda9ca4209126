"""Finds term lists that were collected from the gold: they have nearly all its entities, and match more often in it."""

import math
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Dict, FrozenSet, NamedTuple, Sequence, Tuple

from spacy.vocab import Vocab

from ...corpus.docbin import read_docs
from ...corpus.gold import find_gold
from ...corpus.weak import group_entities, is_chosen, weak_group
from ...ty import Entity

# The ratio of match densities in gold and text was at most 1.12 for nine independent lists, and 2.3 for a list of the
# gold's own entities (best.md).
CLEARLY_ABOVE = 1.25
# Least share and number of a label's gold entities that a collected list finds. They are required since matches come in
# bursts, so that the density alone is unreliable for a single label.
KNOWN, MIN_RIGHT = 0.85, 10
_LOOKED_AT = 20_000  # maximum number of Docs
_WIDTH = 1.96  # standard errors; counts are assumed to be Poisson distributed
# A source and a label.
SourceLabel = Tuple[str, str]


class LeakedLabel(NamedTuple):
    """A label of a list that matches in the gold more often than in the text."""

    ratio: float  # of the frequency of matches in the gold to that in the text
    kept: float  # share of the right matches to keep so that the label matches as often in the gold as in the text


def find_collected(gold: Path, text: Path, sources: Sequence[str]) -> Dict[SourceLabel, LeakedLabel]:
    """Find lists and labels that fit the gold better than the text: the matches include nearly all gold entities of the
    label, and are far more frequent than in the text."""
    here, there = _count(gold, sources, is_gold=True), _count(text, sources, is_gold=False)
    found: Dict[SourceLabel, LeakedLabel] = {}
    for key, right in here.right.items():
        source, label = key
        if right < max(MIN_RIGHT, KNOWN * here.entities[source, label]) or not there.tokens[source]:
            continue
        matches, elsewhere = here.matches[key], there.matches[key] + 0.5
        expected = elsewhere * here.tokens[source] / there.tokens[source]
        error = math.sqrt(1 / matches + 1 / elsewhere)
        if matches / expected * math.exp(-_WIDTH * error) > CLEARLY_ABOVE:
            kept = (expected - (matches - right)) / right
            found[key] = LeakedLabel(matches / expected, min(1.0, max(0.0, kept)))
    return found


class _MatchCounts(NamedTuple):
    """Counts in the Docs that a source has labeled: matches, right matches and gold entities by label; tokens."""

    matches: "Counter[SourceLabel]"
    right: "Counter[SourceLabel]"
    entities: "Counter[SourceLabel]"
    tokens: "Counter[str]"


def _count(corpus: Path, sources: Sequence[str], is_gold: bool) -> _MatchCounts:
    counts = _MatchCounts(Counter(), Counter(), Counter(), Counter())
    for doc in islice(read_docs(corpus, Vocab()), _LOOKED_AT):
        gold = find_gold(doc)
        # Sentences that `suggest` chose are richer in entities than the text, whatever the list.
        if is_gold and (gold is None or is_chosen(doc)):
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
