"""The component that looks up terms and writes what it finds as weak labels."""

from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

import numpy
import srsly
from numpy.typing import NDArray
from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ..annotations.weak import set_group, weak_group
from ..errors import Errors, WeaknerError
from ..ty import Entity
from .entries import Entry, SortedEntries, has_inner_capital, sort_entries
from .matcher import TermTable
from .terms import Term, TermSource, iter_terms

ATTRS = ("ORTH", "LOWER", "NORM", "LEMMA")


@Language.factory(
    "gazetteer_ruler",
    assigns=["doc.spans"],
    default_config={
        "source": "gazetteer",
        "attr": "LOWER",
        "acronym_length": 5,
        "stop": [],
        "min_length": 1,
    },
)
def make_gazetteer_ruler(
    nlp: Language, name: str, source: str, attr: str, acronym_length: int, stop: List[str], min_length: int
) -> "GazetteerRuler":
    """Create a GazetteerRuler: looks up terms and writes all that it finds to the span group `weak:<source>`.

    source (str): Name of the weak source; the span group is called `weak:<source>`.
    attr (str): What is compared: "ORTH", "LOWER", "NORM" or "LEMMA".
    acronym_length (int): A term of at most so many characters with an upper-case letter after its first one
        ("AIDS", "pH") must match in exact case, whatever `attr` is. 0 switches the rule off.
    stop (List[str]): Terms that are not to be matched, in any case.
    min_length (int): Terms with fewer characters are not matched.
    RETURNS (GazetteerRuler): The component.
    """
    return GazetteerRuler(
        nlp.vocab,
        name,
        source=source,
        attr=attr,
        acronym_length=acronym_length,
        stop=stop,
        min_length=min_length,
    )


class GazetteerRuler(Pipe):
    """Look up terms in Docs.

    Every match of every label becomes a span of the group `weak:<source>`, matches that overlap included; a
    Doc without matches gets an empty group. `doc.ents` stays as it is: how matches that conflict are settled,
    and whether the other tokens count as "O" or as unknown, is for a later stage to decide.

    Terms are tokenised like texts. White space tokens inside a term are dropped; one in a text ends a match.
    The rule for short acronyms holds for every attribute but ORTH, since lower forms, norms and (mostly)
    lemmas ignore case. Settings are applied when terms are added or loaded; `attr` stays fixed after that.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str = "gazetteer_ruler",
        *,
        source: str = "gazetteer",
        attr: str = "LOWER",
        acronym_length: int = 5,
        stop: Sequence[str] = (),
        min_length: int = 1,
    ) -> None:
        """Initialise a GazetteerRuler.

        vocab (Vocab): The shared vocabulary.
        name (str): Name of the component.
        source, attr, acronym_length, stop, min_length: See `make_gazetteer_ruler`.
        RAISES (WeaknerError): If a setting is out of range.
        """
        _check("source", source, bool(source), "a name")
        _check("attr", attr, attr in ATTRS, f"one of {', '.join(ATTRS)}")
        _check("acronym_length", acronym_length, acronym_length >= 0, "0 or more characters")
        _check("min_length", min_length, min_length >= 1, "1 or more characters")
        self.vocab = vocab
        self.name = name
        self.source = source
        self.attr = attr
        self.acronym_length = acronym_length
        self.stop = list(stop)
        self.min_length = min_length
        self._replace({}, ())

    # Matching

    def __call__(self, doc: Doc) -> Doc:
        """Write the matches to a Doc, replacing those of an earlier call.

        doc (Doc): The Doc.
        RETURNS (Doc): The same Doc.
        """
        set_group(doc, weak_group(self.source), self.match(doc))
        return doc

    def match(self, doc: Doc) -> List[Entity]:
        """Find all matches in a Doc, without writing anything.

        doc (Doc): The Doc.
        RETURNS (List[Entity]): (start, end, label), sorted.
        RAISES (WeaknerError): If there are no terms, or `attr` is LEMMA and the Doc has no lemmas.
        """
        if not self._entries:
            raise WeaknerError(Errors.WK202.format(name=self.name))
        found = self._table.find(self._ids(doc))
        if len(self._exact):
            found = sorted({*found, *self._exact.find(_values(doc, "ORTH"))})
        return found

    def _ids(self, doc: Doc) -> NDArray[numpy.uint64]:
        ids = _values(doc, self.attr)
        if self.attr == "LEMMA" and not ids.all():
            if not ids.any() and not _values(doc, "IS_SPACE").all():
                raise WeaknerError(Errors.WK203.format(name=self.name))
            # A lemmatizer may know some words only: the others stand for themselves, in terms as in texts.
            ids = numpy.where(ids == 0, _values(doc, "ORTH"), ids)
        return ids

    # Terms

    @property
    def labels(self) -> Tuple[str, ...]:
        """The labels of the terms, sorted."""
        return tuple(sorted(self._labels))

    @property
    def label_data(self) -> List[str]:
        """The labels in the form that `initialize` takes."""
        return list(self.labels)

    @property
    def terms(self) -> List[Term]:
        """All terms in the order in which they were added, also those that the settings rule out."""
        return list(self._entries)

    def initialize(  # type: ignore[override]
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language,
        terms: Optional[TermSource] = None,
        labels: Optional[List[str]] = None,
    ) -> None:
        """Read the terms, in place of any from before. Without `terms`, those that were added before stay.

        get_examples (Callable[[], Iterable[Example]]): Not used.
        nlp (Language): The pipeline whose tokenizer tokenises the terms.
        terms (Optional[TermSource]): The terms: a reader such as `spacy_weakner.TermList.v1`, or a list of
            `{"label", "term"}`.
        labels (Optional[List[str]]): The labels that terms may have; by default any.
        RAISES (WeaknerError): If there are no terms, one is malformed or has another label, or the settings
            rule out all of them.
        """
        entries = self._entries if terms is None else self._tokenized(terms, nlp)
        if not entries:
            raise WeaknerError(Errors.WK202.format(name=self.name))
        unknown = [] if labels is None else sorted({term.label for term in entries} - set(labels))
        if unknown:
            known = ", ".join(labels or ())
            raise WeaknerError(Errors.WK208.format(name=self.name, label=unknown[0], labels=known))
        self._log(self._replace(entries, labels or ()))

    def add_terms(self, terms: TermSource, nlp: Language) -> None:
        """Add terms to those that are there.

        terms (TermSource): Terms, rows `{"label", "term"}`, or a reader's result.
        nlp (Language): The pipeline whose tokenizer tokenises the terms.
        RAISES (WeaknerError): If a term is malformed, or the settings rule out all of them.
        """
        entries = self._tokenized(terms, nlp)
        new = {term: entry for term, entry in entries.items() if term not in self._entries}
        sorted_ = self._sort(new)
        self._entries.update(new)
        self._index(sorted_)
        self._log(sorted_)

    def _tokenized(self, source: TermSource, nlp: Language) -> Dict[Term, Entry]:
        entries: Dict[Term, Entry] = {}
        for term, doc in self._term_docs(iter_terms(source, self.name), nlp):
            strings, ids = doc.vocab.strings, self._ids(doc).tolist()
            words = [token for token in doc if not token.is_space]
            tokens = tuple(strings[ids[token.i]] for token in words)
            exact = tuple(token.orth_ for token in words) if has_inner_capital(term.text) else tokens
            entries[term] = Entry(term.label, term.text, tokens, None if exact == tokens else exact)
        return entries

    def _term_docs(self, terms: Iterable[Term], nlp: Language) -> Iterator[Tuple[Term, Doc]]:
        if self.attr != "LEMMA":
            for term in terms:
                yield term, nlp.make_doc(term.text)
            return
        # Lemmas come from the components before this one; if it stands in no pipeline, from all of them.
        names = [name for name, _ in nlp.pipeline]
        own = next((i for i, (_, pipe) in enumerate(nlp.pipeline) if pipe is self), len(names))
        pairs = ((term.text, term) for term in terms)
        for doc, term in nlp.pipe(pairs, as_tuples=True, disable=names[own:]):
            yield term, doc

    def _sort(self, entries: Dict[Term, Entry]) -> SortedEntries:
        sorted_ = sort_entries(
            entries.values(),
            acronym_length=0 if self.attr == "ORTH" else self.acronym_length,
            stop=self.stop,
            min_length=self.min_length,
        )
        if entries and not sorted_.plain and not sorted_.exact:
            raise WeaknerError(Errors.WK204.format(name=self.name, count=len(entries), **sorted_.sizes()))
        return sorted_

    def _replace(self, entries: Dict[Term, Entry], labels: Iterable[str]) -> SortedEntries:
        sorted_ = self._sort(entries)
        self._entries = entries
        self._labels: Set[str] = set(labels)
        self._table = TermTable()
        self._exact = TermTable()
        self._index(sorted_)
        return sorted_

    def _index(self, sorted_: SortedEntries) -> None:
        add = self.vocab.strings.add
        for entry in sorted_.plain:
            self._table.add(tuple(add(token) for token in entry.tokens), entry.label)
            self._labels.add(entry.label)
        for entry in sorted_.exact:
            self._exact.add(tuple(add(token) for token in entry.exact or entry.tokens), entry.label)
            self._labels.add(entry.label)

    def _log(self, sorted_: SortedEntries) -> None:
        sizes = sorted_.sizes()
        util.logger.info(
            "'%s': %d terms, %d of them in exact case only; skipped: %d on the stop list, %d shorter than %d "
            "characters, %d without tokens",
            self.name,
            sum(sizes.values()),
            sizes["exact"],
            sizes["stop"],
            sizes["short"],
            self.min_length,
            sizes["empty"],
        )

    # Serialisation. Settings are not stored here: they belong to the config, which may be changed at load.

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise the terms.

        exclude (Iterable[str]): What to leave out: "cfg", "terms".
        RETURNS (bytes): The terms with their tokens, and the labels.
        """
        serializers = {
            "cfg": lambda: srsly.json_dumps(self._cfg()),
            "terms": lambda: srsly.msgpack_dumps([entry.to_row() for entry in self._entries.values()]),
        }
        data: bytes = util.to_bytes(serializers, exclude)
        return data

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "GazetteerRuler":
        """Load terms, in place of any from before.

        bytes_data (bytes): What `to_bytes` gave.
        exclude (Iterable[str]): What to leave as it is: "cfg", "terms".
        RETURNS (GazetteerRuler): The component itself.
        """
        loaded: Dict[str, Any] = {}
        deserializers = {
            "cfg": lambda data: loaded.update(cfg=srsly.json_loads(data)),
            "terms": lambda data: loaded.update(rows=srsly.msgpack_loads(data)),
        }
        util.from_bytes(bytes_data, deserializers, exclude)
        return self._load(**loaded)

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write the terms to a folder.

        path (Union[str, Path]): The folder.
        exclude (Iterable[str]): What to leave out: "cfg", "terms".
        """
        serializers = {
            "cfg": lambda p: srsly.write_json(p, self._cfg()),
            "terms.jsonl": lambda p: srsly.write_jsonl(p, (e.to_row() for e in self._entries.values())),
        }
        util.to_disk(path, serializers, exclude)

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "GazetteerRuler":
        """Load terms, in place of any from before.

        path (Union[str, Path]): A folder that `to_disk` wrote.
        exclude (Iterable[str]): What to leave as it is: "cfg", "terms".
        RETURNS (GazetteerRuler): The component itself.
        """
        loaded: Dict[str, Any] = {}
        deserializers = {
            "cfg": lambda p: loaded.update(cfg=srsly.read_json(p)),
            "terms.jsonl": lambda p: loaded.update(rows=srsly.read_jsonl(p)),
        }
        util.from_disk(path, deserializers, exclude)
        return self._load(**loaded)

    def _cfg(self) -> Dict[str, Any]:
        # attr is no setting here: it says what the stored tokens are.
        return {"attr": self.attr, "labels": self.label_data}

    def _load(
        self, cfg: Optional[Dict[str, Any]] = None, rows: Optional[Iterable[Dict[str, Any]]] = None
    ) -> "GazetteerRuler":
        if cfg is not None and cfg["attr"] != self.attr:
            raise WeaknerError(Errors.WK209.format(name=self.name, stored=cfg["attr"], attr=self.attr))
        entries = self._entries
        if rows is not None:
            entries = {Term(entry.label, entry.text): entry for entry in map(Entry.from_row, rows)}
        self._replace(entries, self._labels if cfg is None else cfg["labels"])
        return self


def _values(doc: Doc, attr: str) -> NDArray[numpy.uint64]:
    return doc.to_array(attr).astype("uint64", copy=False)


def _check(setting: str, value: Any, is_fine: bool, expected: str) -> None:
    if not is_fine:
        raise WeaknerError(Errors.WK005.format(setting=setting, value=repr(value), expected=expected))
