"""Matches as entities."""

from typing import Sequence

from spacy.tokens import Doc, Span

from ..aggregation.policies import Candidate, resolve
from ..annotations.preset import blocked_tokens, preset_tokens

_SOURCE = "terms"


def annotate_entities(doc: Doc, spans: Sequence[Span], policy: str, overwrite: bool) -> None:
    """Write matches to `doc.ents`, without overlaps; all other tokens are outside.

    doc (Doc): The Doc.
    spans (Sequence[Span]): The matches.
    policy (str): See `aggregation.policies.resolve`.
    overwrite (bool): Replace the entities that are there; else these, and blocked tokens, stay.
    """
    kept = [] if overwrite else list(doc.ents)
    blocked = [] if overwrite else blocked_tokens(doc)
    if kept or blocked:
        taken = preset_tokens(doc)
        spans = [span for span in spans if not taken[span.start : span.end].any()]
    candidates = [Candidate.of(span, _SOURCE) for span in spans]
    found = [Span(doc, *entity) for entity in resolve(candidates, policy, [_SOURCE])]
    doc.set_ents(sorted([*kept, *found], key=lambda ent: ent.start), blocked=blocked)
