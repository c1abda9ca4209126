"""Matches of a source in gold sentences."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc, Span

from ...aggregation.policies import ProposedSpan, select_spans
from ...corpus import weak
from ...corpus.gold import Gold
from ...gazetteer_ruler.forms import FORM, normal_form


class Match(NamedTuple):
    """A match of a source."""

    candidate: ProposedSpan
    term: str  # its text in the form that the term list compares; for other sources, its text in the Doc


class MatchedSentence(NamedTuple):
    """A gold sentence and the matches of a source."""

    gold: Gold
    matches: Tuple[Match, ...]


def read_sentence(doc: Doc, gold: Gold, source: str) -> Optional[MatchedSentence]:
    """Read the matches of a source in a Doc, without those that touch tokens without gold; None if the source has not
    labeled it."""
    if weak.weak_group(source) not in doc.spans:
        return None
    attr = weak.terms_attr(doc, source) or "ORTH"
    matches = []
    for span in doc.spans[weak.weak_group(source)]:
        if gold.scorable([(span.start, span.end, span.label_)]):
            matches.append(Match(ProposedSpan.of(span, source), _text(span, attr)))
    return MatchedSentence(gold, tuple(matches))


def choose_matches(matches: Sequence[Match], policy: str) -> List[Match]:
    """Resolve conflicts among the matches of one source by a policy, as `aggregate` does."""
    by_entity = {match.candidate.entity: match for match in matches}
    candidates = [match.candidate for match in matches]
    sources = [candidate.source for candidate in candidates[:1]]
    return [by_entity[entity] for entity in select_spans(candidates, policy, sources)]


def _text(span: Span, attr: str) -> str:
    if attr == FORM:
        return normal_form(" ".join(span.text.split()), span.doc.lang_)
    form = {"LOWER": "lower_", "NORM": "norm_"}.get(attr, "text")
    return "".join(getattr(token, form) + token.whitespace_ for token in span).strip()
