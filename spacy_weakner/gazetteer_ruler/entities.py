"""Writes matches as entities."""

from typing import List, Sequence, Union

from spacy.tokens import Doc, Span

from ..aggregation.policies import ProposedSpan, select_spans
from ..corpus.entities import blocked_tokens, preset_tokens
from ..corpus.weak import give_ids

SHORTER = "shorter"


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
    found = longest(spans)
    entities = [*there, *found]
    if overwrite == SHORTER:
        equal = {(ent.start, ent.end, ent.label): ent for ent in there}
        found = [equal.get((span.start, span.end, span.label), span) for span in found]
        entities = longest([*{(ent.start, ent.end): ent for ent in [*there, *found]}.values()])
        kept = {(ent.start, ent.end, ent.label) for ent in entities}
        for ent in there:
            if (ent.start, ent.end, ent.label) not in kept:
                _forget(ent)
    doc.set_ents(sorted(entities, key=lambda ent: ent.start), blocked=blocked)
    give_ids(doc, ids)


def longest(spans: Sequence[Span]) -> List[Span]:
    """Return the spans that remain if the longest of overlapping ones is kept, sorted by start."""
    by_entity = {(span.start, span.end, span.label_): span for span in spans}
    return [by_entity[entity] for entity in select_spans([ProposedSpan.of(s, "") for s in spans], "longest", [""])]


def _forget(ent: Span) -> None:
    """Remove what is stored by the bounds of an entity: a match on the same tokens would inherit it."""
    ent._.weakner_score = ent._.weakner_ids = None
