"""Splitting raw text into sentences."""

from itertools import pairwise
from typing import Any, Iterator, List, Optional

from spacy.attrs import NORM, ORTH, SPACY
from spacy.language import Language
from spacy.strings import get_string_id
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from .sentences import paragraph_starts
from .weak import set_id


class SentenceSplitter:
    """Splits raw text into one Doc per sentence: at blank lines, and by the rule of spaCy's sentencizer.

    nlp (Language): Its vocabulary and tokenizer are used; the pipeline itself is not changed.
    """

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        sentencizer: Any = nlp.create_pipe("sentencizer")
        self._ends = {get_string_id(sign) for sign in sentencizer.punct_chars}

    def whole(self, text: str) -> Doc:
        """One Doc of a text. Runs of white space become one blank, so that no token is white space."""
        return self.nlp.tokenizer(" ".join(text.split()))

    def split(self, text: str, identifier: Optional[str] = None, doc: Optional[Doc] = None) -> Iterator[Doc]:
        """Split a text.

        text (str): The text.
        identifier (Optional[str]): Identifier of the text; its sentences become `<identifier>.1`, `.2` and
            so on.
        doc (Optional[Doc]): The text as it stands, if that has been tokenised already.
        YIELDS (Doc): One Doc per sentence.
        """
        # spaCy's tokenizer gives words and norms; others may give more, as the row of a Doc may.
        bare = doc is None and type(self.nlp.tokenizer) is Tokenizer
        if doc is None or text != " ".join(text.split()):
            doc = self.whole(text)
        columns: Any = doc.to_array([ORTH, SPACY, NORM])
        words = columns[:, 0].tolist()
        starts = self.starts(doc, words)
        if paragraphs := set(paragraph_starts(text)):
            starts = sorted({*starts, *(token.i for token in doc if token.idx in paragraphs)})
        for number, (start, end) in enumerate(pairwise([*starts, len(doc)]), start=1):
            sentence = doc
            if len(starts) > 1 or not bare:
                spaces = [*columns[start : end - 1, 1].astype(bool).tolist(), False]
                sentence = Doc(self.nlp.vocab, words=words[start:end], spaces=spaces)
                sentence.from_array([NORM], columns[start:end, 2])  # the tokenizer's own: "not" for "n't"
            if identifier is not None:
                set_id(sentence, f"{identifier}.{number}")
            yield sentence

    def starts(self, doc: Doc, words: List[int]) -> List[int]:
        """Where sentences begin: behind a sign that ends one, and all signs and punctuation that follow it. (The
        sentencizer asks every token; few of them end a sentence.)

        doc (Doc): The text.
        words (List[int]): The hashes of its words.
        RETURNS (List[int]): The first tokens, in ascending order.
        """
        ends = self._ends
        starts, at = [0] * bool(words), 0
        for place in [place for place, word in enumerate(words) if word in ends]:
            if place < at:
                continue  # among the signs behind an earlier one
            at = place + 1
            while at < len(words) and (words[at] in ends or doc[at].is_punct):
                at += 1
            if at < len(words):
                starts.append(at)
        return starts
