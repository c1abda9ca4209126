"""The component that links entities to the ids of a term list."""

from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import srsly
from spacy import util
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..abbreviations.definitions import Definition, find_definitions, short_forms
from ..corpus.weak import get_definitions, is_weak
from ..errors import Errors, WeaknerError, check_range
from ..files import existing, reading_stored
from ..gazetteer_ruler.terms import NEVER, TermInput, iter_terms
from ..training.batches import BatchPipe
from .index import IdCandidate, TermIndex, compared_form

# Precision 85 % on 50 abstracts of BC5CDR (docs/evidence/ids.md).
DEFAULT_THRESHOLD = 0.7
# Maximum number of mentions in the cache of candidates.
CAPACITY = 100_000
# Minimum number of gold entities with ids to fit a threshold.
MIN_LINKS = 20


@Language.factory(
    "term_linker",
    requires=["doc.ents"],
    assigns=["token.ent_kb_id", "span._.weakner_ids"],
    default_config={"threshold": None, "n_candidates": 5, "overwrite": False},
)
def make_term_linker(
    nlp: Language, name: str, threshold: Optional[float], n_candidates: int, overwrite: bool
) -> "TermLinker":
    """Create the component with the settings of `TermLinker`."""
    return TermLinker(name, lang=nlp.lang or "xx", threshold=threshold, n_candidates=n_candidates, overwrite=overwrite)


class TermLinker(BatchPipe):
    """A component that assigns ids of the most similar terms to entities: the best id as `ent.kb_id_`, if its score
    reaches the threshold, and all candidates as `ent._.weakner_ids`, lists of an id and its score.

    An entity is compared with the terms of its label, ignoring case, punctuation and plural: first for equality, then
    by character 3-grams. The short form of an abbreviation that the Doc defines is looked up by its long form. Of ids
    with equal scores, those of a term with the entity's own spelling come first, then those of entities of the Doc with
    a certain id, then those that are first in the list.

    name (str): Name of the component.
    lang (str): Code of the language.
    threshold (Optional[float]): Minimum score of an id, in [0, 1]; otherwise `ent.kb_id_` is empty. None: fitted in
        `initialize` on gold entities with ids for the best F1 of the links; 0.7 if there are fewer than 20.
    n_candidates (int): Number of terms to compare with an entity.
    overwrite (bool): False: entities that have an id keep it.
    RAISES (WeaknerError): If a setting is out of range.
    """

    def __init__(
        self,
        name: str = "term_linker",
        *,
        lang: str = "xx",
        threshold: Optional[float] = None,
        n_candidates: int = 5,
        overwrite: bool = False,
    ) -> None:
        check_range("threshold", threshold, 0.0, 1.0, optional=True)
        check_range("n_candidates", n_candidates, 1, None)
        self.name = name
        self.lang = lang
        self.threshold = threshold
        self.n_candidates = n_candidates
        self.overwrite = overwrite
        self._fitted = DEFAULT_THRESHOLD
        self._indices: Dict[str, TermIndex] = {}
        self._names: Dict[str, str] = {}
        self._known: Dict[Tuple[str, str], List[IdCandidate]] = {}

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels of the terms, sorted."""
        return tuple(sorted(self._indices))

    def initialize(
        self,
        get_examples: Optional[Callable[[], Iterable[Example]]] = None,
        *,
        nlp: Optional[Language] = None,
        terms: Optional[TermInput] = None,
        label: Optional[str] = None,
    ) -> None:
        """Read the terms, replacing earlier ones, and fit the threshold if it is None.

        get_examples (Optional[Callable[[], Iterable[Example]]]): Examples; reference entities with ids are used.
        nlp (Optional[Language]): The pipeline; its language determines how case is ignored.
        terms (Optional[TermInput]): The terms: a reader such as `spacy_weakner.TermList.v1`, or terms in a form that
            the `gazetteer_ruler` accepts. Terms without an id are ignored.
        label (Optional[str]): Label of terms that have none.
        RAISES (WeaknerError): If no term has an id.
        """
        if nlp is not None:
            self.lang = nlp.lang or "xx"
        if terms is not None:
            rows: Dict[str, List[Tuple[str, str]]] = {}
            given: Dict[str, str] = {}
            first: Dict[str, str] = {}
            for term in iter_terms(terms, self.name, label):
                if term.id and term.binding != NEVER:
                    rows.setdefault(term.label, []).append((term.text, term.id))
                    first.setdefault(term.id, term.text)
                    if term.name:
                        given.setdefault(term.id, term.name)
            self._names = {**first, **given}
            self._indices = {label: TermIndex.build(rows[label], self.lang) for label in sorted(rows)}
            self._known = {}
        if not self._indices:
            raise WeaknerError(Errors.WK810.format(name=self.name))
        self._fitted = self._fit(get_examples() if get_examples is not None else ())

    def preferred_name(self, identifier: str) -> str:
        """Return the preferred name of an id: the first one in the list, else its first term; "" for an unknown id."""
        return self._names.get(identifier, "")

    def _fit(self, examples: Iterable[Example]) -> float:
        """Find the threshold with the best F1 for the links of gold entities."""
        scored: List[Tuple[float, bool]] = []
        n_linked = 0
        for example in examples:
            doc = example.reference
            linked = [] if is_weak(doc) else [ent for ent in doc.ents if ent.kb_id_]
            n_linked += len(linked)
            keys = self._keys(doc, linked)
            known = self._look_up({*keys})
            for ent, key in zip(linked, keys, strict=True):
                if known[key]:
                    scored.append((known[key][0].score, known[key][0].id == ent.kb_id_))
        if n_linked < MIN_LINKS or not any(right for _, right in scored):
            return DEFAULT_THRESHOLD
        best, best_f1, given, right = DEFAULT_THRESHOLD, -1.0, 0, 0
        for score, group in groupby(sorted(scored, reverse=True), key=lambda pair: pair[0]):
            marks = [is_right for _, is_right in group]
            given, right = given + len(marks), right + sum(marks)
            f1 = 2 * right / (given + n_linked)
            if f1 > best_f1:
                best, best_f1 = score, f1
        return best

    def annotate(self, docs: List[Doc]) -> None:
        if not self._indices:
            raise WeaknerError(Errors.WK810.format(name=self.name))
        threshold = self._fitted if self.threshold is None else self.threshold
        # Entities of other labels are left to another linker.
        linkable = [[ent for ent in doc.ents if ent.label_ in self._indices] for doc in docs]
        wanted = [[ent for ent in ents if self.overwrite or not ent.kb_id_] for ents in linkable]
        keys = [self._keys(doc, ents) for doc, ents in zip(docs, wanted, strict=True)]
        known = self._look_up({key for some in keys for key in some})
        for doc, ents, keys_of_doc in zip(docs, wanted, keys, strict=True):
            found = [known[key] for key in keys_of_doc]
            # Ids that the document contains with certainty.
            certain = {ent.kb_id_ for ent in doc.ents if ent.kb_id_}
            certain |= {some[0].id for some in found if _is_certain(some)}
            for ent, some in zip(ents, found, strict=True):
                ranked = sorted(some, key=lambda c: (-c.score, not c.is_spelled_so, c.id not in certain))
                ent._.weakner_ids = [[candidate.id, candidate.score] for candidate in ranked]
                identifier = ranked[0].id if ranked and ranked[0].score >= threshold else ""
                for token in ent:
                    token.ent_kb_id_ = identifier

    def _look_up(self, keys: Set[Tuple[str, str]]) -> Dict[Tuple[str, str], List[IdCandidate]]:
        """Look up the candidates for labels and mentions, a whole batch at once for speed."""
        known = self._known  # another thread may replace it
        if len(known) > CAPACITY:
            known = self._known = {}
        for label, group in groupby(sorted(keys - known.keys()), key=lambda key: key[0]):
            unknown, index = list(group), self._indices.get(label)
            if index is None:
                known.update((key, []) for key in unknown)
                continue
            found = index.nearest([compared_form(text, self.lang) for _, text in unknown], self.n_candidates)
            known.update((key, index.by_spelling(key[1], some)) for key, some in zip(unknown, found, strict=True))
        return known

    def _keys(self, doc: Doc, ents: Sequence[Span]) -> List[Tuple[str, str]]:
        """Return label and text of each entity; for short forms, the text of the long form."""
        long: Dict[Tuple[str, ...], str] = {}
        there = [Definition((a, b), (c, d)) for a, b, c, d in get_definitions(doc)] if ents else []
        for definition in there or (find_definitions(doc) if ents else ()):
            for form in short_forms(doc, definition):
                long.setdefault(form, doc[slice(*definition.long)].text)
        words = [tuple(token.text for token in ent if not token.is_space) for ent in ents]
        texts = [long.get(form, ent.text) for ent, form in zip(ents, words, strict=True)]
        return [(ent.label_, " ".join(text.split())) for ent, text in zip(ents, texts, strict=True)]

    # Storage

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the terms and the fitted threshold; `exclude` may name "cfg" and "index"."""
        data: bytes = util.to_bytes({"cfg": self._dump_cfg, "index": self._dump_index}, exclude)
        return data

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write the terms and the fitted threshold to a folder; `exclude` may name "cfg" and "index"."""
        writers: Dict[str, Callable[[Path], Any]] = {
            "cfg": lambda p: p.write_bytes(self._dump_cfg()),
            "index": lambda p: p.write_bytes(self._dump_index()),
        }
        util.to_disk(path, writers, exclude)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "TermLinker":
        """Load the output of `to_bytes`; raises an error if it is damaged."""
        util.from_bytes(bytes_data, {"cfg": self._load_cfg, "index": self._load_index}, exclude)
        return self

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "TermLinker":
        """Load the output of `to_disk`; raises an error if a file is missing or damaged."""
        readers: Dict[str, Callable[[Path], Any]] = {
            "cfg": lambda p: self._load_cfg(existing(p).read_bytes()),
            "index": lambda p: self._load_index(existing(p).read_bytes()),
        }
        util.from_disk(path, readers, exclude)
        return self

    def _dump_cfg(self) -> bytes:
        return srsly.json_dumps({"threshold": self._fitted}).encode("utf-8")

    def _load_cfg(self, data: bytes) -> None:
        with reading_stored(self.name):
            self._fitted = float(srsly.json_loads(data.decode("utf-8"))["threshold"])

    def _dump_index(self) -> bytes:
        terms = {
            label: {"forms": index.forms, "ids": index.ids, "arrays": index.to_arrays(), "spelled": index.spelled}
            for label, index in self._indices.items()
        }
        data: bytes = srsly.msgpack_dumps({"terms": terms, "names": self._names})
        return data

    def _load_index(self, data: bytes) -> None:
        with reading_stored(self.name):
            stored = srsly.msgpack_loads(data)
            indices = {
                label: TermIndex.from_parts(
                    terms["forms"], list(map(tuple, terms["ids"])), terms["arrays"], terms.get("spelled", {})
                )
                for label, terms in sorted(stored["terms"].items())
            }
            self._names = dict(stored["names"])
        self._indices = indices
        self._known = {}


def _is_certain(candidates: Sequence[IdCandidate]) -> bool:
    """Return True if only one id has a term that is equal to the mention, or spelled like it."""
    n_equal = sum(candidate.score == 1.0 for candidate in candidates)
    return n_equal == 1 or sum(candidate.is_spelled_so for candidate in candidates) == 1
