"""Questions and texts, and the encoder that reads them together."""

from functools import cache

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


@cache
def transformers_of(path):
    """What transformers itself makes of a folder: the tokenizer, and the model without dropout."""
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(path), AutoModel.from_pretrained(path).eval()
