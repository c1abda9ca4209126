"""The component that looks up terms and writes the matches as weak labels."""

import json
import warnings
import zlib
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

import numpy
import srsly
from spacy import util
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from ..corpus.parts import blank_lines
from ..corpus.sentences import INNER_END
from ..corpus.weak import set_spans, source_attrs, weak_group
from ..errors import Errors, Warnings, WeaknerError
from ..files import atomic_path, existing, parse_json, reading_stored
from ..heads.factories import default_config, takes_settings_of
from ..progress import Progress
from ..training.batches import BatchPipe
from ..ty import Entity, Hashes, Ints
from .array_file import ArrayFile, open_arrays
from .columns import ColumnBuilder, TableSettings, TermColumns
from .entities import SHORTER, annotate_entities
from .forms import FORM, Forms
from .table import AMBIGUITY, MatchTable, TermTable, UniqueMatches
from .terms import (
    ACRONYM_LENGTH,
    NEVER,
    Term,
    TermInput,
    TermKey,
    iter_terms,
    make_term_list,
    rejected_keys,
    term_key,
    term_row,
)
from .tokenizing import PipelineReference, attr_values, raw_values, tokenize_terms

ATTRS = (FORM, "ORTH", "LOWER", "NORM", "LEMMA")
TABLE_FILE = "terms.safetensors"
SOURCE_FILE = "terms.jsonl"


class GazetteerRuler(BatchPipe):
    """A component that looks up terms in Docs.

    Every match of every label becomes a span of the group `weak:<source>`, including overlapping matches; a Doc without
    matches gets an empty group. `doc.ents` does not change unless `annotate_ents` is set: later stages resolve
    conflicts, and decide whether the other tokens are "O" or missing.

    A term that is given as a token pattern of ORTH or TEXT matches in exact case only. Terms that are declared never to
    be entities (`"binding": "never"`) are not matched, and neither are equal ones with their label, whichever is added
    first.
    The `span.kb_id_` of a match, which is also its `span.ent_id_`, is the first of the term's ids in the order of the
    whole list; the `attrs` of the group have all ids of each match under "ids" (with `ambiguity` "first", only this
    one).

    Terms are tokenized like texts. White space is ignored in terms and texts, but a blank line ends a match. The rule
    for short acronyms applies to every attribute except ORTH, since lower forms, norms and (mostly) lemmas ignore case.
    Settings are applied when terms are added or loaded; `attr` is fixed after that.

    A stored pipeline contains the compiled table (`terms.safetensors`), which is mapped into memory when it is loaded,
    and the list of terms (`terms.jsonl`).

    vocab (Vocab): The shared vocabulary.
    name (str): Name of the component.
    terms (Optional[TermInput]): Terms, as in `add_terms`. They are compiled when they are first needed, and not for a
        stored pipeline, which has them.
    path (Optional[Path]): Or a file of terms, as in `spacy_weakner.TermList.v1`.
    label (Optional[str]): Label of those of these terms that have none.
    source (str): Name of the weak source; the span group is called `weak:<source>`.
    attr (str): The attribute to compare: "FORM" (lower case, with apostrophes, hyphens, ligatures and accents
        normalized, without soft hyphens and zero-width signs), or spaCy's "ORTH" (exact), "LOWER", "NORM" or "LEMMA".
    acronym_length (int): Terms with at most this number of characters and an upper-case letter after the first one
        ("AIDS", "pH") match in exact case only, for any `attr`. 0 disables the rule.
    stop (Optional[List[str]]): Terms that are not matched, in any case and with any white space.
    min_length (int): Terms with fewer characters are not matched.
    ambiguity (str): The labels of a phrase with several labels: "all", only the "first" in the order of the terms (but
        acronyms in exact case come before other terms), or none ("drop").
    label_names (Optional[Dict[str, str]]): Labels to keep, each with its new name; None: all labels, with their names.
        Matches of other labels are removed after `ambiguity` is applied.
    reliability (Optional[float]): Estimated probability that a match is right; stored with the span group for the
        stages that combine sources.
    annotate_ents (bool): Also write matches to `doc.ents`; where they overlap, the longest one. Use this in a pipeline
        that predicts entities with a term list, not to make weak labels.
    overwrite (Union[bool, str]): Whether to replace existing entities in `doc.ents`. If not, they are kept, and matches
        are added between them. "shorter": where both overlap, the longest is kept, and of equally long ones the match.
    scorer (Optional[Callable]): The scoring method, used if entities are written.
    nlp (Optional[Language]): The pipeline whose tokenizer tokenizes terms, if no other is given with them.
    RAISES (WeaknerError): If a setting is out of range.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str = "gazetteer_ruler",
        *,
        terms: Optional[TermInput] = None,
        path: Optional[Path] = None,
        label: Optional[str] = None,
        source: str = "gazetteer",
        attr: str = FORM,
        acronym_length: int = ACRONYM_LENGTH,
        stop: Optional[List[str]] = None,
        min_length: int = 1,
        ambiguity: str = "all",
        label_names: Optional[Dict[str, str]] = None,
        reliability: Optional[float] = None,
        annotate_ents: bool = False,
        overwrite: Union[bool, str] = False,
        scorer: Optional[Callable] = None,
        nlp: Optional[Language] = None,
    ) -> None:
        if terms is not None and path is not None:
            raise WeaknerError(Errors.WK331.format(setting="path", where="without 'terms'", instead=", or 'terms'"))
        _check("source", source, bool(source), "a name")
        _check("attr", attr, attr in ATTRS, f"one of {', '.join(ATTRS)}")
        _check("acronym_length", acronym_length, acronym_length >= 0, "0 or more characters")
        _check("min_length", min_length, min_length >= 1, "1 or more characters")
        _check("ambiguity", ambiguity, ambiguity in AMBIGUITY, f"one of {', '.join(AMBIGUITY)}")
        _check("reliability", reliability, reliability is None or 0 < reliability <= 1, "none, or above 0 and up to 1")
        _check("overwrite", repr(overwrite), overwrite in (True, False, SHORTER), f"true, false or '{SHORTER}'")
        self.vocab = vocab
        self.name = name
        self.source = source
        self.attr = attr
        self.acronym_length = acronym_length
        self.stop = list(stop or ())
        self.min_length = min_length
        self.ambiguity = ambiguity
        self.label_names = label_names
        self.reliability = reliability
        self.annotate_ents = annotate_ents
        self.overwrite = overwrite
        self.scorer = scorer if annotate_ents else None
        self._never: Set[TermKey] = set()  # keys of terms that are never entities: there may be no others
        self._pipeline = PipelineReference(nlp)
        self._forms, self._cased = Forms(vocab.lang), Forms(vocab.lang, cased=True)
        self._use(TermTable.build(ColumnBuilder().columns(), self._settings()))
        self._given: Optional[TermInput] = None if path is None else make_term_list(path, label)
        if terms is not None:
            reader = partial(iter_terms, terms, name, label)
            self._given = reader if callable(terms) else list(reader())

    @property
    def _table(self) -> TermTable:
        if self._given is not None:
            self.initialize()
        return self._compiled_table

    @property
    def hide_labels(self) -> bool:
        """RETURNS (bool): True until a given file is read: spaCy reads the labels of all components while it loads a
        pipeline, before the stored terms, and the file may be gone."""
        return callable(self._given)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _ = self._table  # compiled by the pipeline, which is not pickled
        return super().__reduce_ex__(protocol)

    # Matching

    def match(self, doc: Doc) -> List[Entity]:
        """Find all matches in a Doc, without changing it.

        doc (Doc): The Doc.
        RETURNS (List[Entity]): (start, end, label), sorted.
        RAISES (WeaknerError): If there are no terms, or `attr` is LEMMA and the Doc has no lemmas.
        """
        return next(self.match_docs([doc]))

    def match_docs(self, docs: Sequence[Doc]) -> Iterator[List[Entity]]:
        """Find all matches in each of several Docs, like `match`."""
        found = self._found(docs)
        rows = zip(found.starts, found.ends, found.labels, strict=True)
        return (list(islice(rows, n)) for n in found.counts)

    def match_ids(self, docs: Sequence[Doc]) -> Iterator[Dict[Entity, Tuple[str, ...]]]:
        """Find all matches in each of several Docs, with the ids of each match in the order of the list."""
        found = self._found(docs)
        ids = map(tuple, found.ids or [[]] * len(found.labels))
        rows = zip(zip(found.starts, found.ends, found.labels, strict=True), ids, strict=True)
        return (dict(islice(rows, n)) for n in found.counts)

    def _found(self, docs: Sequence[Doc]) -> UniqueMatches:
        return self._table.described(self.match_batch(docs), len(docs), self.label_names)

    def match_batch(self, docs: Sequence[Doc]) -> MatchTable:
        """Find all matches as arrays, before `label_names` is applied. Raises an error for Docs whose vocabulary lacks
        the compared attribute."""
        if self._table.is_empty and not self._never:
            raise WeaknerError(Errors.WK202.format(name=self.name))
        begins = numpy.cumsum([0, *map(len, docs)])
        # shape: (n_tokens, 3): the compared value, its value in exact case, and whether the token is white space.
        values = numpy.concatenate([numpy.zeros((0, 3), dtype="uint64"), *map(self._values, docs)])
        if self.attr == FORM and len(values):
            words, places = numpy.unique(values[:, 1], return_inverse=True)
            stores = {doc.vocab.strings for doc in docs}
            for column, forms in enumerate([self._forms, *[self._cased] * self._table.has_exact]):
                values[:, column] = forms(words, *stores)[places]
        elif len(values) and not values[: begins[begins > 0][0], 0].any():
            raise WeaknerError(Errors.WK205.format(name=self.name, attr=self.attr))
        kept = _compared_tokens(docs, begins, values)
        compared = values[kept, :2] if self._table.has_exact else values[kept, 0]
        firsts = numpy.searchsorted(kept, begins)
        found = self._table.find(compared, firsts)
        # Map indices of compared tokens back to those of the Docs' tokens.
        first, begin = firsts[found.sequences], begins[found.sequences]
        starts, ends = kept[first + found.starts] - begin, kept[first + found.ends - 1] + 1 - begin
        return found._replace(starts=starts, ends=ends)

    def _values(self, doc: Doc) -> Hashes:
        if self.attr == "LEMMA":
            lemmas = attr_values(doc, self.attr, self.name, self._forms)
            return numpy.column_stack([lemmas, raw_values(doc, ["ORTH", "IS_SPACE"])])
        return raw_values(doc, ["ORTH" if self.attr == FORM else self.attr, "ORTH", "IS_SPACE"])

    def annotate(self, docs: List[Doc]) -> None:
        group, attrs = weak_group(self.source), source_attrs(self.reliability)
        found = self._found(docs)
        firsts = [listed[0] if listed else "" for listed in found.ids]
        # Added again for every batch: a label that is also a word of a text is removed with it after a memory zone. A
        # Doc may have another vocabulary than the component.
        stores: Any = {doc.vocab.strings for doc in docs}
        texts, hashes = dict.fromkeys((*found.labels, *firsts)), {}
        for strings in stores:
            hashes = {text: strings.add(text, allow_transient=False) for text in texts}
        labels = [hashes[label] for label in found.labels]
        kb_ids = [hashes[first] for first in firsts] or [0] * len(labels)
        rows, ids = zip(found.starts, found.ends, labels, kb_ids, strict=True), iter(found.ids)
        for doc, n in zip(docs, found.counts, strict=True):
            spans = [
                Span(doc, start, end, label, kb_id=kb_id, span_id=kb_id) for start, end, label, kb_id in islice(rows, n)
            ]
            listed = {"ids": list(islice(ids, n))} if self.has_ids else {}
            set_spans(doc, group, spans, {**attrs, **listed})
            if self.annotate_ents:
                annotate_entities(doc, spans, self.overwrite)

    # Terms

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels of all terms that the settings do not exclude, sorted."""
        if isinstance(self._given, list):  # not compiled: spaCy asks before it loads the tokenizer
            labels = [term.label for term in self._given if term.binding != NEVER]
        else:
            labels = self._table.labels
        if self.label_names is not None:
            labels = [self.label_names[label] for label in labels if label in self.label_names]
        return tuple(sorted({*labels}))

    @property
    def terms(self) -> List[Term]:
        """RETURNS (List[Term]): All terms in the order in which they were added, including excluded ones."""
        return list(self._table.columns.terms())

    @property
    def patterns(self) -> List[Dict[str, Any]]:
        """RETURNS (List[Dict[str, Any]]): All terms as rows of spaCy's rulers: "label", "pattern", and "id" if any."""
        rows = map(term_row, self._table.columns.terms())
        return [{"pattern" if key == "term" else key: value for key, value in row.items()} for row in rows]

    def __len__(self) -> int:
        """RETURNS (int): The number of terms."""
        return len(self._table.columns)

    def __bool__(self) -> bool:
        return True  # as a component, also without terms

    def __contains__(self, label: object) -> bool:
        """RETURNS (bool): True if a term has this label."""
        return any(term.label == label for term in self._table.columns.terms())

    @property
    def divided_names(self) -> Iterator[str]:
        """YIELDS (str): The terms that may contain the end of a sentence ("Yahoo! Inc.", but also "St. Louis")."""
        return (term.text for term in self._table.columns.terms() if INNER_END.search(term.text))

    @property
    def has_ids(self) -> bool:
        """RETURNS (bool): True if a term has an id."""
        return self._table.concepts.has_ids

    def preferred_name(self, identifier: str) -> str:
        """Return the preferred name of an id: the first one in the list, else its first term; "" for an unknown id."""
        return self._table.columns.preferred_name(identifier)

    def initialize(
        self,
        get_examples: Optional[Callable[[], Iterable[Example]]] = None,
        *,
        nlp: Optional[Language] = None,
        terms: Optional[TermInput] = None,
        label: Optional[str] = None,
    ) -> None:
        """Read the terms, replacing earlier ones. Without `terms`, terms that were added before are kept.

        get_examples (Optional[Callable[[], Iterable[Example]]]): Not used.
        nlp (Optional[Language]): The pipeline whose tokenizer tokenizes the terms; None: the one that the component was
            created in.
        terms (Optional[TermInput]): The terms: a reader such as `spacy_weakner.TermList.v1`, or terms in a form that
            `add_terms` accepts.
        label (Optional[str]): Label of terms that have none.
        RAISES (WeaknerError): If there are no terms, one is malformed, or the settings exclude all of them.
        """
        if terms is None and self._given is not None:
            terms = self._given
        columns, never = (self._table.columns, self._never) if terms is None else self._tokenized(terms, label, nlp)
        if not len(columns) and not never:
            raise WeaknerError(Errors.WK202.format(name=self.name))
        self._compile(columns, never)

    def add_terms(self, terms: TermInput, nlp: Optional[Language] = None, *, label: Optional[str] = None) -> None:
        """Add terms, and compile the table again.

            ruler = nlp.add_pipe("gazetteer_ruler")
            ruler.add_terms(["aspirin", "ibuprofen", ("DISEASE", "asthma")], label="DRUG")
            ruler.add_terms({"DRUG": ["aspirin", "ibuprofen"], "DISEASE": ["asthma"]})

        terms (TermInput): A list of strings, of pairs (label, term) or triples (label, term, id), with the label first
            as in `Term`, or of rows `{"label", "term"}`, which may be mixed; a dictionary from labels to lists of terms
            (not from terms to labels, since a term may have several); or a reader.
        nlp (Optional[Language]): The pipeline whose tokenizer tokenizes the terms; None: the one that the component was
            created in.
        label (Optional[str]): Label of terms that have none.
        RAISES (WeaknerError): If a term is malformed or has no label, or the settings exclude all of them.
        """
        new, never = self._tokenized(terms, label, nlp)
        self._check_selection(new)
        self._compile(self._table.columns.plus(new), self._never | never)

    def add_patterns(self, patterns: Sequence[Dict[str, Any]]) -> None:
        """Add rows of spaCy's rulers, whose patterns must be phrases; see `add_terms`."""
        self.add_terms(patterns)

    def remove(self, label: str) -> None:
        """Remove all terms of a label, like spaCy's `SpanRuler`; raises an error if there are none."""
        self._remove(lambda term: term.label == label, f"the label '{label}' (remove_by_id removes those of an id)")

    def remove_by_id(self, id: str) -> None:
        """Remove all terms of an id, like spaCy's `SpanRuler`; raises an error if there are none."""
        self._remove(lambda term: term.id == id, f"the id '{id}'")

    def _remove(self, is_removed: Callable[[Term], bool], what: str) -> None:
        left = _without(self._table.columns, is_removed)
        if len(left) == len(self):
            raise WeaknerError(Errors.WK012.format(name=self.name, what=what))
        self._compile(left, self._never)

    def _use(self, table: TermTable) -> None:
        """Set the table. Its labels stay in the vocabulary even if they first occur as words in a memory zone."""
        self._compiled_table = table
        self._given = None
        strings: Any = self.vocab.strings
        for label in self.labels:
            strings.add(label, allow_transient=False)

    def _compile(self, columns: TermColumns, never: Set[TermKey]) -> None:
        if never:
            columns = _without(columns, lambda term: term_key(term) in never)
        self._check_selection(columns)
        self._use(TermTable.build(columns, self._settings()))
        self._never = never

    def _check_selection(self, columns: TermColumns) -> None:
        sizes = columns.select(self._settings()).sizes()
        if len(columns) and not sizes["plain"] and not sizes["exact"]:
            raise WeaknerError(Errors.WK204.format(name=self.name, count=len(columns), **sizes))
        util.logger.info(
            "'%(name)s': %(n)d terms, %(exact)d of them in exact case only; skipped: %(stop)d on the stop list, "
            "%(short)d shorter than %(least)d characters, %(empty)d without tokens",
            {"name": self.name, "n": len(columns), "least": self.min_length, **sizes},
        )

    def _settings(self) -> TableSettings:
        return TableSettings(self.acronym_length, list(self.stop), self.min_length, self.ambiguity)

    def _tokenized(
        self, terms: TermInput, label: Optional[str], nlp: Optional[Language]
    ) -> Tuple[TermColumns, Set[TermKey]]:
        """Return the terms, and the keys of those that are never entities."""
        self._pipeline = self._pipeline if nlp is None else PipelineReference(nlp)
        pipeline = self._pipeline()
        if pipeline is None:
            raise ValueError(
                f"'{self.name}' does not know its pipeline, whose tokenizer its terms need (it was created without "
                "one, pickled, or sourced from one that is gone): pass nlp=nlp."
            )
        # Lemmas come from the components before this one or, if it is in no pipeline, from all components.
        names = [name for name, _ in pipeline.pipeline]
        position = next((i for i, (_, pipe) in enumerate(pipeline.pipeline) if pipe is self), len(names))
        never: Set[TermKey] = set()

        def allowed() -> Iterator[Term]:
            for term in iter_terms(terms, self.name, label):
                if term.binding == NEVER:
                    never.update(rejected_keys(term))
                else:
                    yield term

        read = Progress(allowed(), desc=self.source, unit="term")
        return tokenize_terms(read, pipeline, self.attr, names[position:], self.name), never

    # Serialization. Settings are not stored here: they belong to the config, which may be overridden at load time.

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the terms and their table; `exclude` may name "cfg" and "terms"."""
        serializers = {"cfg": lambda: srsly.json_dumps(self._cfg()), "terms": lambda: self._table.to_bytes()}
        data: bytes = util.to_bytes(serializers, exclude)
        return data

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "GazetteerRuler":
        """Load the output of `to_bytes`, replacing earlier terms. Raises an error for data that are damaged or were
        made for another `attr`."""
        load = partial(ArrayFile, name=f"the table of '{self.name}'")
        util.from_bytes(bytes_data, {"cfg": self._check_cfg, "terms": lambda data: self._load(load(data))}, exclude)
        return self

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write a folder with the compiled table and the terms as a list; `exclude` may name "cfg" and "terms"."""
        serializers = {"cfg": lambda p: srsly.write_json(p, self._cfg()), TABLE_FILE: self._write_terms}
        util.to_disk(path, serializers, exclude)

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "GazetteerRuler":
        """Load the output of `to_disk`, replacing earlier terms. The table is mapped into memory instead of read.

        RAISES (WeaknerError): If a file is missing or damaged, the list of terms was changed since the table was
            compiled, or the terms were tokenized for another `attr`.
        """
        deserializers: Dict[str, Callable[[Path], Any]] = {
            "cfg": lambda p: self._check_cfg(existing(p).read_bytes()),
            TABLE_FILE: lambda p: self._load(self._open_terms(p)),
        }
        util.from_disk(path, deserializers, exclude)
        return self

    def _write_terms(self, path: Path) -> None:
        crc = 0
        with atomic_path(path.with_name(SOURCE_FILE)) as temporary, temporary.open("wb") as file_:
            for term in self._table.columns.terms():
                line = json.dumps(term_row(term), ensure_ascii=False).encode("utf-8") + b"\n"
                crc = zlib.crc32(line, crc)
                file_.write(line)
        self._table.to_file(path, {"source_crc32": crc})

    def _open_terms(self, path: Path) -> ArrayFile:
        table, source = open_arrays(path), existing(path.with_name(SOURCE_FILE))
        crc = 0
        with source.open("rb") as file_:
            while chunk := file_.read(1 << 20):
                crc = zlib.crc32(chunk, crc)
        if table.meta.get("source_crc32") != crc:
            raise WeaknerError(Errors.WK800.format(name=self.name, reason=f"its table was not compiled from {source}"))
        return table

    def _cfg(self) -> Dict[str, Any]:
        _ = self._table  # given terms are compiled
        # The stored tokens are valid for this attribute only.
        return {"attr": self.attr, **({"never": sorted(self._never)} if self._never else {})}

    def _check_cfg(self, data: bytes) -> None:
        with reading_stored(self.name):
            stored = parse_json(data)
            attr, self._never = stored["attr"], {(label, text) for label, text in stored.get("never", ())}
        if attr != self.attr:
            what, there = f"The terms of '{self.name}' were tokenized", f"attr = {attr}"
            raise WeaknerError(Errors.WK020.format(what=what, there=there, here=f"attr = {self.attr}"))

    def _load(self, table: ArrayFile) -> None:
        self._use(TermTable.from_file(table, self._settings()))
        if self._table.is_empty:
            self._check_selection(self._table.columns)


def _without(columns: TermColumns, is_removed: Callable[[Term], bool]) -> TermColumns:
    kept = [row for row, term in enumerate(columns.terms()) if not is_removed(term)]
    return columns.take(numpy.asarray(kept, dtype="int64"))


def _compared_tokens(docs: Sequence[Doc], begins: Ints, values: Hashes) -> Ints:
    """Return the tokens to compare: the visible ones, and blank lines, which are in no term and so end a match."""
    is_space = values[:, 2] != 0
    dropped = is_space | (values[:, 0] == 0)
    for n in numpy.unique(numpy.searchsorted(begins, numpy.flatnonzero(is_space), side="right") - 1).tolist():
        lines = blank_lines(docs[n], is_space[begins[n] : begins[n + 1]])
        dropped[begins[n] + numpy.asarray(lines, dtype="int64")] = False
    return numpy.flatnonzero(~dropped)


def _check(setting: str, value: Any, is_fine: bool, expected: str) -> None:
    if not is_fine:
        raise WeaknerError(Errors.WK005.format(setting=setting, value=repr(value), expected=expected))


@Language.factory(
    "gazetteer_ruler",
    assigns=["doc.spans", "doc.ents", "token.ent_iob", "token.ent_type", "token.ent_kb_id", "token.ent_id"],
    default_config=default_config(GazetteerRuler, stop=[]),
)
@takes_settings_of(GazetteerRuler)
def make_gazetteer_ruler(nlp: Language, name: str, **settings: Any) -> GazetteerRuler:
    """Create the component with the settings of `GazetteerRuler`; warn if another one writes the same span group."""
    ruler = GazetteerRuler(nlp.vocab, name=name, **settings, nlp=nlp)
    for other, pipe in nlp.components:
        if isinstance(pipe, GazetteerRuler) and pipe.source == ruler.source:
            message = Warnings.WK905.format(name=name, other=other, source=ruler.source)
            warnings.warn(message, stacklevel=2)
    return ruler
