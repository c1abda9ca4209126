"""Runs that are stopped, finished, refused, or fail."""

import os
import shutil

import pytest

from spacy_weakner.encoder_tools import adapt as adapt_module
from spacy_weakner.encoder_tools.adapt import adapt
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runtime.lock import locked

from .util import equal, needs_accelerate, run, weights

pytestmark = [needs_accelerate, pytest.mark.slow]


def stop_at(monkeypatch, step):
    """Let the training break off after a step."""
    from spacy_weakner.encoder_tools.trainer import Watch

    def fail(self, args, state, control, **kwargs):
        if state.global_step == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "on_step_end", fail)


# Stopped, finished, refused


def work_of(out):
    """The folder of the checkpoints of the only run."""
    (work,) = out.with_name("out.work").iterdir()
    return work


@pytest.mark.parametrize("stop, saved", [(12, 10), (20, 15)])
def test_a_stopped_run_goes_on(model, text, out, monkeypatch, finished, stop, saved):
    monkeypatch.setattr(adapt_module, "_SAVE_STEPS", 5)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(patch, stop)
        run(text, out, model, max_steps=20)
    work = work_of(out)
    assert not out.exists() and (work / f"checkpoint-{saved}").is_dir()
    # A checkpoint that was being written.
    shutil.copytree(work / f"checkpoint-{saved}", work / "checkpoint-1000")
    (work / "checkpoint-1000" / "trainer_state.json").write_text("{")
    monkeypatch.setattr(adapt_module, "_SAVE_STEPS", 7)
    report = run(text, out, model, max_steps=20)
    assert (report.resumed, report.steps, report.loss_before) == (saved, 20, finished[1].loss_before)
    assert report.loss_after == pytest.approx(finished[1].loss_after, rel=0.1)
    assert os.listdir(out.parent) == ["out"]


def test_a_run_that_was_stopped_before_it_was_published(model, text, out, monkeypatch, finished):
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(adapt_module, "save_encoder", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
        run(text, out, model, max_steps=20)
    assert os.listdir(out.parent) == ["out.work"]
    assert run(text, out, model, max_steps=20).resumed == 20
    assert equal(weights(out), weights(finished[0]))


def test_checkpoints_of_other_settings_are_not_used(model, text, out, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(patch, 6)
        patch.setattr(adapt_module, "_SAVE_STEPS", 5)
        run(text, out, model)
    assert run(text, out, model, learn_rate=0.1).resumed == 0
    assert (work_of(out) / "checkpoint-5").is_dir()
    shutil.rmtree(out)
    assert run(text, out, model).resumed == 5
    assert os.listdir(out.parent) == ["out"]


def test_without_a_checkpoint_nothing_stays(model, text, out, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_at(patch, 6)
        run(text, out, model)
    assert not os.listdir(out.parent)


def test_what_is_finished_is_skipped(model, text, out, monkeypatch):
    first = run(text, out, model)
    stop_at(monkeypatch, 1)
    monkeypatch.setattr(adapt_module, "_SAVE_STEPS", 3)
    assert run(text, out, model) == first._replace(skipped=True)
    (out / "vocab.txt").write_text("edited")
    with pytest.raises(WeaknerError, match="WK314"):
        run(text, out, model)
    (out / "vocab.txt").unlink()
    with pytest.raises(KeyboardInterrupt):
        run(text, out, model)
    monkeypatch.undo()
    assert run(text, out, model) == first._replace(seconds=pytest.approx(first.seconds, abs=60))
    # Hours of training are replaced only on request.
    with pytest.raises(WeaknerError, match=r"WK314.*other inputs or settings \(mask_rate\)"):
        run(text, out, model, mask_rate=0.3)
    monkeypatch.setattr(adapt_module, "code_version", lambda: "another")
    with pytest.raises(WeaknerError, match=r"WK314.*another version"):
        run(text, out, model)
    monkeypatch.undo()
    assert run(text, out, model, mask_rate=0.3, overwrite=True).loss_after != first.loss_after


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
    run(text, out.with_name("c"), model, max_steps=1)
    assert os.listdir(work) == ["mine.txt"]


def test_two_runs_for_one_output(model, text, out):
    with locked(out), pytest.raises(WeaknerError, match="WK787"):
        run(text, out, model)


# Errors


@pytest.mark.parametrize(
    "setting, value",
    [
        ("epochs", 0),
        ("max_steps", 0),
        ("batch_size", 0),
        ("seed", -1),
        ("eval_share", 1),
        ("eval_share", 0.999999),
        ("mask_rate", 0),
        ("learn_rate", 0),
        ("gpu_id", -2),
        ("mixed_precision", "bf16"),
        ("mixed_precision", "int8"),
        ("max_length", 2),
        ("max_length", 33),
    ],
)
def test_settings_out_of_range(model, text, out, setting, value):
    with pytest.raises(WeaknerError, match=f"WK005.*'{setting}' = '?{value}"):
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
    with pytest.raises(WeaknerError, match=r"WK432.*GPU 99"):
        run(text, out, model, gpu_id=99)
    with pytest.raises(WeaknerError, match=r"WK006.*nan"):
        run(text, out, model, learn_rate=1e30)
    with pytest.raises(WeaknerError, match=r"WK005.*inputs"):
        adapt([], out, model)
    with pytest.raises(WeaknerError, match=r"WK005.*'model'.*--vars\.transformer"):
        adapt([text], out, "")
    monkeypatch.setattr("spacy_weakner.errors.find_spec", lambda name: None if name == "accelerate" else 1)
    with pytest.raises(WeaknerError, match=r"WK350.*accelerate"):
        run(text, out, model)
    assert set(os.listdir(out.parent)) == names
