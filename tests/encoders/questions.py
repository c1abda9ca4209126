"""Questions and texts, and the encoder that reads them together."""

import spacy
from spacy.tokens import Doc

from spacy_weakner.encoders.transformer_encoder import build_query_context_encoder

NLP = spacy.blank("xx")
QUERIES = ["who is it", "to"]
# Every word has at least one piece.
TEXT = "anna went to new york at nothing here bob smith likes paris all"


def make(path, **settings):
    """An encoder with a Transformer from disk."""
    model = build_query_context_encoder(str(path), **{"max_length": 32, "stride": 4, **settings})
    model.initialize()
    return model


def make_docs(texts):
    """Docs whose words are those between spaces."""
    return [Doc(NLP.vocab, words=text.split(" ") if text else []) for text in texts]
