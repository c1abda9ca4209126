"""Runs: what is skipped, errors, the command line."""

import shutil
from dataclasses import replace

import pytest

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.encoders.transformer import load_masked_lm
from spacy_weakner.errors import WeaknerError
from spacy_weakner.relabel import augment as augment_module
from spacy_weakner.relabel.augment import AugmentReport, augment

from ...cli.util import invoke as run_command
from ...util import make_doc, needs_transformers
from .util import NLP, make_model, many, run, texts

pytestmark = needs_transformers


def test_what_is_finished_is_skipped(tmp_path, model, monkeypatch):
    first, found = run(tmp_path, many(), model)
    with monkeypatch.context() as patch:
        patch.setattr(augment_module, "load_masked_lm", lambda name: pytest.fail("is not needed"))
        patch.setattr(augment_module, "BATCH_SIZE", 3)
        report, again = run(tmp_path, many(), model)
    assert report == replace(first, skipped=1, seconds=report.seconds) and texts(again) == texts(found)
    assert run(tmp_path, many(), model, seed=1)[0].skipped == 0
    assert run(tmp_path, many(), model, seed=1)[0].skipped == 1


def test_another_model_makes_it_anew(tmp_path, model, to_here):
    shutil.copytree(model, tmp_path / "model")
    run(tmp_path, many(), tmp_path / "model")
    shutil.rmtree(tmp_path / "model")
    shutil.copytree(to_here, tmp_path / "model")
    assert run(tmp_path, many(), tmp_path / "model")[0].skipped == 0


def test_without_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(augment_module, "load_masked_lm", lambda name: pytest.fail("is not needed"))
    docs = many(5)
    weak.set_augmented(docs[0], [token.text for token in docs[0]])
    report, found = run(tmp_path, docs, "none")
    assert [weak.get_augmented(doc) for doc in found] == [None] * 5
    assert replace(report, seconds=0) == AugmentReport(docs_in=5, docs=5, written=1, words=sum(map(len, docs)))


def test_without_a_head(tmp_path, tiny_bert):
    with pytest.raises(WeaknerError, match=r"WK354.*--train-head"):
        run(tmp_path, many(3), tiny_bert)
    assert [path.name for path in tmp_path.iterdir()] == ["in.spacy"]


def test_predictions_that_are_no_numbers(tmp_path, tiny_bert):
    path = make_model(tiny_bert, tmp_path / "model")
    masked_lm = load_masked_lm(path)
    masked_lm.model.cls.predictions.bias.data.fill_(float("nan"))
    masked_lm.model.save_pretrained(path)
    with pytest.raises(WeaknerError, match=r"WK343.*'bob'"):
        run(tmp_path, [make_doc(NLP, "bob")], path)
    assert not (tmp_path / "out.spacy").exists()


def test_input_that_is_none(tmp_path, model):
    (tmp_path / "in.spacy").write_bytes(b"damaged")
    with pytest.raises(WeaknerError, match="WK206"):
        augment(tmp_path / "in.spacy", tmp_path / "out.spacy", model)
    with pytest.raises(WeaknerError, match="WK100"):
        augment(tmp_path / "nothing", tmp_path / "out.spacy", model)
    write_docs(tmp_path / "in.spacy", [])
    with pytest.raises(WeaknerError, match="WK101"):
        augment(tmp_path / "in.spacy", tmp_path / "out.spacy", model)
    with pytest.raises(WeaknerError, match="WK304"):
        augment(tmp_path / "in.spacy", tmp_path / "in.spacy", model)
    with pytest.raises(WeaknerError, match="WK100"):
        run(tmp_path, many(1), tmp_path / "nothing")


@pytest.mark.parametrize(
    "setting, value, code",
    [
        ("mask_rate", -0.1, "WK005"),
        ("mask_rate", 1.1, "WK005"),
        ("mask_rate", float("nan"), "WK005"),
        ("top_k", 0, "WK005"),
        ("gpu_id", -2, "WK005"),
        ("gpu_id", 99, "WK432"),
    ],
)
def test_unusable_settings(tmp_path, model, setting, value, code):
    with pytest.raises(WeaknerError, match=code):
        run(tmp_path, many(1), model, **{setting: value})
    assert not (tmp_path / "out.spacy").exists()


# The command line


def invoke(*args):
    return run_command("relabel", "augment", *args)


def test_what_the_command_says(tmp_path, to_here):
    write_docs(tmp_path / "in.spacy", [make_doc(NLP, "Anna went here"), make_doc(NLP, "bob " * 40)])
    for message in ("replaced: 42 (97.7 %)", "for which the word is kept: 0", "read in parts: 1"):
        result = invoke(tmp_path / "in.spacy", tmp_path / "out.spacy", "--model", to_here)
        assert result.exit_code == 0 and message in " ".join(result.output.split()), result.output
    assert "already finished: 1" in result.output
    result = invoke(tmp_path / "in.spacy", tmp_path / "copy.spacy", "--model", "none")
    assert "No masked language model: nothing is augmented" in result.output and "replaced" not in result.output
