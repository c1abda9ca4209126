"""Writes matches as entities."""

from typing import List, Sequence, Tuple, Union

from spacy.tokens import Doc, Span

from ..aggregation.policies import ProposedSpan, select_spans
from ..corpus.entities import blocked_tokens, preset_tokens
from ..corpus.weak import give_ids

SHORTER = "shorter"
_SOURCE, _PRESET = "terms", "preset"


def annotate_entities(doc: Doc, spans: Sequence[Span], overwrite: Union[bool, str]) -> None:
    """Write matches to `doc.ents`; where they overlap, the longest one. All other tokens become "O".

    With `overwrite`, existing entities are replaced; with "shorter", only those that overlap a match of at least the
    same length; otherwise they are kept. Those that equal a match get its id if they have none. Blocked tokens are kept
    unless `overwrite` is True.
    """
    if overwrite is True:
        for ent in doc.ents:
            _forget(ent)
    ids = {(span.start, span.end, span.label_): [span.kb_id_] for span in spans if span.kb_id}
    there = [] if overwrite is True else list(doc.ents)
    blocked = [] if overwrite is True else blocked_tokens(doc)
    if there or blocked:
        taken = preset_tokens(doc)
        if overwrite == SHORTER:
            for ent in there:
                taken[ent.start : ent.end] = False
        spans = [span for span in spans if not taken[span.start : span.end].any()]
    given = {(span.start, span.end, span.label_): span for span in spans}
    found = [
        given[entity] for entity in select_spans([ProposedSpan.of(s, _SOURCE) for s in spans], "longest", [_SOURCE])
    ]
    if overwrite == SHORTER:
        there, found = _longest(there, found)
    doc.set_ents(sorted([*there, *found], key=lambda ent: ent.start), blocked=blocked)
    give_ids(doc, ids)


def _forget(ent: Span) -> None:
    """Remove what is stored by the bounds of an entity: a match on the same tokens would inherit it."""
    ent._.weakner_score = ent._.weakner_ids = None


def _longest(there: List[Span], found: List[Span]) -> Tuple[List[Span], List[Span]]:
    """Return the existing entities and the matches that are kept."""
    candidates = [*(ProposedSpan.of(ent, _SOURCE) for ent in found), *(ProposedSpan.of(ent, _PRESET) for ent in there)]
    longest = set(select_spans(candidates, "longest", [_SOURCE, _PRESET]))
    kept = {(ent.start, ent.end, ent.label_) for ent in there} & longest
    for ent in there:
        if (ent.start, ent.end, ent.label_) not in kept:
            _forget(ent)
    return (
        [ent for ent in there if (ent.start, ent.end, ent.label_) in kept],
        [ent for ent in found if (ent.start, ent.end, ent.label_) in longest - kept],
    )
