"""Converts terms and texts to values of the compared attribute."""

import weakref
from contextlib import nullcontext
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..errors import Errors, WeaknerError
from ..ty import BoolMask, Hashes
from .columns import ColumnBuilder, TermColumns
from .forms import FORM, Forms, exact_variants, has_inner_capital, normal_form, variants
from .terms import Term

# Number of terms that are tokenized together.
_BATCH = 20_000
# Attributes that ignore case, and need no pipeline components.
CASELESS = (FORM, "LOWER", "NORM")


def raw_values(doc: Doc, attr: Any) -> Hashes:
    """Return the values of an attribute in a Doc, or of several attributes as columns."""
    values: Any = doc.to_array(attr)
    ids: Hashes = values.astype("uint64", copy=False)
    return ids


def attr_values(doc: Doc, attr: str, name: str, forms: Forms) -> Hashes:
    """Return the value of the compared attribute for each token."""
    if attr == FORM:
        return forms(raw_values(doc, "ORTH"), doc.vocab.strings)
    ids = raw_values(doc, attr)
    if attr == "LEMMA" and not ids.all():
        if not ids.any() and not doc.to_array("IS_SPACE").all():
            raise WeaknerError(Errors.WK203.format(name=name))
        # A lemmatizer may lack some words: these are their own lemmas, both in terms and in texts.
        ids = numpy.where(ids == 0, raw_values(doc, "ORTH"), ids)
    return ids


def exact_values(doc: Doc, attr: str, cased: Forms) -> Hashes:
    """Return the value for comparison in exact case for each token; `attr` is the attribute compared otherwise."""
    orths = raw_values(doc, "ORTH")
    return cased(orths, doc.vocab.strings) if attr == FORM else orths


def tokenize_terms(terms: Iterable[Term], nlp: Language, attr: str, later: Sequence[str], name: str) -> TermColumns:
    """Tokenize terms like texts. `later` are the components that do not precede the component `name`, which looks up
    the terms."""
    lang = nlp.lang or ""
    builder, forms, cased = ColumnBuilder(), Forms(lang), Forms(lang, cased=True)
    exceptions = frozenset(normal_form(key, lang) for key in getattr(nlp.tokenizer, "rules", None) or ())
    for batch in minibatch(terms, size=_BATCH):
        # The end of the zone removes the terms' words from the vocabulary and the tokenizer's cache.
        with nullcontext() if getattr(nlp.vocab, "in_memory_zone", False) else nlp.memory_zone():
            for term, doc in _term_docs(batch, nlp, attr, later):
                ids = attr_values(doc, attr, name, forms)
                visible = _are_visible(doc, ids)
                may_be_exact = attr != "ORTH" and (term.exact or has_inner_capital(term.text))
                orths = exact_values(doc, attr, cased)[visible] if may_be_exact else None
                others: List[Hashes] = []
                exact_others: List[Hashes] = []
                if attr in CASELESS and not term.exact:
                    spellings = {*variants(term.text, lang, exceptions)} - {term.text}
                    others = _spelled(spellings, nlp, lambda other: attr_values(other, attr, name, forms))
                if attr == FORM and may_be_exact:
                    spellings = {*exact_variants(term.text, lang)} - {term.text}
                    exact_others = _spelled(spellings, nlp, lambda other: exact_values(other, attr, cased))
                builder.add(term, ids[visible], orths, others, exact_others)
    return builder.columns()


def _spelled(spellings: Iterable[str], nlp: Language, values_of: Callable[[Doc], Hashes]) -> List[Hashes]:
    """Return the values of the visible tokens of each spelling."""
    found = []
    for doc in map(nlp.make_doc, sorted(spellings)):
        values = values_of(doc)
        found.append(values[_are_visible(doc, values)])
    return found


def _are_visible(doc: Doc, ids: Hashes) -> BoolMask:
    """Return a mask of the visible tokens, which are not white space and have a value other than 0."""
    return (raw_values(doc, "IS_SPACE") == 0) & (ids != 0)


def _term_docs(terms: Iterable[Term], nlp: Language, attr: str, later: Sequence[str]) -> Iterator[Tuple[Term, Doc]]:
    if attr != "LEMMA":
        return ((term, nlp.make_doc(term.text)) for term in terms)
    docs = nlp.pipe(((term.text, term) for term in terms), as_tuples=True, disable=list(later))
    return ((term, doc) for doc, term in docs)


class PipelineReference:
    """A weak reference to the pipeline that a component was created in. It is not pickled with the component; in a copy
    of the pipeline it refers to the copy."""

    def __init__(self, nlp: Optional[Language] = None) -> None:
        self._nlp = None if nlp is None else weakref.ref(nlp)

    def __call__(self) -> Optional[Language]:
        """Return the pipeline, if it exists."""
        return None if self._nlp is None else self._nlp()

    def __deepcopy__(self, memo: Dict[int, Any]) -> "PipelineReference":
        nlp = self()
        return PipelineReference(memo.get(id(nlp), nlp))

    def __reduce__(self) -> Tuple[Any, ...]:
        return PipelineReference, ()
