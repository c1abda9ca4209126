"""How often the doubtful terms of a list match right and wrong."""

import re
from collections import Counter
from typing import AbstractSet, List, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..aggregation.policies import Candidate, resolve
from ..gazetteer_ruler.component import GazetteerRuler
from ..gazetteer_ruler.forms import folded, normal_form
from ..gazetteer_ruler.terms import Term
from ..labeling.sources import TermSource
from .corpora import Sentence

SENTENCES = 1_000  # gold sentences that are looked at, evenly spread
_WORD = re.compile(r"\w+")


class Seen(NamedTuple):
    """What is known of the texts that a list will match.

    nlp (Language): Its vocabulary and tokenizer are used.
    longest (int): Words of the longest text; 0: not known.
    gold (Sequence[Sentence]): Annotated sentences.
    texts (Sequence[str]): Some texts without annotation.
    """

    nlp: Language
    longest: int = 0
    gold: Sequence[Sentence] = ()
    texts: Sequence[str] = ()

    def judges(self) -> List[Sentence]:
        """RETURNS (List[Sentence]): Completely annotated sentences, evenly spread: only they tell what is wrong."""
        whole = [sentence for sentence in self.gold if not sentence.missing and not sentence.weak]
        return whole[:: 1 + (len(whole) - 1) // SENTENCES] if whole else []


class Counts(NamedTuple):
    """Matches of terms, by their folded text.

    right (Counter[str]): Those that are entities of the gold.
    wrong (Counter[str]): The others.
    """

    right: "Counter[str]"
    wrong: "Counter[str]"


def count_in_texts(terms: Sequence[Term], source: TermSource, seen: Seen) -> "Counter[str]":
    """Count the matches of doubtful terms in texts without annotation.

    terms (Sequence[Term]): The terms.
    source (TermSource): The list's settings.
    seen (Seen): The texts.
    RETURNS (Counter[str]): Matches by folded text.
    """
    docs = [seen.nlp.make_doc(text) for text in seen.texts]
    ruler = _ruler(terms, source, seen)
    if ruler is None:
        return Counter()
    found = zip(docs, ruler.match_docs(docs), strict=True)
    return Counter(folded(doc[start:end].text) for doc, matches in found for start, end, _ in matches)


def count_in_gold(
    doubtful: Sequence[Term], terms: Sequence[Term], source: TermSource, gold: Sequence[Sentence], seen: Seen
) -> Counts:
    """Count how often doubtful terms match right and wrong beside all others of the list, of which the longest match
    counts. Matches with labels that the gold does not have are left out: it does not tell whether they are wrong.

    doubtful (Sequence[Term]): The terms.
    terms (Sequence[Term]): All terms of the list.
    source (TermSource): The list's settings.
    gold (Sequence[Sentence]): Completely annotated sentences.
    seen (Seen): The pipeline.
    RETURNS (Counts): The counts.
    """
    counts = Counts(Counter(), Counter())
    words: Set[str] = {word for sentence in gold for word in _words(sentence.text)}
    # The others cannot match: a list of a million terms is not compiled for a thousand sentences.
    there = [term for term in terms if source.attr == "LEMMA" or words.issuperset(_words(term.text))]
    wanted, names = {folded(term.text) for term in doubtful}, source.labels or {}
    labels = {label for sentence in gold for _, _, label in sentence.entities}
    docs = [Doc(seen.nlp.vocab, words=list(sentence.words)) for sentence in gold]
    ruler = _ruler([*doubtful, *there], source, seen)
    if ruler is None:
        return counts
    for doc, sentence, matches in zip(docs, gold, ruler.match_docs(docs), strict=True):
        kept = (match for match in matches if source.labels is None or match[2] in names)
        renamed = [(start, end, names.get(label, label)) for start, end, label in kept]
        _count(doc, _longest(renamed), {*sentence.entities}, wanted, labels, counts)
    return counts


def _words(text: str) -> List[str]:
    return _WORD.findall(normal_form(text))


def _count(
    doc: Doc,
    found: Sequence[Tuple[int, int, str]],
    entities: AbstractSet[Tuple[int, int, str]],
    wanted: AbstractSet[str],
    labels: AbstractSet[str],
    counts: Counts,
) -> None:
    for start, end, label in found:
        key = folded(doc[start:end].text)
        if key in wanted and label in labels:
            (counts.right if (start, end, label) in entities else counts.wrong)[key] += 1


def _longest(matches: Sequence[Tuple[int, int, str]]) -> List[Tuple[int, int, str]]:
    """Matches without overlaps; of a span with several labels each counts."""
    spans = {(start, end) for start, end, _ in matches}
    kept = resolve([Candidate(start, end, "", "terms", end - start) for start, end in spans], "longest", ["terms"])
    places = {entity[:2] for entity in kept}
    return [match for match in matches if match[:2] in places]


def _ruler(terms: Sequence[Term], source: TermSource, seen: Seen) -> Optional[GazetteerRuler]:
    """A ruler of the terms that have something visible; None if none has."""
    visible = [term for term in terms if normal_form(term.text).strip()]
    if not visible:
        return None
    settings = {**source.ruler_settings(), "min_length": 1, "stop": []}
    ruler = GazetteerRuler(seen.nlp.vocab, source.name, nlp=seen.nlp, **settings)
    ruler.add_terms(visible)
    return ruler
