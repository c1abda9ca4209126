"""The parts of a Doc that components read: its sentences, each as a separate Doc without white space.

White space is layout: "high blood pressure" is one phrase regardless of line breaks, but a blank line ends a sentence.
A Doc that is one sentence of visible tokens, as in training corpora, is itself its only part.
"""

from copy import copy
from itertools import islice
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy
from numpy.typing import NDArray
from spacy.attrs import ENT_IOB, ENT_TYPE, IS_SPACE, SENT_START
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import Ragged, to_numpy

from ..ty import BoolMask, Entity
from .docbin import COPIED, doc_of_words
from .entities import BEGINS, INSIDE
from .sentences import is_blank_line
from .tags import same_tokens
from .weak import is_known_group, select_attrs, select_tokens, set_spans

T = TypeVar("T")
Tokens = NDArray[numpy.int64]
_IOB, _TYPE = COPIED.index(ENT_IOB), COPIED.index(ENT_TYPE)


class Part(NamedTuple):
    """A sentence of a text: the Doc of its visible tokens, and the indices of these tokens in the text, ascending."""

    doc: Doc
    tokens: Tokens

    def entity(self, entity: Entity) -> Entity:
        """Return an entity of the sentence on the tokens of the text, including white space within it."""
        start, end, label = entity
        return int(self.tokens[start]), int(self.tokens[end - 1]) + 1, label

    @property
    def rows(self) -> Union[slice, Tokens]:
        """The tokens as an index of an array; a slice, which is faster on a GPU, if they are contiguous."""
        first, last = (int(self.tokens[0]), int(self.tokens[-1])) if len(self.tokens) else (0, -1)
        return slice(first, last + 1) if last - first + 1 == len(self.tokens) else self.tokens


# Combines a text, its parts and their results into the result of the text.
Merge = Callable[[Doc, List[Part], List[T]], T]


class Parts:
    """The parts of some texts, as `split_doc` returns them."""

    def __init__(self, texts: Sequence[Doc], parts: Sequence[List[Part]]) -> None:
        self.texts = list(texts)
        self._parts = list(parts)

    @classmethod
    def of(cls, texts: Iterable[Doc], sentences: bool = True) -> "Parts":
        """Split some texts; see `split_doc`."""
        texts = list(texts)
        return cls(texts, [split_doc(doc, sentences) for doc in texts])

    @property
    def are_whole(self) -> bool:
        """True if every text is itself its only part."""
        return all(map(_is_whole, self.texts, self._parts))

    @property
    def docs(self) -> List[Doc]:
        """All parts, text by text."""
        return [part.doc for parts in self._parts for part in parts]

    def share_encoding(self) -> None:
        """Give each part its rows of what a shared encoder has written for its text: `Doc.tensor` or, by
        spacy-transformers and spacy-curated-transformers, `Doc._.trf_data`."""
        has_data = Doc.has_extension("trf_data")
        for text, parts in zip(self.texts, self._parts, strict=True):
            if _is_whole(text, parts):
                continue
            if len(text.tensor) == len(text):
                for part in parts:
                    part.doc.tensor = text.tensor[part.rows]
            if has_data and text._.trf_data is not None:
                for part, data in zip(parts, _split_data(text._.trf_data, parts), strict=True):
                    part.doc._.trf_data = data

    def select(self, rows: Sequence[Any]) -> List[Any]:
        """Return the rows of each part; they may be views."""
        return [text[part.rows] for text, parts in zip(rows, self._parts, strict=True) for part in parts]

    def spread(self, rows: Sequence[Any], like: Sequence[Any]) -> List[Any]:
        """Return the rows of each text: the inverse of `select`, with zeros for white space."""
        result, given = [], iter(rows)
        for text, parts in zip(like, self._parts, strict=True):
            whole = text * 0
            for part in parts:
                part_rows = next(given)
                if len(part.tokens):  # without tokens, rows may have another width
                    whole[part.rows] = part_rows
            result.append(whole)
        return result

    def merge(self, results: Iterable[T], merge: Merge[T]) -> List[T]:
        """Merge the results of parts into one result per text."""
        given, merged = iter(results), []
        for doc, parts in zip(self.texts, self._parts, strict=True):
            found = list(islice(given, len(parts)))
            merged.append(found[0] if _is_whole(doc, parts) else merge(doc, parts, found))
        return merged


def _split_data(data: Any, parts: Sequence[Part]) -> Iterator[Any]:
    """Yield for each part a copy of the data of a Transformer with the rows of its tokens: `align` of
    spacy-transformers, or each layer of spacy-curated-transformers."""
    is_aligned = hasattr(data, "align")
    tables: List[Ragged] = [data.align] if is_aligned else data.all_outputs
    lengths = [to_numpy(table.lengths) for table in tables]
    ends = list(map(numpy.cumsum, lengths))
    for part in parts:
        rows = [_rows_of(*each, part.tokens) for each in zip(tables, lengths, ends, strict=True)]
        its = copy(data)
        if is_aligned:
            its.align = rows[0]
        else:
            its.all_outputs = rows
        yield its


def _rows_of(table: Ragged, lengths: Any, ends: Any, tokens: Any) -> Ragged:
    """Return the rows of some tokens in a table that has several rows for each."""
    n = lengths[tokens]
    inside = numpy.arange(n.sum()) - numpy.repeat(numpy.cumsum(n) - n, n)
    return Ragged(table.dataXd[numpy.repeat(ends[tokens] - n, n) + inside], n)


def _is_whole(doc: Doc, parts: List[Part]) -> bool:
    return len(parts) == 1 and parts[0].doc is doc


def merge_entities(parts: List[Part], entities: Iterable[Iterable[Entity]]) -> List[Entity]:
    """Return the entities of all parts, on the tokens of the text."""
    return [part.entity(entity) for part, found in zip(parts, entities, strict=True) for entity in found]


def split_doc(doc: Doc, sentences: bool = True) -> List[Part]:
    """Split a Doc at sentence starts and at blank lines, and leave white space out."""
    places = _places(doc, sentences)
    return [Part(doc, numpy.arange(len(doc)))] if places is None else list(map(Part, _take(doc, places), places))


def split_sentences(doc: Doc) -> List[Doc]:
    """Return the sentences of a text as separate Docs; none begins inside an entity or a span of a group."""
    places = _places(doc, True, inner_tokens(doc))
    return [doc] if places is None else _take(doc, places)


def inner_tokens(doc: Doc) -> BoolMask:
    """Return a mask of the tokens that continue an entity or a span of one of this package's groups (others may be
    of paragraphs)."""
    joined: BoolMask = doc.to_array(ENT_IOB) == INSIDE
    for name, group in doc.spans.items():
        for span in group if is_known_group(name) else ():
            joined[span.start + 1 : span.end] = True
    return joined


def _places(doc: Doc, sentences: bool, joined: Optional[BoolMask] = None) -> Optional[List[Tokens]]:
    """Return the tokens of each part, so that no part begins with a `joined` token, which continues the token before
    it. Return None if the Doc is itself its only part."""
    columns: Any = doc.to_array([IS_SPACE, SENT_START])
    is_space, starts = columns[:, 0] != 0, columns[:, 1] == 1
    starts[:1] = False
    if not is_space.any() and not (sentences and starts.any()):
        return None
    starts[blank_lines(doc, is_space)] = True
    if joined is not None:
        starts &= ~joined
    number = numpy.cumsum(starts) if sentences else numpy.zeros(len(doc), dtype="int64")
    visible = numpy.flatnonzero(~is_space)
    return numpy.split(visible, numpy.flatnonzero(numpy.diff(number[visible])) + 1) if len(visible) else []


def blank_lines(doc: Doc, is_space: BoolMask) -> List[int]:
    """Return the tokens that complete a blank line. No phrase extends across a blank line."""
    found, run, last = [], "", -1
    for i in numpy.flatnonzero(is_space).tolist():
        run, last = (run if i == last + 1 else "") + doc[i].text, i
        if is_blank_line(run):
            found.append(i)
    return found


def split_examples(examples: Iterable[Example], sentences: bool = True) -> Tuple[Parts, List[Example]]:
    """Split examples at the sentences of their predicted Docs. No part begins inside an entity or a token of the
    reference."""
    texts, parts, split = [], [], []
    for example in examples:
        predicted = example.predicted
        texts.append(predicted)
        if _places(predicted, sentences) is None:
            parts.append([Part(predicted, numpy.arange(len(predicted)))])
            split.append(example)
            continue
        places, theirs = _example_places(example, sentences)
        docs = _take(predicted, places)
        parts.append(list(map(Part, docs, places)))
        split += [Example(*pair) for pair in zip(docs, _take(example.reference, theirs), strict=True)]
    return Parts(texts, parts), split


def _example_places(example: Example, sentences: bool) -> Tuple[List[Tokens], List[Tokens]]:
    """Return the tokens of the predicted Doc and of the reference that belong to each part."""
    predicted, reference = example.predicted, example.reference
    inside = reference.to_array(ENT_IOB) == INSIDE
    if same_tokens(predicted, reference):
        places = _places(predicted, sentences, inside) or []
        return places, places
    aligned = [example.alignment.x2y[i] for i in range(len(predicted))]
    # Tokens that continue a token or an entity of the reference.
    joined: BoolMask = numpy.zeros(len(aligned), dtype=bool)
    last = -1
    for i, tokens in enumerate(aligned):
        if len(tokens):
            joined[i] = tokens[0] <= last or inside[tokens[0]]
            last = max(last, int(tokens[-1]))
    places = _places(predicted, sentences, joined) or []
    hidden = numpy.flatnonzero(reference.to_array(IS_SPACE))
    every = [numpy.concatenate([aligned[i] for i in tokens.tolist()]) for tokens in places]
    return places, [numpy.setdiff1d(found, hidden).astype("int64") for found in every]


def _take(doc: Doc, places: Sequence[Tokens]) -> List[Doc]:
    """Return one Doc for each set of tokens. The sets are disjoint."""
    values: Any = doc.to_array(COPIED)
    entity = (values[:, _IOB] == INSIDE) | ((values[:, _IOB] == BEGINS) & (values[:, _TYPE] != 0))
    # The number of its entity shows whether a token continues the entity of the token that now precedes it.
    number = numpy.where(entity, numpy.cumsum(values[:, _IOB] == BEGINS), 0)
    docs = []
    for tokens in places:
        rows, numbers = values[tokens], number[tokens]
        begins = (numbers != 0) & (numpy.diff(numbers, prepend=0) != 0)
        rows[begins, _IOB] = BEGINS
        rows[:, 1] |= numpy.diff(tokens, append=tokens[-1:] + 1) > 1  # where white space was
        rows[-1:, 1] = 0
        part = doc_of_words(doc.vocab, rows[:, 0].tolist(), COPIED, rows)
        part.cats = dict(doc.cats)
        select_tokens(doc, part, tokens)
        docs.append(part)
    _take_groups(doc, docs, places)
    return docs


def _take_groups(doc: Doc, parts: List[Doc], places: Sequence[Tokens]) -> None:
    if not doc.spans:
        return
    # The part of each token, and the token's place in it.
    place = {int(i): (n, k) for n, tokens in enumerate(places) for k, i in enumerate(tokens)}
    for name, group in doc.spans.items():
        spans: List[List[Span]] = [[] for _ in parts]
        kept: List[List[int]] = [[] for _ in parts]
        for i, span in enumerate(group):
            inside = [place[j] for j in range(span.start, span.end) if j in place]
            if inside and inside[0][0] == inside[-1][0]:
                n, low = inside[0]
                spans[n].append(Span(parts[n], low, low + len(inside), label=span.label, kb_id=span.kb_id))
                kept[n].append(i)
        for n, part in enumerate(parts):
            attrs = select_attrs(group, kept[n])
            if "missing" in attrs:  # tokens without annotation
                attrs["missing"] = numpy.flatnonzero(numpy.isin(places[n], attrs["missing"])).tolist()
            set_spans(part, name, spans[n], attrs)
