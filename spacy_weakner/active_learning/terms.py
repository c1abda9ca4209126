"""Suggests terms that a pipeline finds but that its lists lack, and list terms that the pipeline overrules."""

import csv
from collections import Counter
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.counts import RowCounts
from ..corpus.docbin import bare_copy
from ..corpus.formats.reading import Reading, read_corpus
from ..corpus.gold import find_gold
from ..corpus.weak import doc_entities, group_entities, weak_group
from ..errors import Errors, WeaknerError, check_range
from ..files import existing, write_text
from ..gazetteer_ruler.component import GazetteerRuler
from ..gazetteer_ruler.forms import folded
from ..gazetteer_ruler.terms import MAX_LENGTH, Term
from ..pipelines import load_pipeline
from ..progress import Progress
from ..runtime.blocks import corpus_inputs
from ..runtime.devices import on_device
from ..ty import Entity

N_TERMS = 200
# Number of phrases looked up in the text, per wanted phrase.
_POOL = 4
# Tokens around a mention in its example.
_CONTEXT = 8
# Label and folded phrase.
PhraseKey = Tuple[str, str]


@dataclass
class Phrase:
    """Mentions of a phrase with one label."""

    example: str
    spellings: "Counter[str]" = field(default_factory=Counter)
    ids: "Counter[str]" = field(default_factory=Counter)
    scored: int = 0  # mentions with a score
    score: float = 0.0  # sum of these scores

    @property
    def mentions(self) -> int:
        return self.spellings.total()

    @property
    def text(self) -> str:
        """Its most frequent spelling."""
        return self.spellings.most_common(1)[0][0]

    @property
    def weight(self) -> float:
        """The sum of the scores of its mentions, or their number if they have no scores."""
        return self.score if self.scored else float(self.mentions)


class SuggestedTerm(NamedTuple):
    """A row of the list to review: a phrase in its most frequent spelling, and its label as named in the list."""

    label: str
    term: str
    id: str  # the id to which its mentions were linked most often; empty if none was
    mentions: int  # how often it was found with this label; for a list term, how often it was overruled
    mean_score: Optional[float]  # mean score of its mentions; None without calibrated scores
    in_list: str  # "yes": a list of the pipeline has it, but the pipeline overrules it; "no": no list has it
    against: str  # evidence against it as a term
    example: str  # a mention in context
    accept: str = ""  # for the reviewer: yes or no


class TermReport(NamedTuple):
    """The terms, the best additions first, then overruled terms of the list; and numbers of other phrases."""

    docs: int
    found: int  # phrases that the pipeline found
    known: int  # of these, phrases in its lists
    refuted: int  # of these, phrases that are non-entities in gold at least as often as they have their label
    remarks: List[str]  # on the input
    terms: List[SuggestedTerm]


def suggest_terms(
    input_path: Path,
    output_path: Path,
    *,
    model: str,
    n: int = N_TERMS,
    exclude: Sequence[Path] = (),
    gpu_id: int = -1,
    progress: bool = False,
) -> TermReport:
    """Write the phrases that a pipeline finds in a text and its term lists lack, for review: with "yes" in the column
    `accept`, they are terms of the file; with "no", they are terms neither of this list nor of other lists used with
    it. They are ranked by the sum of the scores of their mentions. The list terms that the pipeline overrules most
    often come last. The output is replaced. For the parameters, see `suggest`."""
    check_range("n", n, 1, None)
    input_path, output_path = existing(Path(input_path)), Path(output_path)
    golds = [existing(Path(path)) for path in exclude]
    if output_path.suffix != ".csv":
        raise WeaknerError(Errors.WK005.format(setting="output", value=str(output_path), expected="a .csv file"))
    with on_device(gpu_id):
        nlp = load_pipeline(model)
        rulers: List[GazetteerRuler] = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, GazetteerRuler)]
        groups = [weak_group(ruler.source) for ruler in rulers]
        found, n_docs, rows_read = FoundPhrases(), 0, RowCounts()
        blocks = corpus_inputs(input_path, nlp, Reading(sentences=False))
        for block in Progress(blocks, desc="suggest", unit="block", enabled=progress):
            with nlp.memory_zone():
                docs, _ = block.read(nlp.vocab, rows_read)
                for doc in nlp.pipe(bare_copy(doc, nlp.vocab) for doc in docs):
                    n_docs += 1
                    found.add(doc, groups)
        known = {key for ruler in rulers for key in _keys(ruler) if key in found.phrases}
        pool = [key for key in found.ranked() if key not in known][: _POOL * n]
        docs = (doc for path in golds for doc in read_corpus(path, nlp, Reading()))
        refuted = _refuted(nlp, {key: found.phrases[key].text for key in pool}, docs) if pool else set()
        stops = {folded(word) for ruler in rulers for word in ruler.stop}
        rows = []
        for key in [key for key in pool if key not in refuted][:n]:
            against = found.other_labels(key) + ["stop word of the list"] * (key[1] in stops)
            rows.append(_row(key, found.phrases[key], "no", against))
        for key in found.most_overruled(n):
            phrase = found.listed[key]
            rows.append(_row(key, phrase, "yes", [f"overruled {phrase.mentions} of {found.matches[key]} times"]))
        if not rows:
            n_found = len(found.phrases)
            raise WeaknerError(
                Errors.WK777.format(path=input_path, found=n_found, known=len(known), refuted=len(refuted))
            )
        raw = {name: label for ruler in rulers for label, name in (ruler.label_names or {}).items()}
        rows = [row._replace(label=raw.get(row.label, row.label)) for row in rows]
    table = StringIO()
    table.write("\ufeff")  # which tells Excel that it is UTF-8
    csv.writer(table, lineterminator="\n").writerows([SuggestedTerm._fields, *rows])
    write_text(output_path, table.getvalue())
    return TermReport(n_docs, len(found.phrases), len(known), len(refuted), rows_read.remarks, rows)


def _keys(ruler: GazetteerRuler) -> Iterator[PhraseKey]:
    names = ruler.label_names or {}
    return ((names.get(term.label, term.label), folded(term.text)) for term in ruler.terms)


def _row(key: PhraseKey, phrase: Phrase, in_list: str, against: Sequence[str]) -> SuggestedTerm:
    return SuggestedTerm(
        label=key[0],
        term=phrase.text,
        id=next((id_ for id_, _ in phrase.ids.most_common(1)), ""),
        mentions=phrase.mentions,
        mean_score=round(phrase.score / phrase.scored, 3) if phrase.scored else None,
        in_list=in_list,
        against="; ".join(against),
        example=phrase.example,
    )


def _refuted(nlp: Language, phrases: Mapping[PhraseKey, str], docs: Iterable[Doc]) -> Set[PhraseKey]:
    """Return the phrases (given as written) that are non-entities in gold at least as often as they have their label,
    where a term list would match them."""
    ruler: Any = nlp.create_pipe("gazetteer_ruler", config={"source": "suggested"})
    ruler.initialize(lambda: [], nlp=nlp, terms=[Term(key[0], text) for key, text in phrases.items()])
    right: Counter[PhraseKey] = Counter()
    wrong: Counter[PhraseKey] = Counter()
    for doc in docs:
        gold = find_gold(doc)
        if gold is None:
            continue
        by_token = _by_token(gold.entities)
        for entity in ruler.match(doc):
            if gold.scorable([entity]) and not _is_inside(entity, by_token):
                (right if entity in gold.entities else wrong)[_key(doc, entity)] += 1
    return {key for key in wrong if wrong[key] >= right[key]}


class FoundPhrases:
    """Phrases that a pipeline has found in Docs, and the matches of its term lists in their span groups."""

    def __init__(self) -> None:
        self.phrases: Dict[PhraseKey, Phrase] = {}
        self.listed: Dict[PhraseKey, Phrase] = {}  # overruled matches
        self.matches: Counter[PhraseKey] = Counter()  # all matches
        self.labels: Set[str] = set()  # labels of phrases

    def add(self, doc: Doc, groups: Sequence[str]) -> None:
        """Count the entities of a Doc, and the matches of lists, in span groups, that are not entities."""
        for ent in doc.ents:
            if not ent.text.strip() or len(ent.text) > MAX_LENGTH:
                continue  # not a term
            phrase = _add(self.phrases, doc, (ent.start, ent.end, ent.label_))
            self.labels.add(ent.label_)
            score = ent._.weakner_score
            phrase.scored += score is not None
            phrase.score += score or 0.0
            phrase.ids.update([ent.kb_id_] if ent.kb_id_ else [])
        entities = set(doc_entities(doc))
        by_token = _by_token(entities)
        for entity in {entity for group in groups if group in doc.spans for entity in group_entities(doc, group)}:
            if entity in entities:
                self.matches[_key(doc, entity)] += 1
            elif not _is_inside(entity, by_token):
                self.matches[_key(doc, entity)] += 1
                _add(self.listed, doc, entity)

    def ranked(self) -> List[PhraseKey]:
        """Return all phrases, by decreasing weight."""
        return sorted(self.phrases, key=lambda key: (-self.phrases[key].weight, key))

    def most_overruled(self, n: int) -> List[PhraseKey]:
        """Return the list terms that are overruled more often than not."""
        net = {key: 2 * phrase.mentions - self.matches[key] for key, phrase in self.listed.items()}
        return sorted((key for key in net if net[key] > 0), key=lambda key: (-net[key], key))[:n]

    def other_labels(self, key: PhraseKey) -> List[str]:
        """Return how often a phrase was found with other labels."""
        others = {
            label: self.phrases[label, key[1]].mentions for label in self.labels if (label, key[1]) in self.phrases
        }
        total = sum(others.values())
        return [f"{label} in {n} of {total} mentions" for label, n in sorted(others.items()) if label != key[0]]


def _by_token(entities: Iterable[Entity]) -> Dict[int, Entity]:
    """Return the longest of some entities at each token."""
    ordered = sorted(entities, key=lambda entity: entity[1] - entity[0])
    return {i: entity for entity in ordered for i in range(entity[0], entity[1])}


def _is_inside(entity: Entity, others: Mapping[int, Entity]) -> bool:
    """Return True if an entity is a part of a longer one."""
    start, end, _ = entity
    low, high, _ = others.get(start, entity)
    return end <= high and high - low > end - start


def _key(doc: Doc, entity: Entity) -> PhraseKey:
    start, end, label = entity
    return label, folded(doc[start:end].text)


def _add(phrases: Dict[PhraseKey, Phrase], doc: Doc, entity: Entity) -> Phrase:
    start, end, _ = entity
    key = _key(doc, entity)
    if key not in phrases:
        phrases[key] = Phrase(" ".join(doc[max(0, start - _CONTEXT) : end + _CONTEXT].text.split()))
    phrases[key].spellings[" ".join(doc[start:end].text.split())] += 1
    return phrases[key]
