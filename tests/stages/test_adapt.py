"""Adapting encoders. The models are tiny and made on the fly."""

import fcntl
import gc
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain

import numpy
import pytest
import spacy

from spacy_weakner.annotations.corpus import write_docs
from spacy_weakner.encoders.transformer import load_masked_lm, load_tokenizer
from spacy_weakner.errors import WeaknerError
from spacy_weakner.stages import adapt as adapt_module
from spacy_weakner.stages.adapt import adapt
from spacy_weakner.stages.adapting.masking import IGNORED, MaskedPieces, Plan, Schedule
from spacy_weakner.stages.adapting.pieces import FIRST, HELD_OUT, INNER, SPECIAL, TRAIN, Pieces, write_pieces

from ..util import crf_config, make_doc, make_examples

pytestmark = [
    pytest.mark.skipif(not (find_spec("transformers") and find_spec("accelerate")), reason="needs 'transformers'"),
]
SETTINGS = {"batch_size": 8, "learn_rate": 1e-2, "eval_share": 0.2, "lang": "xx"}


@pytest.fixture(scope="module", autouse=True)
def fewer_objects():
    """A `Trainer` collects garbage at its begin, which takes long where as much is imported as here."""
    import spacy_weakner.stages.adapting.mlm  # noqa: F401

    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def model(tiny_bert, tmp_path_factory):
    """A BERT of two layers with a head."""
    import transformers

    path = tmp_path_factory.mktemp("masked-lm")
    tokenizer = load_tokenizer(tiny_bert)
    config = transformers.AutoConfig.from_pretrained(tiny_bert, num_hidden_layers=2)
    transformers.set_seed(0)
    transformers.BertForMaskedLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """80 sentences, each on a line."""
    draw = random.Random(0)
    names = ["anna", "bob", "smith", "zoe"]
    lines = [f"{draw.choice(names)} likes {draw.choice(names)}" + " at york" * draw.randrange(4) for _ in range(80)]
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture(scope="module")
def finished(model, text, tmp_path_factory):
    """An encoder adapted without disturbance, and the report. Never write there."""
    output = tmp_path_factory.mktemp("finished") / "out"
    return output, run(text, output, model, max_steps=20)


def run(text, output, model, **settings):
    return adapt([text], output, model, **{"max_steps": 10, **SETTINGS, **settings})


def weights(path):
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def equal(a, b, tolerance=0.0):
    return list(a) == list(b) and all(a[key].allclose(b[key], rtol=tolerance, atol=tolerance) for key in a)


def stop_at(monkeypatch, step):
    """Let the training break off after a step."""
    from spacy_weakner.stages.adapting.mlm import Watch

    def fail(self, args, state, control, **kwargs):
        if state.global_step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "on_step_end", fail)


# The whole


def test_the_loss_falls_and_nothing_is_printed(model, text, out, capfd):
    report = run(text, out, model, max_steps=20, progress=True)
    assert report.loss_after < 0.9 * report.loss_before
    assert report.perplexity_before == pytest.approx(numpy.exp(report.loss_before))
    assert (report.texts + report.held_out, report.steps, report.split) == (80, 20, 0)
    assert report.words < report.pieces and report.held_out > 5
    assert (report.resumed, report.new_head, report.skipped) == (0, False, False)
    assert capfd.readouterr() == ("", "")
    assert os.listdir(out.parent) == ["out"]


def test_an_encoder_for_spacy(model, finished, monkeypatch):
    path, _ = finished
    adapted = weights(path)
    assert not equal(adapted, weights(model) | {key: adapted[key] for key in adapted if "pooler" in key})
    for architecture in ("TransformerModel", "Tok2VecTransformer"):
        if find_spec("spacy_transformers") is None:
            pytest.skip("needs spacy-transformers")
        nlp = spacy.blank("xx")
        encoder = {
            "@architectures": f"spacy-transformers.{architecture}.v3",
            "name": str(path),
            "tokenizer_config": {"use_fast": True},
            "get_spans": {"@span_getters": "spacy-transformers.doc_spans.v1"},
        }
        pooling = {"pooling": {"@layers": "reduce_mean.v1"}, "grad_factor": 1.0}
        if architecture == "TransformerModel":
            nlp.add_pipe("transformer", config={"model": encoder})
            listener = {"@architectures": "spacy-transformers.TransformerListener.v1", "upstream": "*", **pooling}
            nlp.add_pipe("crf_ner", config=crf_config(listener))
        else:
            nlp.add_pipe("crf_ner", config=crf_config({**encoder, **pooling}))
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        docs = list(nlp.pipe(make_doc(nlp, "anna likes york", annotated=False) for _ in range(2)))
        assert all(numpy.isfinite(array).all() for array in nlp.get_pipe("crf_ner").distributions(docs))
        shims = (shim for node in nlp.get_pipe(nlp.pipe_names[0]).model.walk() for shim in node.shims)
        found = next(shim._model for shim in shims if hasattr(shim._model, "embeddings"))
        found = {f"bert.{key}": value for key, value in found.state_dict().items()}
        assert equal(found, {key: adapted[key] for key in found})


def test_every_draw_comes_from_the_seed(model, text, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(text, tmp_path / name, model, seed=seed)
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert equal(a, b) and not equal(a, c)


def test_several_corpora_in_several_formats(model, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"tokens": ["anna", "smith"], "ents": [[0, 2, "PER"]]}\n{"text": "bob. zoe."}\n')
    (tmp_path / "b.conll").write_text("new B-LOC\nyork I-LOC\n\nhere O\n")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"paris likes anna. bob went.\n\nnothing here\n"))
    (tmp_path / "d").mkdir()
    write_docs(tmp_path / "d" / "d.spacy", [make_doc(spacy.blank("xx"), "zoe at all")])
    inputs = [tmp_path / name for name in ("a.jsonl", "b.conll", "c.txt.gz", "d")]
    report = adapt(inputs, tmp_path / "out", model, eval_share=0, max_steps=1)
    assert (report.texts, report.held_out, report.words) == (9, 0, 21)
    assert report.loss_before is None and report.perplexity_after is None


def test_a_new_head(tiny_bert, text, out):
    with pytest.raises(WeaknerError, match=r"WK354.*--train-head"):
        run(text, out, tiny_bert)
    assert not os.listdir(out.parent)
    report = run(text, out, tiny_bert, train_head=True)
    assert report.new_head and report.loss_after < report.loss_before
    assert not load_masked_lm(out).new_head


# Stopped, finished, refused


@pytest.mark.parametrize("stop, saved", [(12, 10), (9, 5), (20, 15)])
def test_a_stopped_run_ends_as_an_undisturbed_one(model, text, out, monkeypatch, finished, stop, saved):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(patch, stop)
        run(text, out, model, max_steps=20, save_steps=5)
    work = out.with_name("out.work")
    assert not out.exists() and (work / f"checkpoint-{saved}").is_dir()
    # A checkpoint that was being written.
    shutil.copytree(work / f"checkpoint-{saved}", work / "checkpoint-1000")
    (work / "checkpoint-1000" / "trainer_state.json").write_text("{")
    report = run(text, out, model, max_steps=20, save_steps=7)
    assert report.resumed == saved
    assert equal(weights(out), weights(finished[0]))
    assert (report.loss_before, report.loss_after) == (finished[1].loss_before, finished[1].loss_after)
    assert not work.exists()


def test_a_run_that_was_stopped_before_it_was_published(model, text, out, monkeypatch, finished):
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(adapt_module, "save_encoder", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
        run(text, out, model, max_steps=20)
    assert os.listdir(out.parent) == ["out.work"]
    assert run(text, out, model, max_steps=20).resumed == 20
    assert equal(weights(out), weights(finished[0]))


def test_checkpoints_of_another_run_are_refused(model, text, out, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(patch, 6)
        run(text, out, model, save_steps=5)
    with pytest.raises(WeaknerError, match=r"WK355.*out\.work.*'adapt' with other learn_rate, whole_word\."):
        run(text, out, model, learn_rate=0.1, whole_word=True)
    other = out.with_name("b.txt")
    other.write_text(text.read_text() + "zoe went\n")
    with pytest.raises(WeaknerError, match=r"WK355.*other inputs\."):
        run(other, out, model)
    assert run(text, out, model).resumed == 5


def test_without_a_checkpoint_nothing_stays(model, text, out, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(patch, 6)
        run(text, out, model)
    assert not os.listdir(out.parent)
    # What a killed process leaves.
    work = out.with_name("out.work")
    (work / TRAIN).mkdir(parents=True)
    (work / "receipt.json").write_text('{"stage": "adapt"}')
    assert run(text, out, model).resumed == 0


def test_what_is_finished_is_skipped(model, text, out, monkeypatch):
    first = run(text, out, model, keep_checkpoints=True)
    assert (out.with_name("out.work") / "checkpoint-10").is_dir()
    shutil.rmtree(out.with_name("out.work"))
    stop_at(monkeypatch, 1)
    assert run(text, out, model, save_steps=3) == first._replace(skipped=True)
    (out / "vocab.txt").write_text("damaged")
    with pytest.raises(KeyboardInterrupt):
        run(text, out, model)
    monkeypatch.undo()
    assert run(text, out, model) == first._replace(seconds=pytest.approx(first.seconds, abs=60))
    assert run(text, out, model, mask_rate=0.3).loss_after != first.loss_after


def test_outputs_of_others_are_left_alone(model, text, out):
    out.mkdir()
    run(text, out, model, max_steps=1)
    (out / "mine.txt").write_text("")
    with pytest.raises(WeaknerError, match="WK300"):
        run(text, out, model, max_steps=2)
    for path in (model, text.parent, text):
        with pytest.raises(WeaknerError, match="WK304"):
            run(text, path, model)
    shutil.copytree(model, out.with_name("b"))
    with pytest.raises(WeaknerError, match="WK300"):
        run(text, out.with_name("b"), model)
    work = out.with_name("c.work")
    work.mkdir()
    (work / "mine.txt").write_text("")
    with pytest.raises(WeaknerError, match="WK300"):
        run(text, out.with_name("c"), model)
    assert (work / "mine.txt").exists()


def test_two_runs_for_one_output(model, text, out):
    work = out.with_name("out.work")
    work.mkdir()
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(WeaknerError, match="WK356"):
            run(text, out, model)


# Errors


@pytest.mark.parametrize(
    "setting, value",
    [
        ("epochs", 0),
        ("max_steps", 0),
        ("batch_size", 0),
        ("save_steps", 0),
        ("seed", -1),
        ("eval_share", 1),
        ("eval_share", 0.999999),
        ("warmup", -0.1),
        ("mask_rate", 0),
        ("learn_rate", 0),
        ("weight_decay", -1),
        ("gpu_id", -2),
        ("mixed_precision", "bf16"),
        ("mixed_precision", "int8"),
        ("max_length", 2),
        ("max_length", 33),
    ],
)
def test_settings_out_of_range(model, text, out, setting, value):
    with pytest.raises(WeaknerError, match=f"WK005.*'{setting}' = {value}"):
        run(text, out, model, **{setting: value})
    assert not os.listdir(out.parent)


def test_other_errors(model, text, out, monkeypatch):
    (out.parent / "empty.txt").write_text("\n\n")
    (out.parent / "bad.jsonl").write_text('{"text": 1}\n')
    names = set(os.listdir(out.parent))
    for name, message in (("empty.txt", "WK101.*empty.txt"), ("none.txt", "WK100"), ("bad.jsonl", "WK103.*line 1")):
        with pytest.raises(WeaknerError, match=message):
            run(out.parent / name, out, model)
    with pytest.raises(WeaknerError, match=r"WK100.*none"):
        run(text, out, out.parent / "none")
    with pytest.raises(WeaknerError, match=r"WK351.*nobody/nothing"):
        run(text, out, "nobody/nothing")
    with pytest.raises(WeaknerError, match=r"WK357.*GPU 99"):
        run(text, out, model, gpu_id=99)
    with pytest.raises(WeaknerError, match=r"WK006.*nan"):
        run(text, out, model, learn_rate=1e30)
    with pytest.raises(WeaknerError, match=r"WK005.*inputs"):
        adapt([], out, model)
    monkeypatch.setattr(
        "spacy_weakner.encoders.transformer.find_spec", lambda name: None if name == "accelerate" else 1
    )
    with pytest.raises(WeaknerError, match=r"WK350.*accelerate"):
        run(text, out, model)
    assert set(os.listdir(out.parent)) == names


# Pieces, batches, masks


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
    assert counts == (2, 0, 4, 6, 0) and (len(pieces), len(held_out)) == (2, 0)
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

    from spacy_weakner.stages.adapting.mlm import MaskedLMTrainer, Watch, make_arguments

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


# Several processes


@pytest.mark.slow
def test_torchrun_gives_what_one_process_gives(model, text, tmp_path):
    still = tmp_path / "still"
    shutil.copytree(model, still)
    config = json.loads((still / "config.json").read_text())
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (still / "config.json").write_text(json.dumps({**config, **no_dropout}))
    settings = [
        "--model",
        still,
        "--max-steps",
        6,
        "--batch-size",
        8,
        "--learn-rate",
        0.01,
        "--eval-share",
        0.2,
        "--lang",
        "xx",
    ]
    command = ["-m", "spacy_weakner", "adapt", text, tmp_path / "two", *settings]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    result = subprocess.run([str(x) for x in [*launcher, *command]], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Held-out loss") == 1
    report = run(text, tmp_path / "one", still, max_steps=6)
    assert equal(weights(tmp_path / "one"), weights(tmp_path / "two"), tolerance=1e-4)
    again = run(text, tmp_path / "two", still, max_steps=6)
    assert again.skipped and again.loss_after == pytest.approx(report.loss_after, rel=1e-4)
