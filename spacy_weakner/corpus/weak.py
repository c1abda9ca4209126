"""Storage of weak labels on a Doc: reserved span groups, and keys of `doc.user_data`.

No other module uses these names. Each source writes one span group:

- `weak:<source>`: the spans of a weak source; several types for one phrase are allowed;
- `pred:<pipe>`: the candidates of a trained component;
- `gold`: gold entities kept beside weak ones; no training uses them;
- `matched`: the weak entities of a sentence whose labels a model has since completed;
- `suspect`: labels that `clean` made missing;
- `suggested`: what annotators of an unannotated text are shown; never a source;
- `wrong`: spans known not to have their label, or, without a label, not to be entities at all (for the
  `incorrect_spans_key` of `span_ner` and of spaCy's `ner`).

Scores are stored in `SpanGroup.attrs["scores"]`, in the order of the spans, since two spans with equal bounds would
share `span._`. The declarations of a source are stored in the same `attrs`: its reliability, whether tokens outside its
spans are "O", and, for a term list, the token attribute by which terms are matched. Entities, which do not overlap,
have `span._.weakner_score`, and those of `term_linker` have `span._.weakner_ids`.
"""

import math
from numbers import Real
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, SpanGroup
from thinc.types import Floats2d

from ..errors import Errors, WeaknerError
from ..ty import Entity

T = TypeVar("T")
WEAK_PREFIX = "weak:"
PREDICTED_PREFIX = "pred:"
GOLD_GROUP = "gold"
MATCHED_GROUP = "matched"
SUSPECT_GROUP = "suspect"
WRONG_GROUP = "wrong"
SUGGESTED_GROUP = "suggested"
# All spans of the sources, overlapping ones too, which `aggregate --nested` marks as weak; or gold. (It is the default
# `spans_key` of spaCy's `spancat`.)
SPANS_KEY = "sc"
# What chose a sentence, in its "meta".
SUGGEST = "suggest"

_SCORED = (WEAK_PREFIX, PREDICTED_PREFIX)
_OTHERS = (GOLD_GROUP, MATCHED_GROUP, SUSPECT_GROUP, WRONG_GROUP, SUGGESTED_GROUP)

_ID, _WEAK, _META = "weakner.id", "weakner.weak", "weakner.meta"
_CONFIDENCE, _UNIT = "weakner.confidence", "weakner.confidence_unit"
_TAGS, _SOFT, _AUGMENTED = "weakner.tags", "weakner.soft", "weakner.augmented"
_DEFINITIONS = "weakner.abbreviations"
_TEXT = "weakner.text"
# Values in `attrs` of a group that it has for each of its spans.
PER_SPAN = ("scores", "ids")
# Concept ids by entity, the best first.
EntityIds = Mapping[Entity, Sequence[str]]

for _extension in ("weakner_score", "weakner_ids"):
    if not Span.has_extension(_extension):
        Span.set_extension(_extension, default=None)


class TagDistributions(NamedTuple):
    """A distribution over tags per token: shape (n_tokens, n_labels); rows sum to 1, or to 0 for missing tokens. The
    labels are tags of the scheme, including "O"."""

    labels: Tuple[str, ...]
    scheme: str
    probabilities: Floats2d


# Span groups


def set_group(
    doc: Doc,
    name: str,
    entities: Sequence[Entity],
    scores: Optional[Sequence[Optional[float]]] = None,
    ids: Optional[EntityIds] = None,
    attrs: Optional[Mapping[str, Any]] = None,
) -> SpanGroup:
    """Write a span group, replacing any group of that name. The best of the ids becomes the span's `kb_id_`. `attrs`
    are further attributes of the group, beside scores and ids."""
    given, carried = ids or {}, {key: value for key, value in (attrs or {}).items() if key not in PER_SPAN}
    listed = [list(given.get(entity, ())) for entity in entities]
    if scores is not None:
        carried["scores"] = [None if s is None else float(s) for s in scores]
    if any(given.values()):
        carried["ids"] = listed
    spans = [
        Span(doc, start, end, label, kb_id=next(iter(found), ""))
        for (start, end, label), found in zip(entities, listed, strict=True)
    ]
    return set_spans(doc, name, spans, carried)


def set_spans(doc: Doc, name: str, spans: List[Span], attrs: Dict[str, Any]) -> SpanGroup:
    """Write a span group, replacing any group of that name: the fast way for many spans."""
    group = SpanGroup(doc, name=name, spans=spans, attrs=attrs)
    doc.spans[name] = group
    return group


def copy_group(doc: Doc, other: Doc, name: str, new_name: str = "") -> None:
    """Copy a span group, if it exists, to another Doc with the same tokens, perhaps under a new name."""
    if name in doc.spans:
        spans = [Span(other, span.start, span.end, label=span.label_, kb_id=span.kb_id_) for span in doc.spans[name]]
        set_spans(other, new_name or name, spans, dict(doc.spans[name].attrs))


def _per_span(group: SpanGroup, key: str) -> List[Any]:
    """Return the scores or ids of all spans of a group. Spans that other code has appended have no values in `attrs`:
    their score is None, and their only id is their `kb_id_`."""
    values, n = list(group.attrs.get(key, ())), len(group)
    if len(values) > n:
        raise WeaknerError(
            f"The span group '{group.name}' has {n} spans, but attrs['{key}'] has {len(values)} values. Code "
            "that writes the group must give each span one value, in the same order."
        )
    if key == "scores":
        return values + [None] * (n - len(values))
    later = map(group.__getitem__, range(len(values), n))
    return values + [[span.kb_id_] if span.kb_id else [] for span in later]


def select_attrs(group: SpanGroup, spans: Sequence[int]) -> Dict[str, Any]:
    """Return the attributes of a group for some of its spans, given by index; per-span values are selected."""
    values = {key: _per_span(group, key) for key in PER_SPAN if key in group.attrs}
    return {**group.attrs, **{key: [every[i] for i in spans] for key, every in values.items()}}


def keep_entities(doc: Doc, name: str, entities: Iterable[Entity]) -> None:
    """Keep only the given entities of a span group, each with its score and ids."""
    wanted = set(entities)
    kept = [i for i, entity in enumerate(group_entities(doc, name)) if entity in wanted]
    _keep_spans(doc, name, list(doc.spans[name]), kept)


def _keep_spans(doc: Doc, name: str, spans: Sequence[Span], kept: Sequence[int]) -> None:
    set_spans(doc, name, [spans[i] for i in kept], select_attrs(doc.spans[name], kept))


def rename_labels(doc: Doc, names: Mapping[str, str]) -> Set[str]:
    """Rename labels of the entities and of all span groups, in which no span is repeated then. Return the labels that
    have been renamed."""
    if get_tags(doc) is not None or get_soft_labels(doc) is not None:
        where = "for corpora that 'relabel' and 'aggregate --soft' have not written"
        raise WeaknerError(Errors.WK331.format(setting="a new name of a label", where=where, instead=""))
    before = {ent.label_ for ent in doc.ents}
    for token in (token for ent in doc.ents for token in ent):
        token.ent_type_ = names.get(token.ent_type_, token.ent_type_)
    for name, group in [*doc.spans.items()]:
        spans = [Span(doc, x.start, x.end, label=names.get(x.label_, x.label_), kb_id=x.kb_id_) for x in group]
        labels = {span.label_ for span in group}
        if labels & names.keys():
            first = {(x.start, x.end, x.label_): i for i, x in reversed([*enumerate(spans)])}
            _keep_spans(doc, name, spans, sorted(first.values()))
        before |= labels
    return before & names.keys()


def is_known_group(name: str) -> bool:
    """Return True if a span group is one of those listed at the top of this module."""
    return name.startswith(_SCORED) or name in _OTHERS


def absent_groups(docs: Iterable[Doc], groups: Iterable[str]) -> List[str]:
    """Return those of some groups that no Doc has (Docs without tokens are ignored): what writes them did not run,
    since a component or source that finds nothing writes an empty group."""
    there = [doc.spans for doc in docs if len(doc)]
    return [group for group in groups if there and not any(group in spans for spans in there)]


def remove_group(doc: Doc, name: str) -> None:
    if name in doc.spans:
        del doc.spans[name]


def group_entities(doc: Doc, name: str) -> List[Entity]:
    """Return a span group as plain tuples; empty if the Doc does not have it."""
    return [(span.start, span.end, span.label_) for span in doc.spans[name]] if name in doc.spans else []


def group_scores(doc: Doc, name: str) -> List[Optional[float]]:
    """Return the scores of a span group, in the order of its spans; None for spans without a score."""
    return _per_span(doc.spans[name], "scores") if name in doc.spans else []


def set_source(
    doc: Doc,
    source: str,
    entities: Sequence[Entity],
    scores: Optional[Sequence[Optional[float]]] = None,
    *,
    ids: Optional[EntityIds] = None,
    reliability: Optional[float] = None,
    complete: bool = False,
    terms: Optional[str] = None,
) -> SpanGroup:
    """Write the spans of a weak source to a Doc, replacing its earlier ones. They may overlap.

    reliability (Optional[float]): Probability that an entity of the source is right, as declared by the user.
    complete (bool): Whether tokens outside its entities are "O", as for a model that predicts all entities; a term list
        finds only its own terms.
    terms (Optional[str]): For a term list: the token attribute by which its terms are matched.
    """
    group = set_group(doc, weak_group(source), entities, scores, ids)
    group.attrs.update(source_attrs(reliability, complete, terms))
    return group


def source_attrs(
    reliability: Optional[float] = None, complete: bool = False, terms: Optional[str] = None
) -> Dict[str, Any]:
    """Return the declarations of a source as stored in the `attrs` of its span groups; see `set_source`."""
    known = None if reliability is None else float(reliability)
    declared = {"reliability": known, "complete": complete or None, "terms": terms}
    return {key: value for key, value in declared.items() if value is not None}


def get_reliability(doc: Doc, source: str) -> Optional[float]:
    """Return the declared reliability of a source that has labeled the Doc, or None if it declares none."""
    return doc.spans[weak_group(source)].attrs.get("reliability")


def is_complete(doc: Doc, source: str) -> bool:
    """Return True if a source that has labeled the Doc declares all tokens outside its spans to be "O"."""
    return bool(doc.spans[weak_group(source)].attrs.get("complete", False))


def terms_attr(doc: Doc, source: str) -> Optional[str]:
    """Return the token attribute by which a term list that labeled the Doc matches; None for other sources."""
    return doc.spans[weak_group(source)].attrs.get("terms")


def weak_group(source: str) -> str:
    return WEAK_PREFIX + source


def has_nested(doc: Doc) -> bool:
    """Return True if `aggregate --nested` has written labels."""
    return bool(SPANS_KEY in doc.spans and doc.spans[SPANS_KEY].attrs.get("weak"))


def weak_sources(doc: Doc) -> List[str]:
    """Return the weak sources that have labeled a Doc, sorted."""
    return sorted(name[len(WEAK_PREFIX) :] for name in doc.spans if name.startswith(WEAK_PREFIX))


def group_ids(doc: Doc, name: str) -> Dict[Entity, Tuple[str, ...]]:
    """Return the concept ids of the entities of a span group that have any, the best first."""
    if name not in doc.spans:
        return {}
    entities, every = group_entities(doc, name), _per_span(doc.spans[name], "ids")
    return {entity: tuple(ids) for entity, ids in zip(entities, every, strict=True) if ids}


def doc_ids(doc: Doc) -> Dict[Entity, Tuple[str, ...]]:
    """Return the concept ids of the entities in `doc.ents` that have one."""
    return {(ent.start, ent.end, ent.label_): (ent.kb_id_,) for ent in doc.ents if ent.kb_id}


def add_ids(doc: Doc, sources: Optional[Sequence[str]] = None) -> None:
    """Give each entity without an id the id of a source's span with the same bounds and label; see `source_ids`."""
    give_ids(doc, source_ids(doc, sources))


def source_ids(doc: Doc, sources: Optional[Sequence[str]] = None) -> Dict[Entity, Tuple[str, ...]]:
    """Return the concept ids of the spans of sources that have any, the best first; sources are ordered by trust.
    Without `sources`, all sources are used, in the order of their reliability."""
    if sources is None:
        sources = sorted(weak_sources(doc), key=lambda source: -(get_reliability(doc, source) or 0.0))
    ids: Dict[Entity, Tuple[str, ...]] = {}
    for group in map(weak_group, sources):
        if group in doc.spans and "ids" in doc.spans[group].attrs:
            ids = {**group_ids(doc, group), **ids}
    return ids


def give_ids(doc: Doc, ids: EntityIds) -> None:
    """Give each entity without an id the first of its ids."""
    for ent in doc.ents if ids else ():
        listed = ids.get((ent.start, ent.end, ent.label_))
        if listed and not ent.kb_id:
            for token in ent:
                token.ent_kb_id_ = listed[0]


def doc_entities(doc: Doc) -> List[Entity]:
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


# The sentence as a whole


def get_id(doc: Doc) -> Optional[str]:
    """Return the identifier that the sentence had in its source file."""
    return doc.user_data.get(_ID)


def set_id(doc: Doc, identifier: Optional[str]) -> None:
    _set(doc, _ID, identifier)


def is_annotated_text(doc: Doc) -> bool:
    """Return True if the Doc was read from an annotated text, whose offsets do not depend on tokens. Not stored in
    `.spacy` files."""
    return bool(doc.user_data.get(_TEXT, False))


def set_text(doc: Doc) -> None:
    _set(doc, _TEXT, True)


def is_weak(doc: Doc) -> bool:
    """Return True if the sentence's `doc.ents` are weak labels."""
    return bool(doc.user_data.get(_WEAK, False))


def set_weak(doc: Doc, weak: bool = True) -> None:
    _set(doc, _WEAK, True if weak else None)


def get_confidence(doc: Doc) -> Optional[float]:
    """Return the probability that the labels are right: 1 for gold, None for weak labels until it is estimated."""
    confidence: Optional[float] = doc.user_data.get(_CONFIDENCE)
    return 1.0 if confidence is None and not is_weak(doc) else confidence


def get_confidence_unit(doc: Doc) -> Optional[str]:
    """Return the unit of the confidence: "sentence" or "token"; None if unknown."""
    return doc.user_data.get(_UNIT)


def set_confidence(doc: Doc, confidence: Optional[float], unit: Optional[str] = None) -> None:
    """Set the confidence of a weak sentence, for the whole "sentence" or per "token"."""
    if confidence is not None and not 0.0 <= confidence <= 1.0:  # in many comparisons NaN would rank highest
        raise ValueError(f"a confidence must be a probability, not {confidence}")
    _set(doc, _CONFIDENCE, None if confidence is None else float(confidence))
    _set(doc, _UNIT, None if confidence is None else unit)


def get_tags(doc: Doc) -> Optional[List[Optional[str]]]:
    """Return a completed tag sequence that `doc.ents` cannot represent (B-x followed by I-y), or None."""
    return _get(doc, _TAGS, list)


def set_tags(doc: Doc, tags: Optional[Sequence[Optional[str]]]) -> None:
    _set(doc, _TAGS, None if tags is None else list(tags))


def get_soft_labels(doc: Doc) -> Optional[TagDistributions]:
    return _get(doc, _SOFT, lambda soft: TagDistributions(tuple(soft["labels"]), soft["scheme"], soft["probabilities"]))


def set_soft_labels(doc: Doc, soft: Optional[TagDistributions]) -> None:
    _set(doc, _SOFT, None if soft is None else {**soft._asdict(), "labels": list(soft.labels)})


def get_augmented(doc: Doc) -> Optional[List[str]]:
    """Return the words of the sentence's augmented form, one per token."""
    return _get(doc, _AUGMENTED, list)


def set_augmented(doc: Doc, words: Optional[Sequence[str]]) -> None:
    _set(doc, _AUGMENTED, None if words is None else list(words))


def get_meta(doc: Doc) -> Optional[Dict[str, Any]]:
    """Return the information shown to annotators about the sentence, or None."""
    return _get(doc, _META, dict)


def set_meta(doc: Doc, meta: Optional[Dict[str, Any]]) -> None:
    _set(doc, _META, None if meta is None else dict(meta))


def is_chosen(doc: Doc) -> bool:
    """Return True if `suggest` chose the sentence, so that it is not like the rest of the text."""
    return (get_meta(doc) or {}).get("chosen_by") == SUGGEST


def get_definitions(doc: Doc) -> List[Tuple[int, int, int, int]]:
    """Return the abbreviations that the text defines: start and end of the short form, then of the long form. Stored
    ones that do not fit the tokens are left out: the Doc may be a part of another, or its tokens were merged."""
    found = []
    for places in doc.user_data.get(_DEFINITIONS, ()):
        short, long = (doc.char_span(start, start + len(text)) for start, text in places)
        if short is not None and long is not None and [short.text, long.text] == [text for _, text in places]:
            found.append((short.start, short.end, long.start, long.end))
    return found


def set_definitions(doc: Doc, definitions: Sequence[Tuple[int, int, int, int]]) -> None:
    """Store the abbreviations that the text defines, given as `get_definitions` returns them: the first character and
    the text of both forms. Corpus files do not keep them: they hold for a whole document."""
    forms = [(doc[a:b], doc[c:d]) for a, b, c, d in definitions]
    _set(doc, _DEFINITIONS, [[(form.start_char, form.text) for form in pair] for pair in forms] or None)


def is_bare(doc: Doc) -> bool:
    """Return True if the Doc has only tokens, and possibly the mark that its labels are weak."""
    return not (doc.spans or doc.cats or doc.tensor.size) and doc.user_data.keys() <= {_WEAK}


def select_tokens(doc: Doc, part: Doc, tokens: NDArray[numpy.int64]) -> None:
    """Copy the stored data of a sentence to a Doc of some of its tokens."""
    part.user_data.update(stored_user_data(doc))
    for key in (_TAGS, _AUGMENTED):
        if key in part.user_data:
            part.user_data[key] = [part.user_data[key][i] for i in tokens]
    if _SOFT in part.user_data:
        soft = part.user_data[_SOFT]
        part.user_data[_SOFT] = {**soft, "probabilities": numpy.asarray(soft["probabilities"])[tokens]}


def stored_user_data(doc: Doc) -> Dict[str, Any]:
    """Return the part of `doc.user_data` that corpus files keep: only the keys of this module, since components leave
    large objects there (the output of a Transformer takes 1.8 kB per token)."""
    return {key: doc.user_data[key] for key in _STORED if key in doc.user_data}


def check_stored(doc: Doc) -> None:
    """Raise a `ValueError` if the stored data of a Doc from a file has an unexpected form."""
    _ = doc.ents  # fails if a label is invalid
    values = {key: doc.user_data.get(key) for key in _STORED}
    right = {key: value is None or _STORED[key](doc, value) for key, value in values.items()}
    right["cats"] = isinstance(doc.cats, dict) and all(
        isinstance(name, str) and isinstance(value, Real) and math.isfinite(float(value))
        for name, value in doc.cats.items()
    )
    right.update((name, _is_group(group)) for name, group in doc.spans.items() if name.startswith(_SCORED))
    wrong = [key for key, fine in right.items() if not fine]
    if wrong:
        raise ValueError(f"wrong contents of '{wrong[0]}'")


def _is_group(group: SpanGroup) -> bool:
    attrs = group.attrs
    ids, scores = attrs.get("ids", []), attrs.get("scores", [])
    return (
        # spaCy's spancat stores an array.
        _is_list(scores.tolist() if isinstance(scores, numpy.ndarray) else scores, (Real, type(None)))
        and _is_list(ids, (list, tuple))
        and all(_is_list(listed, (str,)) for listed in ids)
        and max(len(scores), len(ids)) <= len(group)  # spans that other code has appended have no values
        and isinstance(attrs.get("reliability"), (Real, type(None)))
        and isinstance(attrs.get("terms"), (str, type(None)))
    )


def _is_soft(doc: Doc, soft: Any) -> bool:
    labels: Any = soft.get("labels") if isinstance(soft, dict) else None
    return (
        _is_list(labels, (str,))
        and isinstance(soft.get("scheme"), str)
        and getattr(soft.get("probabilities"), "shape", None) == (len(doc), len(labels))
    )


def _is_list(value: Any, types: Tuple[type, ...]) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, types) for item in value)


def _get(doc: Doc, key: str, make: Callable[[Any], T]) -> Optional[T]:
    value = doc.user_data.get(key)  # lists read from a file are tuples
    return None if value is None else make(value)


def _set(doc: Doc, key: str, value: Any) -> None:
    if value is None:
        doc.user_data.pop(key, None)
    else:
        doc.user_data[key] = value


# The keys that corpus files keep, with checks of their values.
_STORED: Dict[str, Callable[[Doc, Any], bool]] = {
    _ID: lambda doc, value: isinstance(value, str),
    _WEAK: lambda doc, value: isinstance(value, bool),
    _CONFIDENCE: lambda doc, value: isinstance(value, (int, float)) and 0.0 <= value <= 1.0,
    _UNIT: lambda doc, value: isinstance(value, str),
    _TAGS: lambda doc, value: _is_list(value, (str, type(None))) and len(value) == len(doc),
    _SOFT: _is_soft,
    _AUGMENTED: lambda doc, value: _is_list(value, (str,)) and len(value) == len(doc),
    _META: lambda doc, value: isinstance(value, dict),
}
