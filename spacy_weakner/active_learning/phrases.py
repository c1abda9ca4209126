"""Phrases that a pipeline finds in a text, what its term lists match there, and where phrases stand at all."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple
from typing import Counter as Counts

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.gold import Gold
from ..corpus.weak import doc_entities, group_entities
from ..gazetteer_ruler.component import GazetteerRuler
from ..gazetteer_ruler.forms import folded
from ..gazetteer_ruler.terms import MAX_LENGTH, Term
from ..ty import Entity

# Label and folded phrase.
Key = Tuple[str, str]
# Tokens around a mention in its example.
_CONTEXT = 8


@dataclass
class Phrase:
    """Mentions of a phrase with one label."""

    example: str
    spellings: Counts[str] = field(default_factory=Counter)
    ids: Counts[str] = field(default_factory=Counter)
    nearest: Counts[str] = field(default_factory=Counter)
    scores: List[float] = field(default_factory=list)

    @property
    def mentions(self) -> int:
        return self.spellings.total()

    @property
    def text(self) -> str:
        """As it is written most often."""
        return self.spellings.most_common(1)[0][0]

    @property
    def weight(self) -> float:
        """The sum of the scores of its mentions; their number if they have none."""
        return sum(self.scores) if self.scores else float(self.mentions)


class Found:
    """What a pipeline has found in some Docs.

    groups (Sequence[str]): Span groups with the matches of its term lists.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        self.groups = list(groups)
        self.phrases: Dict[Key, Phrase] = {}
        self.listed: Dict[Key, Phrase] = {}  # overruled matches
        self.matches: Counts[Key] = Counter()  # all of them
        self.labels: Set[str] = set()  # of phrases

    def add(self, doc: Doc) -> None:
        """Count the entities of a Doc, and the matches of lists that are none."""
        for ent in doc.ents:
            if not ent.text.strip() or len(ent.text) > MAX_LENGTH:
                continue  # no term
            phrase = _add(self.phrases, doc, (ent.start, ent.end, ent.label_))
            self.labels.add(ent.label_)
            score = ent._.weakner_score if ent.has_extension("weakner_score") else None
            phrase.scores += [] if score is None else [score]
            phrase.ids.update([ent.kb_id_] if ent.kb_id_ else [])
            candidates = ent._.weakner_ids if ent.has_extension("weakner_ids") else None
            phrase.nearest.update([candidates[0][0]] if candidates and not ent.kb_id_ else [])
        entities = set(doc_entities(doc))
        for entity in {entity for group in self.groups if group in doc.spans for entity in group_entities(doc, group)}:
            if entity in entities:
                self.matches[_key(doc, entity)] += 1
            elif not is_inside(entity, entities):
                self.matches[_key(doc, entity)] += 1
                _add(self.listed, doc, entity)

    def ranked(self) -> List[Key]:
        """All phrases, the most certain and frequent ones first."""
        return sorted(self.phrases, key=lambda key: (-self.phrases[key].weight, key))

    def most_overruled(self, n: int) -> List[Key]:
        """Terms of lists that are overruled more often than not."""
        net = {key: 2 * phrase.mentions - self.matches[key] for key, phrase in self.listed.items()}
        return sorted((key for key in net if net[key] > 0), key=lambda key: (-net[key], key))[:n]

    def against(self, key: Key, occurrences: int, inside: int) -> List[str]:
        """What speaks against a phrase as a term.

        key (Key): The phrase.
        occurrences (int): How often a list with it would match.
        inside (int): How often that would be inside a longer entity.
        RETURNS (List[str]): The reasons.
        """
        mentions = self.phrases[key].mentions
        same_form = {label: self.phrases.get((label, key[1])) for label in self.labels - {key[0]}}
        others = {label: phrase.mentions for label, phrase in same_form.items() if phrase is not None}
        missed = occurrences - mentions - inside - sum(others.values())
        found = [f"{label} in {n} of {mentions + sum(others.values())} mentions" for label, n in sorted(others.items())]
        found += [f"{inside} of {occurrences} inside longer entities"] if inside > 0 else []
        return found + ([f"{missed} of {occurrences} not found"] if missed > mentions else [])


class Lookup:
    """Finds phrases in Docs as a term list would.

    nlp (Language): Its tokenizer and vocabulary are used.
    phrases (Mapping[Key, str]): The phrases, as they are written.
    """

    def __init__(self, nlp: Language, phrases: Mapping[Key, str]) -> None:
        self._nlp = nlp
        self._ruler: Optional[GazetteerRuler] = None  # it wants terms
        if phrases:
            ruler: Any = nlp.create_pipe("gazetteer_ruler")
            self._ruler = ruler
            ruler.initialize(lambda: [], nlp=nlp, terms=[Term(key[0], text) for key, text in phrases.items()])

    def matches(self, doc: Doc) -> Iterator[Tuple[Entity, Key]]:
        """YIELDS (Tuple[Entity, Key]): The matches in a Doc, overlapping ones included."""
        for entity in () if self._ruler is None else self._ruler.match(doc):
            yield entity, _key(doc, entity)

    def count_inside(self, found: Found) -> Counts[Key]:
        """How often each phrase stands inside a longer one that was found."""
        counts: Counts[Key] = Counter()
        for phrase in found.phrases.values():
            doc = self._nlp.make_doc(phrase.text)
            for (start, end, _), key in self.matches(doc):
                counts[key] += phrase.mentions if end - start < len(doc) else 0
        return counts

    def refuted(self, golds: Iterable[Tuple[Doc, Optional[Gold]]]) -> Set[Key]:
        """The phrases that stand in gold as non-entities at least as often as with their label."""
        right: Counts[Key] = Counter()
        wrong: Counts[Key] = Counter()
        for doc, gold in golds:
            for entity, key in self.matches(doc) if gold is not None else ():
                if gold is None or not gold.scorable([entity]) or is_inside(entity, gold.entities):
                    continue
                (right if entity in gold.entities else wrong)[key] += 1
        return {key for key in wrong if wrong[key] >= right[key]}


def is_inside(entity: Entity, others: Iterable[Entity]) -> bool:
    """True if an entity is a part of another, longer one."""
    start, end, _ = entity
    return any(low <= start and end <= high and high - low > end - start for low, high, _ in others)


def _key(doc: Doc, entity: Entity) -> Key:
    start, end, label = entity
    return label, folded(doc[start:end].text)


def _add(phrases: Dict[Key, Phrase], doc: Doc, entity: Entity) -> Phrase:
    start, end, _ = entity
    key = _key(doc, entity)
    if key not in phrases:
        phrases[key] = Phrase(" ".join(doc[max(0, start - _CONTEXT) : end + _CONTEXT].text.split()))
    phrases[key].spellings[" ".join(doc[start:end].text.split())] += 1
    return phrases[key]
