"""Pieces, batches, masks."""

from itertools import chain

import numpy
import pytest
import spacy

from spacy_weakner.encoder_tools.masking import IGNORED, MaskedPieces, Plan, Schedule
from spacy_weakner.encoder_tools.pieces import FIRST, HELD_OUT, INNER, SPECIAL, TRAIN, PieceCounts, Pieces, write_pieces
from spacy_weakner.encoders.transformer import load_tokenizer

from ..util import make_doc
from .util import needs_accelerate

pytestmark = needs_accelerate


@pytest.fixture
def tokenizer(tiny_bert):
    return load_tokenizer(tiny_bert)


def pieces_of(texts, tokenizer, folder, max_length=32, eval_share=0.0, seed=0):
    nlp = spacy.blank("xx")
    docs = (make_doc(nlp, text, annotated=False) for text in texts)
    counts = write_pieces(docs, tokenizer, folder, max_length=max_length, eval_share=eval_share, seed=seed)
    return counts, Pieces(folder / TRAIN), Pieces(folder / HELD_OUT)


def test_pieces(tokenizer, tmp_path):
    counts, pieces, held_out = pieces_of(["anna likes zoe", "", "bob"], tokenizer, tmp_path)
    assert counts == PieceCounts(texts=2, words=4, pieces=6) and (len(pieces), len(held_out)) == (2, 0)
    ids, kinds = pieces[0]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "anna", "likes", "z", "##o", "##e", "[SEP]"]
    assert list(kinds) == [SPECIAL, FIRST, FIRST, FIRST, INNER, INNER, SPECIAL]
    assert list(pieces.lengths) == [7, 3]
    # What was written is not written again.
    assert pieces_of(["bob"], tokenizer, tmp_path)[0] == counts


def test_long_texts_are_split(tokenizer, tmp_path):
    counts, pieces, _ = pieces_of(["anna likes zoe at york", "bob"], tokenizer, tmp_path, max_length=5)
    assert (counts.texts, counts.split, counts.pieces) == (2, 1, 8)
    found = [tokenizer.convert_ids_to_tokens(pieces[i][0])[1:-1] for i in range(len(pieces))]
    assert found == [["anna", "likes", "z"], ["##o", "##e", "at"], ["york"], ["bob"]]


def test_contents_decide_what_is_held_out(tokenizer, tmp_path):
    texts = [f"{a} likes {b}" for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    counts, _, held_out = pieces_of(texts, tokenizer, tmp_path / "a", eval_share=0.25)
    assert 70 < counts.held_out < 130
    twice = [text.upper() for text in texts[::-1]] + texts
    again, pieces, held_out_again = pieces_of(twice, tokenizer, tmp_path / "b", eval_share=0.25)
    assert again.held_out == 2 * counts.held_out
    as_set = [{tuple(x[i][0]) for i in range(len(x))} for x in (pieces, held_out, held_out_again)]
    assert as_set[1] == as_set[2] and not as_set[0] & as_set[1]
    other = pieces_of(texts, tokenizer, tmp_path / "c", eval_share=0.25, seed=1)[2]
    assert {tuple(other[i][0]) for i in range(len(other))} != as_set[1]


def plan(**settings):
    default = {"steps": 100, "batch_size": 8, "mask_rate": 0.15, "whole_word": False, "seed": 0}
    return Plan(**{**default, **settings})


@pytest.mark.parametrize("n, batch_size", [(1, 8), (8, 8), (9, 8), (1000, 8), (1003, 1)])
def test_every_epoch_has_every_sequence_once(n, batch_size):
    schedule = Schedule(numpy.random.default_rng(0).integers(3, 60, n), plan(batch_size=batch_size))
    batches = schedule.epoch(0)
    assert sorted(numpy.concatenate(batches)) == list(range(n))
    assert max(map(len, batches)) <= batch_size and min(map(len, batches)) >= min(n, batch_size / 2)
    assert len(list(schedule)) == len(schedule) == 100


def test_batches_hold_similar_lengths():
    lengths = numpy.random.default_rng(0).integers(3, 60, 1000)
    batches = Schedule(lengths, plan()).epoch(0)
    spread = [lengths[batch].max() - lengths[batch].min() for batch in batches]
    assert numpy.mean(spread) < 5
    means = [lengths[batch].mean() for batch in batches]
    assert abs(numpy.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3


def test_processes_share_the_batches():
    lengths = numpy.random.default_rng(0).integers(3, 60, 50)
    whole = list(Schedule(lengths, plan()))
    shares = zip(*(Schedule(lengths, plan(), i, 3) for i in range(3)), strict=True)
    assert [sorted(chain(*share)) for share in shares] == [sorted(batch) for batch in whole]
    assert whole[0] != whole[7] and {epoch for batch in whole for epoch, _ in batch} == set(range(15))


@pytest.mark.parametrize("whole_word", [False, True])
def test_masks(tokenizer, tmp_path, whole_word):
    _, pieces, _ = pieces_of(["anna likes zoe at york smith"] * 2, tokenizer, tmp_path)
    masked = MaskedPieces(pieces, tokenizer, plan(mask_rate=0.3, whole_word=whole_word))
    ids, kinds = pieces[0]
    draws = [masked[epoch, 0] for epoch in range(3000)]
    inputs, labels = (numpy.array(arrays) for arrays in zip(*draws, strict=True))
    chosen = labels != IGNORED
    assert (labels == numpy.where(chosen, ids, IGNORED)).all() and (
        inputs[~chosen] == numpy.tile(ids, (3000, 1))[~chosen]
    ).all()
    assert not chosen[:, kinds == SPECIAL].any()
    assert chosen[:, kinds != SPECIAL].mean() == pytest.approx(0.3, abs=0.02)
    # "z ##o ##e": together, or each for itself.
    together = chosen[:, 3] == chosen[:, 4]
    assert together.all() if whole_word else together.mean() == pytest.approx(0.58, abs=0.04)
    became = inputs[chosen]
    assert (became == tokenizer.mask_token_id).mean() == pytest.approx(0.8, abs=0.03)
    assert (became == labels[chosen]).mean() == pytest.approx(0.1, abs=0.03)
    assert set(became) > {tokenizer.vocab["##q"], tokenizer.vocab["q"]}
    again, other = masked[7, 0], masked[7, 1]
    assert (again[0] == draws[7][0]).all() and (again[1] == draws[7][1]).all()
    assert (other[0] != again[0]).any() or (other[1] != again[1]).any()


def test_padding(tokenizer, tmp_path):
    _, pieces, _ = pieces_of(["anna likes zoe", "bob"], tokenizer, tmp_path)
    masked = MaskedPieces(pieces, tokenizer, plan())
    batch = masked.collate([masked[0, 0], masked[0, 1]])
    assert batch["attention_mask"].tolist() == [[1] * 7, [1] * 3 + [0] * 4]
    assert (batch["input_ids"][1, 3:] == tokenizer.pad_token_id).all() and (batch["labels"][1, 3:] == IGNORED).all()


@pytest.mark.parametrize(
    "kind", ["Bert", "Roberta", "XLMRoberta", "DistilBert", "Electra", "Albert", "DebertaV2", "MPNet", "ModernBert"]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of their own modules
def test_the_loss_is_that_of_the_model(kind, tokenizer, tmp_path):
    import torch
    import transformers

    from spacy_weakner.encoder_tools.mlm import MaskedLMTrainer, Watch, make_arguments

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    if kind == "DistilBert":
        sizes = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    if kind in ("Albert", "Electra"):
        sizes["embedding_size"] = 8
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), pad_token_id=0, **special, **sizes)
    model = getattr(transformers, f"{kind}ForMaskedLM")(config).eval()
    masked = MaskedPieces(pieces_of(["anna likes zoe", "bob"], tokenizer, tmp_path)[1], tokenizer, plan(mask_rate=0.7))
    batch = {k: torch.from_numpy(v) for k, v in masked.collate([masked[0, 0], masked[0, 1]]).items()}
    with torch.no_grad():
        expected = model(**batch).loss
        args = make_arguments(tmp_path, gpu_id=-1, mixed_precision="no")
        trainer = MaskedLMTrainer(model, args, masked, Watch(100, 0, hidden=True))
        assert trainer.compute_loss(model, batch).item() == pytest.approx(expected.item(), rel=1e-5)
        # A batch without masks teaches nothing.
        batch["labels"][:] = IGNORED
        assert trainer.compute_loss(model, batch).item() == 0
