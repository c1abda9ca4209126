"""The component for the terms that a list declares binding: entities wherever they occur, or nowhere."""

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from ..corpus.entities import blocked_tokens
from ..corpus.weak import give_ids
from ..heads.factories import default_config, takes_settings_of
from ..training.batches import BatchPipe
from ..ty import Entity
from .component import GazetteerRuler
from .entities import longest
from .forms import FORM
from .stored import StoredAsTerms
from .terms import ACRONYM_LENGTH, MUST, NEVER, Term, TermInput, iter_terms


class BindingTerms(StoredAsTerms, BatchPipe):
    """A component that enforces the terms that a list declares binding in its column `binding`, whatever other
    components decide. Add it after them.

    Each match of a term with "must" becomes an entity, unless it is within an entity with the same label; entities that
    it overlaps are removed. Of overlapping matches, the longest is used. Entities that are equal to a match of a term
    with "never", and have its label, are removed. Other terms are ignored.

    vocab (Vocab): The shared vocabulary.
    name (str): Name of the component.
    attr, acronym_length: See `gazetteer_ruler`.
    nlp (Optional[Language]): The pipeline whose tokenizer tokenizes terms, if no other is given with them.
    """

    def __init__(
        self,
        vocab: Vocab,
        name: str = "binding_terms",
        *,
        attr: str = FORM,
        acronym_length: int = ACRONYM_LENGTH,
        nlp: Optional[Language] = None,
    ) -> None:
        self.name = name
        # Its labels are "must LABEL" and "never LABEL".
        self._ruler = GazetteerRuler(vocab, name, attr=attr, acronym_length=acronym_length, nlp=nlp)

    def initialize(
        self,
        get_examples: Optional[Callable[[], Iterable[Example]]] = None,
        *,
        nlp: Optional[Language] = None,
        terms: TermInput = (),
    ) -> None:
        """Read the terms, replacing earlier ones.

        get_examples (Optional[Callable[[], Iterable[Example]]]): Not used.
        nlp (Optional[Language]): The pipeline whose tokenizer tokenizes the terms.
        terms (TermInput): The terms, as for `gazetteer_ruler`; rows may have the key "binding".
        RAISES (WeaknerError): If a term is malformed, or none is binding.
        """
        self._ruler.initialize(nlp=nlp, terms=self._binding(terms))

    def add_terms(self, terms: TermInput, nlp: Optional[Language] = None) -> None:
        """Add terms: rows `{"label", "term", "binding"}`, or a reader.

        terms (TermInput): The terms.
        nlp (Optional[Language]): See `initialize`.
        RAISES (WeaknerError): If a term is malformed.
        """
        self._ruler.add_terms(self._binding(terms), nlp)

    def _binding(self, terms: TermInput) -> List[Term]:
        found = (term for term in iter_terms(terms, self.name) if term.binding)
        return [term._replace(label=f"{term.binding} {term.label}", binding="") for term in found]

    def annotate(self, docs: List[Doc]) -> None:
        """Enforce the terms in some Docs."""
        for doc, matches in zip(docs, self._ruler.match_ids(docs), strict=True):
            ids: Dict[str, Dict[Entity, Tuple[str, ...]]] = {MUST: {}, NEVER: {}}
            for (start, end, label), listed in matches.items():
                kind, _, name = label.partition(" ")
                ids[kind][start, end, name] = listed
            _enforce(doc, ids[MUST], ids[NEVER])


def _enforce(doc: Doc, must: Dict[Entity, Tuple[str, ...]], never: Iterable[Entity]) -> None:
    ents = [ent for ent in doc.ents if (ent.start, ent.end, ent.label_) not in never]
    added = [
        match
        for match in longest([Span(doc, *entity) for entity in must])
        if not any(ent.label == match.label and ent.start <= match.start and match.end <= ent.end for ent in ents)
    ]
    taken = {i for ent in added for i in range(ent.start, ent.end)}
    kept = [ent for ent in ents if taken.isdisjoint(range(ent.start, ent.end))]
    if added or len(kept) < len(doc.ents):
        for ent in added:
            ent._.weakner_score = None  # of an entity that was removed
        doc.set_ents(sorted([*kept, *added], key=lambda ent: ent.start), blocked=blocked_tokens(doc))
        give_ids(doc, must)


@Language.factory("binding_terms", assigns=["doc.ents"], default_config=default_config(BindingTerms))
@takes_settings_of(BindingTerms)
def make_binding_terms(nlp: Language, name: str, **settings: Any) -> BindingTerms:
    """Create the component with the settings of `BindingTerms`."""
    return BindingTerms(nlp.vocab, name, **settings, nlp=nlp)
