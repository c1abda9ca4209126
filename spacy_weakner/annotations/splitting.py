"""Splitting raw text into sentences."""

from typing import Iterator, Optional

from spacy.language import Language
from spacy.tokens import Doc

from .weak import set_id


class SentenceSplitter:
    """Splits raw text into one Doc per sentence, with spaCy's rule-based sentencizer.

    nlp (Language): Its vocabulary and tokenizer are used; the pipeline itself is not changed.
    """

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        # The sentencizer is run apart, since a component of the pipeline would also run on annotated Docs.
        self.sentencizer = nlp.create_pipe("sentencizer")

    def whole(self, text: str) -> Doc:
        """One Doc of a text. Runs of white space become one blank, so that no token is white space."""
        return self.nlp.tokenizer(" ".join(text.split()))

    def split(self, text: str, identifier: Optional[str] = None) -> Iterator[Doc]:
        """Split a text.

        text (str): The text.
        identifier (Optional[str]): Identifier of the text; its sentences become `<identifier>.1`, `.2` and
            so on.
        YIELDS (Doc): One Doc per sentence.
        """
        doc = self.sentencizer(self.whole(text))
        for number, sentence in enumerate(doc.sents, start=1):
            words = [token.text for token in sentence]
            spaces = [bool(token.whitespace_) for token in sentence]
            spaces[-1] = False
            result = Doc(self.nlp.vocab, words=words, spaces=spaces)
            if identifier is not None:
                set_id(result, f"{identifier}.{number}")
            yield result
