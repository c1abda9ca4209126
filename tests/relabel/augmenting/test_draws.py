"""Masks and draws."""

import numpy
import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.encoders.transformer import load_encoder_tokenizer, load_masked_lm
from spacy_weakner.relabel import augment as augment_module
from spacy_weakner.relabel.augment import augment
from spacy_weakner.relabel.masked_lm import WordPredictor

from ...util import make_doc, needs_transformers
from .util import NLP, WORDS, make_model, many, run, texts

pytestmark = needs_transformers


@pytest.mark.parametrize("top_k, expected", [(1, {"here"}), (3, {"here", "at", "all"}), (1000, {"here", "at", "all"})])
def test_only_the_best_are_drawn(tmp_path, tiny_bert, top_k, expected):
    import torch

    path = make_model(tiny_bert, tmp_path / "model", ["here", "at", "all"])
    masked_lm = load_masked_lm(path)
    with torch.no_grad():
        masked_lm.model.cls.predictions.bias[masked_lm.tokenizer.vocab["here"]] += 1
    masked_lm.model.save_pretrained(path)
    _, found = run(tmp_path, many(), path, top_k=top_k)
    words = [word for doc in found for word in weak.get_augmented(doc)]
    # Words like "zoe" keep their inner pieces.
    drawn = [word for word in words if not word.endswith("oe")]
    assert set(drawn) == expected
    if top_k > 1:
        odds = numpy.exp(1) / (numpy.exp(1) + 2)
        assert numpy.mean([word == "here" for word in drawn]) == pytest.approx(odds, abs=0.1)


def test_masks(tmp_path, model, monkeypatch):
    seen = []
    call = WordPredictor.__call__

    def watch(self, windows):
        seen.extend(windows)
        return call(self, windows)

    monkeypatch.setattr(WordPredictor, "__call__", watch)
    tokenizer = load_encoder_tokenizer(model)
    docs = [make_doc(NLP, f"{a} {b} zoe went to {c}") for a in WORDS for b in WORDS for c in WORDS[:3]]
    run(tmp_path, docs, model, mask_rate=0.15)
    firsts = {(i, place.position) for i, window in enumerate(seen) for place in window.places}
    masked = {(i, j) for i, window in enumerate(seen) for j, id_ in enumerate(window.ids) if id_ == 4}
    assert tokenizer.mask_token_id == 4 and masked < firsts
    assert len(firsts) == 6 * len(docs) and len(masked) / len(firsts) == pytest.approx(0.15, abs=0.02)


def test_draws_depend_on_seed_and_sentence_only(tmp_path, model, monkeypatch):
    def forms(name, docs, **settings):
        found = run(tmp_path, docs, model, name, **{"seed": 0, **settings})[1]
        return {doc.text: weak.get_augmented(doc) for doc in found}

    first = forms("a", many())
    assert forms("b", many()[::-1]) == first
    for n, docs in ((7, many()[:20]), (1, many())):
        with monkeypatch.context() as patch:
            patch.setattr(augment_module, "BATCH_SIZE", n)
            assert forms(f"batches of {n}", docs) == {doc.text: first[doc.text] for doc in docs}
    others = [forms("e", many(), seed=1), forms("f", many(), mask_rate=0.5)]
    assert all(other != first for other in others)


def test_shards_do_not_matter(tmp_path, model):
    _, whole = run(tmp_path, many(), model)
    (tmp_path / "many").mkdir()
    for i in range(3):
        write_docs(tmp_path / "many" / f"{i}.spacy", many()[20 * i : 20 * i + 20])
    report = augment(tmp_path / "many", tmp_path / "parts", model)
    assert texts(read_docs(tmp_path / "parts", NLP.vocab)) == texts(whole)
    assert (report.docs, report.words) == (60, sum(map(len, whole)))
