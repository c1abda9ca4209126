import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import UNFINISHED, read_docs, receipt_path, write_docs
from spacy_weakner.errors import WeaknerError
from spacy_weakner.runtime.inputs import SpacyFile
from spacy_weakner.runtime.shards import Shards
from spacy_weakner.runtime.stage import Report, Stage

from ..util import contents

NLP = spacy.blank("xx")


@pytest.fixture
def corpus(tmp_path):
    for name, words in {"a": "one two", "sub/b": "three four", "c": "five"}.items():
        docs = [Doc(NLP.vocab, words=[word]) for word in words.split()]
        write_docs(tmp_path / "in" / f"{name}.spacy", docs)
    return tmp_path / "in"


def mark(docs):
    for doc in docs:
        weak.set_group(doc, "weak:x", [(0, 1, "X")])
        weak.set_group(doc, "weak:empty", [])
        yield doc


@dataclass
class Words(Report):
    words: "Counter[str]" = field(default_factory=Counter)


class Transform(Stage[Words]):
    report = Words

    def __init__(self, name, transform, settings, vocab):
        super().__init__(settings, vocab)
        self.name = name
        self.transform = transform

    def __call__(self, docs):
        for doc in self.transform(docs):
            self.stats.words[doc[0].text] += 1
            yield doc


def run(source, target, transform=mark, settings=None, stage="test", vocab=NLP.vocab):
    return Shards(stage, source, target).run(Transform(stage, transform, settings or {"a": 1}, vocab))


def test_every_shard_keeps_its_name(corpus, tmp_path):
    report = run(corpus, tmp_path / "out")
    assert (report.written, report.skipped, report.docs_in, report.docs) == (3, 0, 5, 5)
    names = ["a.spacy", "a.spacy.json", "c.spacy", "c.spacy.json", "sub/b.spacy", "sub/b.spacy.json"]
    assert sorted(contents(tmp_path / "out")) == names
    docs = list(read_docs(tmp_path / "out", NLP.vocab))
    assert [doc[0].text for doc in docs] == ["one", "two", "five", "three", "four"]
    assert all(weak.weak_sources(doc) == ["empty", "x"] for doc in docs)


def test_file_as_output_takes_all(corpus, tmp_path):
    report = run(corpus, tmp_path / "all.spacy")
    assert report.written == 1
    assert len(list(read_docs(tmp_path / "all.spacy", NLP.vocab))) == 5
    assert run(corpus, tmp_path / "all.spacy").skipped == 1


def test_finished_shards_are_skipped(corpus, tmp_path):
    run(corpus, tmp_path / "out")
    times = {f: f.stat().st_mtime_ns for f in (tmp_path / "out").rglob("*")}
    report = run(corpus, tmp_path / "out")
    assert (report.written, report.skipped, report.docs) == (0, 3, 5)
    assert {f: f.stat().st_mtime_ns for f in (tmp_path / "out").rglob("*")} == times


def test_what_is_missing_is_known_without_reading_the_input(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(SpacyFile, "key", lambda self: pytest.fail("read"))
    assert list(Shards("test", corpus, tmp_path / "out").pending(Transform("test", mark, {}, NLP.vocab))) == [0, 1, 2]


def test_changes_redo_only_what_they_touch(corpus, tmp_path):
    out = tmp_path / "out"
    run(corpus, out)
    assert run(corpus, out, settings={"a": 2}).written == 3
    write_docs(corpus / "a.spacy", [Doc(NLP.vocab, words=["changed"])])
    assert run(corpus, out, settings={"a": 2}).written == 1
    (out / "c.spacy").write_bytes(b"damaged")
    assert run(corpus, out, settings={"a": 2}).written == 1
    for broken in ("{broken", '{"shard": "c.spacy"}', "{}", "[1]"):
        receipt_path(out / "c.spacy").write_text(broken)
        assert run(corpus, out, settings={"a": 2}).written == 1
    assert run(corpus, out, settings={"a": 2}).written == 0


def test_shards_of_an_earlier_run_are_counted(corpus, tmp_path):
    out = tmp_path / "out"
    assert (run(corpus, out).replaced, run(corpus, out).replaced) == (0, 0)
    assert run(corpus, out, settings={"a": 2}).replaced == 3
    (out / "a.spacy").unlink()
    receipt_path(out / "c.spacy").write_text("{broken")
    (out / "sub" / "b.spacy").write_bytes(b"damaged")
    report = run(corpus, out, settings={"a": 2})
    assert (report.written, report.replaced) == (3, 0)
    write_docs(corpus / "a.spacy", [Doc(NLP.vocab, words=["changed"])])
    (corpus / "c.spacy").unlink()
    report = run(corpus, out, settings={"a": 2})
    assert (report.written, report.skipped, report.replaced) == (1, 1, 2)
    assert not (out / "c.spacy").exists() and not receipt_path(out / "c.spacy").exists()


@pytest.mark.parametrize("damage", [{"files": None}, {"report": None}, {"report": []}])
def test_shards_whose_receipts_tell_nothing_are_made_anew(corpus, tmp_path, damage):
    first, path = run(corpus, tmp_path / "out"), receipt_path(tmp_path / "out" / "a.spacy")
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    report = run(corpus, tmp_path / "out")
    assert (report.written, report.docs, report.words) == (1, first.docs, first.words)


def test_interrupt_keeps_finished_shards_and_a_rerun_gives_the_same_bytes(corpus, tmp_path):
    run(corpus, tmp_path / "whole")

    def interrupted(docs):
        for doc in mark(docs):
            if doc[0].text == "four":
                raise KeyboardInterrupt
            yield doc

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run(corpus, out, interrupted)
    assert sorted(contents(out)) == [UNFINISHED, "a.spacy", "a.spacy.json", "c.spacy", "c.spacy.json"]
    report = run(corpus, out)
    assert (report.written, report.skipped) == (1, 2)
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.parametrize("target", ["in", "in/out", "in/a.spacy"])
def test_input_is_never_overwritten(corpus, tmp_path, target):
    before = contents(corpus)
    with pytest.raises(WeaknerError, match="WK304"):
        run(corpus, tmp_path / target)
    with pytest.raises(WeaknerError, match="WK304"):
        run(corpus / "a.spacy", corpus)
    assert contents(corpus) == before


def test_files_of_others_are_never_overwritten(corpus, tmp_path):
    gold = tmp_path / "dev.spacy"
    write_docs(gold, [])
    with pytest.raises(WeaknerError, match=r"WK300.*dev\.spacy"):
        run(corpus, gold)
    (tmp_path / "out").mkdir()
    gold.rename(tmp_path / "out" / "dev.spacy")
    with pytest.raises(WeaknerError, match=r"WK300.*dev\.spacy"):
        run(corpus, tmp_path / "out")


def test_shards_of_an_earlier_run_stay_if_the_new_one_fails(corpus, tmp_path):
    run(corpus, tmp_path / "out")
    before = contents(tmp_path / "out")
    (corpus / "c.spacy").unlink()

    def fail(docs):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run(corpus, tmp_path / "out", fail, {"a": 2})
    assert contents(tmp_path / "out") == before


def test_output_above_the_input_is_refused(corpus, tmp_path):
    run(corpus, tmp_path / "work" / "labeled")
    before = contents(tmp_path)
    for target in ("work", "."):
        with pytest.raises(WeaknerError, match="WK304"):
            run(tmp_path / "work" / "labeled", tmp_path / target, stage="next")
        with pytest.raises(WeaknerError, match="WK304"):
            run(tmp_path / "work" / "labeled" / "sub" / "b.spacy", tmp_path / target)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("earlier", [["out/gaz", "out/gaz2"], ["out/all.spacy"], ["out/deep/er/all.spacy"]])
def test_earlier_results_below_the_output_are_never_removed(corpus, tmp_path, earlier):
    for target in earlier:
        run(corpus, tmp_path / target)
    before = contents(tmp_path)
    with pytest.raises(WeaknerError, match="WK300"):
        run(corpus, tmp_path / "out")
    assert contents(tmp_path) == before


def test_results_of_another_stage_are_never_overwritten(corpus, tmp_path):
    run(corpus, tmp_path / "out")
    run(corpus, tmp_path / "all.spacy")
    before = contents(tmp_path)
    for source, target in ((corpus, "out"), (corpus, "all.spacy"), (corpus / "a.spacy", "out")):
        with pytest.raises(WeaknerError, match="WK300"):
            run(source, tmp_path / target, stage="next")
    assert contents(tmp_path) == before


def test_another_version_redoes(corpus, tmp_path, monkeypatch):
    run(corpus, tmp_path / "out")
    monkeypatch.setattr("spacy_weakner.runtime.shards.code_version", lambda: "99.0")
    assert run(corpus, tmp_path / "out").written == 3
    assert run(corpus, tmp_path / "out").skipped == 3


@pytest.mark.parametrize("name", ["out.jsonl", "out.txt", "out.spacy.gz"])
def test_other_formats_are_refused_as_output(corpus, tmp_path, name):
    with pytest.raises(WeaknerError, match=r"WK305.*must be a \.spacy file"):
        run(corpus, tmp_path / name)
    assert not (tmp_path / name).exists()
    (tmp_path / "run-1.5").mkdir()
    assert run(corpus, tmp_path / "run-1.5").written == 3


def test_vocabulary_does_not_grow_after_the_first_shard(tmp_path):
    for i in range(3):
        words = [[f"w{i}x{j}"] for j in range(50)]
        write_docs(tmp_path / "in" / f"{i}.spacy", [Doc(Vocab(), words=w) for w in words])
    vocab = Vocab()
    vocab.strings.add("X")
    sizes = []

    def count(docs):
        sizes.append(len(vocab.strings))
        yield from mark(docs)

    run(tmp_path / "in", tmp_path / "out", count, vocab=vocab)
    assert sizes[0] <= sizes[1] == sizes[2] == len(vocab.strings)
    assert len(list(read_docs(tmp_path / "out", Vocab()))) == 150


def test_missing_and_empty_input(tmp_path):
    with pytest.raises(WeaknerError, match="WK100"):
        run(tmp_path / "none", tmp_path / "out")
    (tmp_path / "in").mkdir()
    with pytest.raises(WeaknerError, match="WK101"):
        run(tmp_path / "in", tmp_path / "out")
    write_docs(tmp_path / "in" / "a.spacy", [])
    with pytest.raises(WeaknerError, match="WK101"):
        run(tmp_path / "in", tmp_path / "out")
