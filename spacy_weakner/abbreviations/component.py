"""The component that finds the abbreviations defined in a text, and labels them like the entities they stand for."""

from typing import Any, Dict, List, Optional, Tuple

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span

from ..corpus.entities import blocked_tokens
from ..corpus.weak import get_definitions, select_attrs, set_definitions, set_spans, weak_group
from ..heads.factories import default_config, takes_settings_of
from .definitions import Bounds
from .expansion import Origin, expand


def _abbreviations(doc: Doc) -> List[Tuple[Span, Span]]:
    """Return the short forms that a Doc defines, each with its long form."""
    return [(doc[a:b], doc[c:d]) for a, b, c, d in get_definitions(doc)]


# The short name may belong to another package, before or after this one is imported.
for _extension in ("weakner_abbreviations", "abbreviations"):
    if not Doc.has_extension(_extension):
        Doc.set_extension(_extension, getter=_abbreviations)


class Abbreviations(Pipe):
    """A component that finds the abbreviations that a Doc defines as "long form (SF)" or "SF (long form)", with the
    algorithm of Schwartz and Hearst (2003). If the long form is an entity, or ends with one, all occurrences of the
    short form in the Doc become entities with the same label, id and score.

    `doc._.weakner_abbreviations` has all definitions as pairs of a short form and a long form; so has
    `doc._.abbreviations`, unless another package has set this name.

    It uses the whole Doc, so Docs should be documents, not sentences. Add it after the components that find entities.

    name (str): Name of the component.
    source (Optional[str]): The weak source whose span group `weak:<source>` is read and extended; None: `doc.ents`.
    """

    def __init__(self, name: str = "abbreviations", *, source: Optional[str] = None) -> None:
        self.name = name
        self.source = source

    def __call__(self, doc: Doc) -> Doc:
        """Set the definitions of a Doc, and add entities for its short forms."""
        group = None if self.source is None else weak_group(self.source)
        spans = list(doc.ents if group is None else doc.spans.get(group, ()))
        found = [(span.start, span.end, span.label_) for span in spans]
        (expansion,) = expand([doc], [found])
        set_definitions(doc, [(*definition.short, *definition.long) for definition in expansion.definitions])
        if group is None:
            self._extend_ents(doc, spans, expansion.short)
        elif group in doc.spans and expansion.short:
            self._extend_group(doc, group, spans, expansion.short)
        return doc

    def _extend_group(self, doc: Doc, group: str, spans: List[Span], short: Dict[Bounds, List[Origin]]) -> None:
        # Each span, and the index of the span whose score and ids it has.
        kept = [(span, i) for i, span in enumerate(spans)]
        places = {(span.start, span.end, span.label_): place for place, (span, _) in enumerate(kept)}
        for bounds, origins in short.items():
            for i in (origin.entity for origin in origins):
                row = (Span(doc, *bounds, label=spans[i].label, kb_id=spans[i].kb_id), i)
                place = places.get((*bounds, spans[i].label_))
                if place is None:
                    kept.append(row)
                elif spans[i].kb_id and not kept[place][0].kb_id:
                    kept[place] = row
        kept.sort(key=lambda row: (row[0].start, row[0].end, row[0].label_))
        attrs = select_attrs(doc.spans[group], [i for _, i in kept])
        set_spans(doc, group, [span for span, _ in kept], attrs)

    def _extend_ents(self, doc: Doc, ents: List[Span], short: Dict[Bounds, List[Origin]]) -> None:
        """Add short forms as entities, replacing shorter entities and those with another label, but not longer ones."""
        at = {i: ent for ent in ents for i in range(ent.start, ent.end)}
        blocked = blocked_tokens(doc)
        is_blocked = {span.start for span in blocked}
        added = []
        for (start, end), origins in short.items():
            touched = [at[i] for i in range(start, end) if i in at]
            if not origins or any(len(ent) > end - start for ent in touched) or is_blocked & {*range(start, end)}:
                continue
            long = ents[origins[0].entity]
            if any((ent.start, ent.end, ent.label) == (start, end, long.label) and ent.kb_id for ent in touched):
                continue
            for i in [i for other in touched for i in range(other.start, other.end)]:
                at.pop(i, None)
            ent = Span(doc, start, end, label=long.label, kb_id=long.kb_id)
            ent._.weakner_score = long._.weakner_score
            added.append(ent)
        entities = sorted([*dict.fromkeys(at.values()), *added], key=lambda ent: ent.start)
        if entities != ents:
            inside = {i for ent in entities for i in range(ent.start, ent.end)}
            gone = [doc[i : i + 1] for ent in ents for i in range(ent.start, ent.end) if i not in inside]
            doc.set_ents(entities, blocked=blocked, outside=gone, default="unmodified")


@Language.factory(
    "abbreviations",
    assigns=["doc.ents", "doc.spans", "doc._.weakner_abbreviations"],
    default_config=default_config(Abbreviations),
)
@takes_settings_of(Abbreviations)
def make_abbreviations(nlp: Language, name: str, **settings: Any) -> Abbreviations:
    """Create the component with the settings of `Abbreviations`."""
    return Abbreviations(name, **settings)
