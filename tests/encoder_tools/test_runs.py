"""Runs that are stopped, finished, refused, or fail."""

import fcntl
import os
import shutil

import pytest

from spacy_weakner.encoder_tools import adapt as adapt_module
from spacy_weakner.encoder_tools.adapt import adapt
from spacy_weakner.encoder_tools.pieces import TRAIN
from spacy_weakner.errors import WeaknerError

from .util import equal, needs_accelerate, run, weights

pytestmark = needs_accelerate


def stop_at(monkeypatch, step):
    """Let the training break off after a step."""
    from spacy_weakner.encoder_tools.mlm import Watch

    def fail(self, args, state, control, **kwargs):
        if state.global_step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "on_step_end", fail)


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
    with pytest.raises(WeaknerError, match=r"WK005.*'model'.*--vars\.transformer"):
        adapt([text], out, "")
    monkeypatch.setattr(
        "spacy_weakner.encoders.transformer.find_spec", lambda name: None if name == "accelerate" else 1
    )
    with pytest.raises(WeaknerError, match=r"WK350.*accelerate"):
        run(text, out, model)
    assert set(os.listdir(out.parent)) == names
