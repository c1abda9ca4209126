"""Term lists that were collected from the gold: they match there more often than anywhere else."""

import math
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Dict, NamedTuple, Sequence, Tuple

from spacy.vocab import Vocab

from ...annotations.corpus import read_docs
from ...annotations.weak import doc_entities, group_entities, weak_group

# The ratio of densities was at most 1.12 for nine lists that were made elsewhere, and 2.3 for one of the gold's own
# entities (best.md).
CLEARLY_ABOVE = 1.25
_LOOKED_AT = 20_000  # Docs
_WIDTH = 1.96  # standard errors; counts are taken as Poisson's
# A source and a label.
Key = Tuple[str, str]


class Collected(NamedTuple):
    """A label of a list that matches in the gold more often than in the text.

    ratio (float): How many times as often.
    kept (float): Share of its right matches under which it is as often as there.
    """

    ratio: float
    kept: float


def find_collected(gold: Path, text: Path, sources: Sequence[str]) -> Dict[Key, Collected]:
    """Find lists that know the gold better than the text.

    gold (Path): The gold, with what the sources say of it.
    text (Path): The text, with the same.
    sources (Sequence[str]): Sources that are term lists.
    RETURNS (Dict[Key, Collected]): By source and label; none where the ratio may be that of an independent list.
    """
    here, there = _count(gold, sources), _count(text, sources)
    found: Dict[Key, Collected] = {}
    for key, matches in here.matches.items():
        elsewhere = there.matches[key] + 0.5
        expected = elsewhere * here.tokens / max(1, there.tokens)
        error = math.sqrt(1 / matches + 1 / elsewhere)
        if matches / expected * math.exp(-_WIDTH * error) > CLEARLY_ABOVE:
            right = here.right[key]
            kept = (expected - (matches - right)) / right if right else 1.0
            found[key] = Collected(matches / expected, min(1.0, max(0.0, kept)))
    return found


class _Counts(NamedTuple):
    matches: "Counter[Key]"
    right: "Counter[Key]"
    tokens: int


def _count(corpus: Path, sources: Sequence[str]) -> _Counts:
    matches: Counter[Key] = Counter()
    right: Counter[Key] = Counter()
    tokens = 0
    for doc in islice(read_docs(corpus, Vocab()), _LOOKED_AT):
        tokens += len(doc)
        entities = {*doc_entities(doc)}
        for source in sources:
            if weak_group(source) in doc.spans:
                for entity in group_entities(doc, weak_group(source)):
                    matches[source, entity[2]] += 1
                    right[source, entity[2]] += entity in entities
    return _Counts(matches, right, tokens)
