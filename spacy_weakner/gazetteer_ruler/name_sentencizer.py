"""The component that splits texts into sentences, but not inside names such as "Yahoo! Inc."."""

from typing import Any, Iterable, List, Sequence

import numpy
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..corpus.parts import inner_tokens
from ..corpus.sentences import INNER_END, inner_starts, is_line_break
from .component import GazetteerRuler
from .stored import StoredAsTerms
from .terms import Term

_LABEL = "NAME"
_CONTEXT = 50  # characters before and after the start of a sentence, among which an abbreviation is searched


class NameSentencizer(StoredAsTerms, Sentencizer):
    """A component that splits texts into sentences like spaCy's `sentencizer`, but not after abbreviations, nor inside
    names that contain the end of a sentence ("Yahoo! Inc.", "Salmonella enterica subsp. enterica"), nor inside entities
    and spans of groups of this package that a Doc already has.

    Abbreviations are those that the tokenizer of the language knows, and those given here, in the same case or with a
    capital letter at the beginning.

    The names are compared like terms of a list, and stored with the component. Names with a stop word before the end
    or a number after it match in exact case only: "No. 5" is not in "He said no. 5 people left."

    nlp (Language): The pipeline, whose tokenizer tokenizes the names.
    name (str): Name of the component.
    abbreviations (Iterable[str]): Further abbreviations, with their points, such as "wg." and "z. B.".
    lines (bool): Split at line breaks instead, and nowhere else.
    """

    def __init__(
        self, nlp: Language, name: str = "name_sentencizer", *, abbreviations: Iterable[str] = (), lines: bool = False
    ) -> None:
        super().__init__(name)
        self._ruler = GazetteerRuler(nlp.vocab, name, nlp=nlp)
        self.lines = lines
        known = (text for text in nlp.Defaults.tokenizer_exceptions if text[-1:] == "." and text[:1].isalpha())
        self._abbreviations = {" ".join(text.split()) for text in (*known, *abbreviations)}
        self._lengths = {text.count(" ") + 1 for text in self._abbreviations}

    @property
    def names(self) -> List[str]:
        """RETURNS (List[str]): The names, in the order in which they were added."""
        return [term.text for term in self._ruler.terms]

    def add_names(self, names: Iterable[str], nlp: Language) -> None:
        """Add those of some names that contain the end of a sentence; others need not be known.

        names (Iterable[str]): The names.
        nlp (Language): The pipeline whose tokenizer tokenizes the names.
        """
        found: List[Term] = []
        for name in filter(INNER_END.search, dict.fromkeys(names)):
            doc = nlp.make_doc(name)
            starts = inner_starts([token.text for token in doc])
            before = [next((token for token in reversed(doc[:i]) if not token.is_punct), doc[i]) for i in starts]
            exact = any(token.is_stop for token in before) or any(doc[i].like_num for i in starts)
            found += [Term(_LABEL, name, exact)] if starts else []
        if found:
            self._ruler.add_terms(found, nlp, label=_LABEL)

    def predict(self, docs: Sequence[Doc]) -> List[List[bool]]:
        """Predict for each token of some Docs whether a sentence begins there."""
        if self.lines:
            return [[i == 0 or is_line_break(doc[i - 1].text) for i in range(len(doc))] for doc in docs]
        starts: List[List[bool]] = super().predict(docs)
        several = [i for i, row in enumerate(starts) if sum(row) > 1]
        found = self._ruler.match_docs([docs[i] for i in several]) if self._ruler.labels else [[]] * len(several)
        for i, matches in zip(several, found, strict=True):
            joined = inner_tokens(docs[i])
            for start, end, _ in matches:
                joined[start + 1 : end] = True
            begin, text = numpy.asarray(starts[i]) & ~joined, docs[i].text
            for n in numpy.flatnonzero(begin).tolist():
                begin[n] = n == 0 or not self._abbreviates(text, docs[i][n].idx)
            starts[i] = begin.tolist()
        return starts

    def _abbreviates(self, text: str, place: int) -> bool:
        """Return True if an abbreviation ends at a place in a text, or goes on there ("z." in "z. B.")."""
        before, after = text[max(0, place - _CONTEXT) : place].split(), text[place : place + _CONTEXT].split()
        if before and after and not text[place - 1].isspace() and not text[place].isspace():
            before[-1] += after.pop(0)
        for n, later in ((length, later) for length in self._lengths for later in range(length)):
            words = before[later - n :] + after[:later]
            found = " ".join(words).lstrip("([{\"'„“‚‘«»/").rstrip(")]},;:\"'“”‘’«»/")
            if len(words) == n and not self._abbreviations.isdisjoint((found, found[:1].lower() + found[1:])):
                return True
        return False


@Language.factory(
    "name_sentencizer",
    assigns=["token.is_sent_start", "doc.sents"],
    default_config={"abbreviations": [], "lines": False},
)
def make_name_sentencizer(nlp: Language, name: str, abbreviations: List[str], lines: bool) -> Any:
    """Create the component without names."""
    return NameSentencizer(nlp, name, abbreviations=abbreviations, lines=lines)
