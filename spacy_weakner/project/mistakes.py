"""Probable mistakes in the gold: entities on which the candidates that have not seen a sentence contradict it.

An entity that is missing in the gold is the more probable, the higher its probability p. If it contradicts a gold
entity g, with another border or label, the log-odds of a mistake are

    log p / (1 - p) - 1/2 log q(g)

where q(g) is the share of gold entities whose own probability is at most that of g: a model that often fails to find
right entities proves little by failing to find this one. (It has half the weight, since it depends on p.) For a gold
entity that is none, p / (1 - p) is replaced by the probability that there is no entity. People forget entities, and
mark wrong borders, more often than they choose a wrong label, or mark what is none: such mistakes need more evidence.
"""

import math
from bisect import bisect_right
from itertools import count
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ..corpus.docbin import bare_copy
from ..corpus.formats.writing import write_corpus
from ..corpus.gold import Gold, find_gold
from ..corpus.weak import (
    SUGGESTED_GROUP,
    doc_entities,
    get_id,
    group_entities,
    group_scores,
    set_group,
    set_id,
    set_meta,
)
from ..evaluation.tables import Table, shorten_line
from ..files import atomic_path
from ..scores import Strict
from ..ty import Entity

MISTAKES = "gold-mistakes.jsonl"
MOST, SHOWN = 50, 5
# Log-odds by which a wrong label or a spurious entity is less probable than a forgotten one. Chosen on samples of the
# training sets of CoNLL-2003 and BC5CDR.
_RARE = 2.0
_LEAST = 1e-3  # probability
# A sentence with gold, and a copy with all candidates for its entities and their probabilities in a span group.
Judged = Tuple[Doc, Doc]


class Mistake(Strict):
    """A probable mistake: what the gold has, and what is probably right; "" is no entity."""

    text: str  # of the sentence
    gold: str
    probable: str
    score: float  # log-odds

    @property
    def why(self) -> str:
        """RETURNS (str): What is to be decided."""
        return f"gold: {self.gold or 'nothing'}, probably: {self.probable or 'nothing'}"


class MistakeCandidate(NamedTuple):
    """A probable mistake in a sentence."""

    score: float
    sentence: int
    gold: List[Entity]  # the gold entities that are wrong
    probable: Optional[Entity]


def find_mistakes(judged: Sequence[Judged], group: str, most: int = MOST) -> List[MistakeCandidate]:
    """Return the mistakes that are more probable than not, at most `most`, the most probable first. The span group has
    the candidates of each sentence."""
    sentences = [_known(*one, group) for one in judged]
    of_gold = sorted(dict(candidates).get(entity, 0.0) for gold, candidates in sentences for entity in gold)

    def rarity(probability: float) -> float:
        return -0.5 * math.log((bisect_right(of_gold, probability) + 1) / (len(of_gold) + 1))

    found: List[MistakeCandidate] = []
    for number, (gold, candidates) in enumerate(sentences):
        probabilities = dict(candidates)
        here = []
        for entity, p in candidates:
            if entity not in gold:
                wrong = [other for other in gold if _overlap(other, entity)]
                score = _log_odds(p) + max((rarity(probabilities.get(other, 0.0)) for other in wrong), default=0.0)
                score -= _RARE * any(other[2] != entity[2] for other in wrong)
                here.append(MistakeCandidate(score, number, wrong, entity))
        for entity in gold:
            nothing = 1.0 - sum(p for other, p in candidates if _overlap(entity, other))
            score = math.log(max(_LEAST, nothing)) + rarity(probabilities.get(entity, 0.0)) - _RARE
            here.append(MistakeCandidate(score, number, [entity], None))
        taken: List[Entity] = []
        for one in sorted(here, key=lambda one: -one.score):
            spans = one.gold if one.probable is None else [*one.gold, one.probable]
            if one.score > 0.0 and not any(_overlap(a, b) for a in spans for b in taken):
                found.append(one)
                taken += spans
    return sorted(found, key=lambda one: -one.score)[:most]


def write_mistakes(path: Path, judged: Sequence[Judged], found: Sequence[MistakeCandidate]) -> List[Mistake]:
    """Write the sentences with mistakes as `suggest` does: with the probable entities as suggestions, and the reasons
    in "meta". They have no gold until somebody has decided. Return the mistakes as text."""
    mistakes = [_describe(judged[one.sentence][0], one) for one in found]
    docs = []
    for number in dict.fromkeys(one.sentence for one in found):
        gold, _ = judged[number]
        here = [i for i, one in enumerate(found) if one.sentence == number]
        wrong = {entity for i in here for entity in found[i].gold}
        probable = {entity for i in here if (entity := found[i].probable) is not None}
        doc = bare_copy(gold)
        set_id(doc, get_id(gold))
        set_group(doc, SUGGESTED_GROUP, sorted({*doc_entities(gold)} - wrong | probable))
        set_meta(doc, {"score": mistakes[here[0]].score, "why": "; ".join(mistakes[i].why for i in here)})
        docs.append(doc)
    with atomic_path(path) as new:
        write_corpus(new, docs)
        if path.exists() and path.read_bytes() != new.read_bytes():
            set_aside(path)
    return mistakes


def set_aside(path: Path) -> None:
    """Rename a file of an earlier run, since somebody may have answered in it."""
    if path.exists():
        names = (f"previous{f'-{n}' if n > 1 else ''}-{path.name}" for n in count(1))
        path.replace(next(new for new in map(path.with_name, names) if not new.exists()))


def _describe(doc: Doc, found: MistakeCandidate) -> Mistake:
    gold, probable = (
        ", ".join(f"{doc[start:end].text} ({label})" for start, end, label in entities)
        for entities in (found.gold, [] if found.probable is None else [found.probable])
    )
    return Mistake(text=doc.text, gold=gold, probable=probable, score=round(found.score, 2))


def mistakes_table(mistakes: Sequence[Mistake]) -> Table:
    """Return a table of the most probable mistakes."""
    rows = [[m.gold or "-", m.probable or "-", m.text] for m in mistakes[:SHOWN]]
    note = (
        f"All {len(mistakes)} are in {MISTAKES}, as 'suggest' writes sentences. Annotate these, and append them to the "
        "gold: the last annotation of a sentence counts."
    )
    title = "Probable mistakes in the gold"
    return Table(title, ["Gold", "Probably", "Sentence"], [list(map(shorten_line, row)) for row in rows], note, names=3)


def _known(gold_doc: Doc, doc: Doc, group: str) -> Tuple[List[Entity], List[Tuple[Entity, float]]]:
    """Return the gold entities, and the candidates that touch no token without gold, with their probabilities."""
    gold = find_gold(gold_doc) or Gold(frozenset(), frozenset(range(len(gold_doc))))
    candidates = group_entities(doc, group)
    known = {*gold.scorable(candidates)}
    pairs = zip(candidates, group_scores(doc, group), strict=True)
    return sorted(gold.entities), [(entity, p or 0.0) for entity, p in pairs if entity in known]


def _overlap(one: Entity, other: Entity) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _log_odds(p: float) -> float:
    p = min(max(p, _LEAST), 1.0 - _LEAST)
    return math.log(p / (1.0 - p))
