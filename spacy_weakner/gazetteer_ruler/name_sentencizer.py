"""The component that splits texts into sentences, but not inside names such as "Yahoo! Inc."."""

from pathlib import Path
from typing import Any, Iterable, List, Sequence, Union

import numpy
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..corpus.parts import inner_tokens
from ..corpus.sentences import INNER_END, inner_starts
from .component import GazetteerRuler
from .terms import Term

_LABEL = "NAME"


class NameSentencizer(Sentencizer):
    """A component that splits texts into sentences like spaCy's `sentencizer`, but not inside names that contain the
    end of a sentence ("Yahoo! Inc.", "Salmonella enterica subsp. enterica"), nor inside entities and spans of
    groups of this package that a Doc already has.

    The names are compared like terms of a list, and stored with the component. Names with a stop word before the end
    or a number after it match in exact case only: "No. 5" is not in "He said no. 5 people left."

    nlp (Language): The pipeline, whose tokenizer tokenizes the names.
    name (str): Name of the component.
    """

    def __init__(self, nlp: Language, name: str = "name_sentencizer") -> None:
        super().__init__(name)
        self._ruler = GazetteerRuler(nlp.vocab, name, nlp=nlp)

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
        starts: List[List[bool]] = super().predict(docs)
        several = [i for i, row in enumerate(starts) if sum(row) > 1]
        found = self._ruler.match_docs([docs[i] for i in several]) if self._ruler.labels else [[]] * len(several)
        for i, matches in zip(several, found, strict=True):
            joined = inner_tokens(docs[i])
            for start, end, _ in matches:
                joined[start + 1 : end] = True
            starts[i] = (numpy.asarray(starts[i]) & ~joined).tolist()
        return starts

    # Serialization

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the names."""
        return self._ruler.to_bytes(exclude=exclude)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "NameSentencizer":
        """Load the output of `to_bytes`, replacing earlier names."""
        self._ruler.from_bytes(bytes_data, exclude=exclude)
        return self

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write a folder with the names."""
        self._ruler.to_disk(path, exclude=exclude)

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "NameSentencizer":
        """Load the output of `to_disk`, replacing earlier names."""
        self._ruler.from_disk(path, exclude=exclude)
        return self


@Language.factory("name_sentencizer", assigns=["token.is_sent_start", "doc.sents"])
def make_name_sentencizer(nlp: Language, name: str) -> Any:
    """Create the component without names."""
    return NameSentencizer(nlp, name)
