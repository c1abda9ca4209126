"""Adapted encoders: losses, what spaCy loads, corpora, heads, several processes."""

import gzip
import os
import subprocess
import sys

import numpy
import pytest
import spacy

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.encoder_tools.adapt import adapt
from spacy_weakner.encoders.transformer import load_masked_lm
from spacy_weakner.errors import WeaknerError

from ..crf_ner.test_transformer import transformers_of, with_own_encoder
from ..util import distributions, make_doc
from .util import equal, needs_accelerate, run, weights

pytestmark = needs_accelerate


def test_the_loss_falls_and_nothing_is_printed(model, text, out, capfd, monkeypatch):
    monkeypatch.setattr("spacy_weakner.progress._LINE_SECONDS", float("inf"))  # progress is, of what takes long
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
    nlp = with_own_encoder(path)
    docs = list(nlp.pipe(make_doc(nlp, "anna likes york", annotated=False) for _ in range(2)))
    assert all(numpy.isfinite(array).all() for array in distributions(nlp.get_pipe("crf_ner"), docs))
    (found,) = transformers_of(nlp)
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


# Several processes


@pytest.mark.slow
@pytest.mark.long
def test_torchrun_shares_the_work(model, text, tmp_path):
    settings = ["--model", model, "--max-steps", 6, "--batch-size", 8, "--learn-rate", 0.01, "--eval-share", 0.2]
    command = ["-m", "spacy_weakner", "encoder", "adapt", text, tmp_path / "two", *settings, "--lang", "xx"]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    result = subprocess.run([str(x) for x in [*launcher, *command]], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Held-out loss") == 1
    again = run(text, tmp_path / "two", model, max_steps=6)
    assert again.skipped and again.loss_after < again.loss_before
    assert again.loss_before == pytest.approx(run(text, tmp_path / "one", model, max_steps=6).loss_before, rel=0.1)
