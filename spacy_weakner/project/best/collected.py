"""Term lists that were collected from the gold: they match there more often than anywhere else.

What is learned beside such a list, trusts it far too much. So in the gold as many of its right matches are hidden at
random as make it match as often as in the text.
"""

import math
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from ...annotations.corpus import read_docs, write_docs
from ...annotations.weak import doc_entities, group_entities, set_spans, weak_group

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


def hide(gold: Path, output: Path, collected: Dict[Key, Collected], seed: int = 0) -> Path:
    """Write the gold without some of the right matches.

    gold (Path): The gold, with what the sources say of it.
    output (Path): Another file.
    collected (Dict[Key, Collected]): Which sources and labels, and what is kept of them.
    seed (int): Chooses the matches.
    RETURNS (Path): The output.
    """
    rng = random.Random(seed)
    docs: List[Doc] = []
    for doc in read_docs(gold, Vocab()):
        entities = {*doc_entities(doc)}
        for source in sorted({source for source, _ in collected}):
            if weak_group(source) in doc.spans:
                left = [
                    entity
                    for entity in group_entities(doc, weak_group(source))
                    if entity not in entities
                    or (source, entity[2]) not in collected
                    or rng.random() < collected[source, entity[2]].kept
                ]
                spans = [Span(doc, start, end, label=label) for start, end, label in left]
                set_spans(doc, weak_group(source), spans, dict(doc.spans[weak_group(source)].attrs))
        docs.append(doc)
    write_docs(output, docs)
    return output


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


def collected_note(key: Key, found: Collected) -> str:
    """RETURNS (str): What was found and done, in words."""
    source, label = key
    return (
        f"'{source}' matches {found.ratio:.1f} times as often in the gold as in the text, with the label {label}, as a "
        f"list that was collected from the gold does: {1 - found.kept:.0%} of its right matches were hidden where "
        "heads learn and candidates are compared"
    )
