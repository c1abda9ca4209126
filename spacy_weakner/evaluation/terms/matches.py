"""Matches of a source in gold sentences."""

import re
from collections import Counter
from typing import Collection, Dict, List, NamedTuple, Sequence, Set, Tuple

from spacy.tokens import Doc, Span

from ...aggregation.policies import ProposedSpan, select_spans
from ...corpus import weak
from ...corpus.gold import Gold
from ...gazetteer_ruler.forms import FORM, folded, normal_form

# Tokenized corpora have white space around punctuation, and around Chinese and Japanese characters; the terms of a list
# do not.
_SPLIT = re.compile(r"\s*([^\w\s]|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])\s*")


class Match(NamedTuple):
    """A match of a source."""

    candidate: ProposedSpan
    term: str  # its text in the form that the term list compares; for other sources, its text in the Doc
    key: str  # its text in the form that a stop list compares
    length: int  # its number of characters for the setting `min_length`


class MatchedSentence(NamedTuple):
    """A gold sentence and the matches of a source."""

    gold: Gold
    matches: Tuple[Match, ...]


def read_sentence(doc: Doc, gold: Gold, source: str) -> MatchedSentence:
    """Read the matches of a source in a Doc, without those that touch tokens without gold."""
    attr = weak.terms_attr(doc, source) or "ORTH"
    matches = []
    for span in doc.spans[weak.weak_group(source)]:
        if gold.scorable([(span.start, span.end, span.label_)]):
            matches.append(Match(ProposedSpan.of(span, source), _text(span, attr), folded(span.text), _length(span)))
    return MatchedSentence(gold, tuple(matches))


def choose_matches(matches: Sequence[Match], policy: str) -> List[Match]:
    """Resolve conflicts among the matches of one source by a policy, as `aggregate` does."""
    by_entity = {match.candidate.entity: match for match in matches}
    if len(by_entity) < 2:
        return list(by_entity.values())
    source = matches[0].candidate.source
    return [by_entity[entity] for entity in select_spans([match.candidate for match in matches], policy, [source])]


def commonest(texts: "Counter[str]") -> str:
    """Return the most frequent text; of equals, the alphabetically first."""
    return min(texts, key=lambda text: (-texts[text], text))


def ambiguous(matches: Collection[Match]) -> Set[Tuple[int, int]]:
    """Return the bounds that have matches with several labels."""
    labels: Dict[Tuple[int, int], Set[str]] = {}
    for match in matches:
        start, end, label = match.candidate.entity
        labels.setdefault((start, end), set()).add(label)
    return {bounds for bounds, given in labels.items() if len(given) > 1}


def _length(span: Span) -> int:
    if all(len(token) == 1 for token in span):  # the tokens are characters
        return len(span)
    return len(_SPLIT.sub(r"\1", span.text))


def _text(span: Span, attr: str) -> str:
    if attr == FORM:
        return normal_form(" ".join(span.text.split()), span.doc.lang_)
    form = {"LOWER": "lower_", "NORM": "norm_"}.get(attr, "text")
    return "".join(getattr(token, form) + token.whitespace_ for token in span).strip()
