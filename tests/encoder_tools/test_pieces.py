"""Pieces, and the loss of masked ones."""

import pytest
import spacy

from spacy_weakner.encoder_tools.pieces import PieceCounts, cut_pieces
from spacy_weakner.encoders.transformer import load_encoder_tokenizer

from ..util import MASKED_LMS, make_doc, make_masked_lm
from .util import needs_accelerate

pytestmark = needs_accelerate


@pytest.fixture
def tokenizer(tiny_bert):
    return load_encoder_tokenizer(tiny_bert)


def pieces_of(texts, tokenizer, max_length=32, eval_share=0.0, seed=0):
    nlp = spacy.blank("xx")
    docs = (make_doc(nlp, text, annotated=False) for text in texts)
    train, held_out, counts = cut_pieces(docs, tokenizer, max_length=max_length, eval_share=eval_share, seed=seed)
    return counts, train, held_out


def test_pieces(tokenizer):
    counts, pieces, held_out = pieces_of(["anna likes zoe", "", "bob"], tokenizer)
    assert counts == PieceCounts(texts=2, words=4, pieces=6) and (len(pieces), len(held_out)) == (2, 0)
    found = tokenizer.convert_ids_to_tokens(pieces[0]["input_ids"])
    assert found == ["[CLS]", "anna", "likes", "z", "##o", "##e", "[SEP]"]


def test_long_texts_are_split(tokenizer):
    counts, pieces, _ = pieces_of(["anna likes zoe at york", "bob"], tokenizer, max_length=5)
    assert (counts.texts, counts.split, counts.pieces) == (2, 1, 8)
    found = [tokenizer.convert_ids_to_tokens(pieces[i]["input_ids"])[1:-1] for i in range(len(pieces))]
    assert found == [["anna", "likes", "z"], ["##o", "##e", "at"], ["york"], ["bob"]]


def test_contents_decide_what_is_held_out(tokenizer):
    texts = [f"{a} likes {b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    counts, _, held_out = pieces_of(texts, tokenizer, eval_share=0.25)
    assert 70 < counts.held_out < 130
    twice = [text.upper() for text in texts[::-1]] + texts
    again, pieces, held_out_again = pieces_of(twice, tokenizer, eval_share=0.25)
    assert again.held_out == 2 * counts.held_out
    as_set = [{tuple(x[i]["input_ids"]) for i in range(len(x))} for x in (pieces, held_out, held_out_again)]
    assert as_set[1] == as_set[2] and not as_set[0] & as_set[1]
    other = pieces_of(texts, tokenizer, eval_share=0.25, seed=1)[2]
    assert {tuple(other[i]["input_ids"]) for i in range(len(other))} != as_set[1]


@pytest.mark.parametrize("kind", MASKED_LMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of their own modules
def test_the_loss_is_that_of_the_model(kind, tokenizer, tmp_path):
    import torch
    import transformers

    from spacy_weakner.encoder_tools.trainer import MaskedLMTrainer, make_arguments

    model = make_masked_lm(kind, tokenizer)
    pieces = pieces_of(["anna likes zoe", "bob"], tokenizer)[1]
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.7)
    batch = collator([pieces[0], pieces[1]])
    with torch.no_grad():
        expected = model(**batch).loss
        args = make_arguments(tmp_path, gpu_id=-1, mixed_precision="no")
        trainer = MaskedLMTrainer(model=model, args=args, train_dataset=pieces, data_collator=collator)
        assert trainer.compute_loss(model, batch).item() == pytest.approx(expected.item(), rel=1e-5)
        # A batch without masks teaches nothing.
        batch["labels"][:] = -100
        assert trainer.compute_loss(model, batch).item() == 0


def test_the_held_out_loss_does_not_depend_on_batches(tokenizer, model, tmp_path):
    from spacy_weakner.encoder_tools.trainer import MaskedLMTrainer, _loss, make_arguments
    from spacy_weakner.encoders.transformer import load_masked_lm

    pieces = pieces_of(["anna likes zoe at york", "bob", "anna", "zoe likes bob", "anna smith"], tokenizer)[1]
    chosen = {tokenizer.convert_tokens_to_ids(piece) for piece in ("likes", "z", "york")}

    def loss(batch_size, chosen):
        def mask(features):
            batch = tokenizer.pad(features, return_tensors="pt")
            labels = [[i if i in chosen else -100 for i in row] for row in batch["input_ids"].tolist()]
            return {**batch, "labels": batch["input_ids"].new_tensor(labels)}

        args = make_arguments(tmp_path, gpu_id=-1, mixed_precision="no", per_device_eval_batch_size=batch_size)
        return _loss(MaskedLMTrainer(model=load_masked_lm(model).model, args=args, data_collator=mask), pieces)

    assert loss(1, chosen) == pytest.approx(loss(2, chosen)) == pytest.approx(loss(5, chosen))
    assert loss(2, ()) is None
