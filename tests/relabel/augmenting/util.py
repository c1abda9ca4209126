"""Tiny models that predict words, made on the fly, and sentences for them."""

import random

import spacy

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.encoders.transformer import load_encoder_tokenizer
from spacy_weakner.relabel.augment import augment

from ...util import make_doc

NLP = spacy.blank("xx")
WORDS = ["anna", "bob", "paris", "new", "york", "smith", "went", "to", "likes", "nothing", "here", "at", "all", "zoe"]


def make_model(tiny_bert, path, favorites=(), tokenizer=None):
    """A masked language model that predicts some pieces with the same probability in every place, or any at random."""
    import torch
    import transformers

    tokenizer = tokenizer or load_encoder_tokenizer(tiny_bert)
    config = transformers.AutoConfig.from_pretrained(tiny_bert, vocab_size=len(tokenizer))
    transformers.set_seed(0)
    model = transformers.BertForMaskedLM(config)
    with torch.no_grad():
        if not favorites:
            # Else what it predicts would hardly depend on what it reads.
            model.bert.embeddings.word_embeddings.weight.normal_()
        for word in favorites:
            model.cls.predictions.bias[tokenizer.vocab[word]] = 50.0
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def many(n=60):
    """Random sentences."""
    draw = random.Random(0)
    return [make_doc(NLP, " ".join(draw.choices(WORDS, k=draw.randrange(1, 12)))) for _ in range(n)]


def run(tmp_path, docs, model, name="out", **settings):
    """Augment Docs; gives the report and what was written."""
    write_docs(tmp_path / "in.spacy", docs)
    before = (tmp_path / "in.spacy").read_bytes()
    report = augment(tmp_path / "in.spacy", tmp_path / f"{name}.spacy", model, **settings)
    assert (tmp_path / "in.spacy").read_bytes() == before
    found = list(read_docs(tmp_path / f"{name}.spacy", NLP.vocab))
    assert [doc.text for doc in found] == [doc.text for doc in docs]
    return report, found


def texts(docs):
    """The augmented forms."""
    return [" ".join(weak.get_augmented(doc)) for doc in docs]
