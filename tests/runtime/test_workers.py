import gzip
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import Doc

from spacy_weakner.corpus.docbin import UNFINISHED, write_docs
from spacy_weakner.corpus.language import RECORD
from spacy_weakner.errors import WeaknerError
from spacy_weakner.labeling.label import label
from spacy_weakner.runtime.pool import processes
from spacy_weakner.runtime.shards import ShardShare
from spacy_weakner.scratch import scratch_folder

from ..util import contents

pytestmark = pytest.mark.slow

NLP = spacy.blank("xx")
SIZE = 4
N = 22  # lines, so 6 shards


@pytest.fixture
def folder(tmp_path, without_torch):
    words = ["alpha", "beta", "gamma", "delta"]
    texts = [f"{words[i % 4]} met {words[i % 3]} number{i}" for i in range(N)]
    (tmp_path / "in.txt").write_text("\n".join(texts) + "\n")
    (tmp_path / "terms.csv").write_text("label,term\nA,alpha\nB,beta met\nA,beta\n")
    rows = [{"text": text, "entities": [["met", "V"]]} for text in texts[::-2]]
    (tmp_path / "llm.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    (tmp_path / "patterns.jsonl").write_text('{"label": "N", "pattern": [{"TEXT": {"REGEX": "^number"}}]}\n')
    nlp = spacy.blank("xx")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "G", "pattern": "gamma"}])
    nlp.to_disk(tmp_path / "model")
    config = ["terms = 'terms.csv'", "file = 'llm.jsonl.gz'", "patterns = 'patterns.jsonl'", "pipeline = 'model'"]
    sections = [f"[sources.s{i}]\n{line}\n" for i, line in enumerate(config)]
    (tmp_path / "sources.cfg").write_text("".join(sections).replace("'", '"'))
    (tmp_path / "dev.txt").write_text("Alpha met Alpha number0\n")
    return tmp_path


def run(folder, out, **settings):
    settings = {"sources": folder / "sources.cfg", "exclude": [folder / "dev.txt"], **settings}
    return label(folder / "in.txt", folder / out, lang="xx", shard_size=SIZE, **settings)


def leftovers(folder):
    return [f for f in folder.rglob("*") if f.name.startswith(".") and f.name != UNFINISHED]


def test_parts_give_the_same_bytes(folder):
    whole = run(folder, "one")
    assert whole.docs == N - 1 and whole.excluded == 1 and whole.skipped == 0
    assert [sum(source.spans.values()) for source in whole.sources] == [31, 11, 21, 12]
    assert (whole.sources[1].docs_without_row, whole.sources[1].docs_with_row) == (10, N - 11)
    run(folder, "parts", shard="2/2")
    names = ["part-00001.spacy", "part-00003.spacy", "part-00005.spacy"]
    assert sorted(contents(folder / "parts")) == sorted(
        [UNFINISHED, RECORD, *names, *(f"{name}.json" for name in names)]
    )
    run(folder, "parts", shard="1/2")
    assert run(folder, "parts", workers=3) == replace(whole, skipped=6)  # starts nothing
    assert contents(folder / "one") == contents(folder / "parts")  # the mark is gone
    assert not leftovers(folder)


def test_shares():
    shares = ShardShare.parse("2/3").split(2)
    assert shares == [(1, 6), (4, 6)]
    for text in ("", "0/2", "3/2", "1/0", "1", "a/b", "1/2/3", "-1/2"):
        with pytest.raises(WeaknerError, match=r"WK005.*'shard'"):
            ShardShare.parse(text)


def test_parts_leave_other_shards_alone(folder):
    run(folder, "out")
    before = contents(folder / "out")
    (folder / "out" / "gold.spacy").write_bytes(b"foreign")
    (folder / "in.txt").write_text("\n".join((folder / "in.txt").read_text().splitlines()[:9]) + "\n")
    assert run(folder, "out", shard="1/2").skipped == 1  # the other one is the shorter last one
    after = contents(folder / "out")
    assert {name for name in before if before[name] != after[name]} == {"part-00002.spacy", "part-00002.spacy.json"}
    with pytest.raises(WeaknerError, match=r"WK300.*gold\.spacy"):
        run(folder, "out")
    (folder / "out" / "gold.spacy").unlink()
    assert run(folder, "out").skipped == 3
    assert len(contents(folder / "out")) == 7
    assert run(folder, "out", shard="9/9").docs == 0


def test_an_error_of_a_worker_is_one_message(folder):
    rows = [{"text": "alpha"}] * SIZE + [{"text": 5}]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"terms": folder / "terms.csv", "lang": "xx", "shard_size": SIZE, "workers": 2}
    label(folder / "in.jsonl", folder / "out", **{**settings, "workers": 1}, shard="1/2")  # leaves one worker to do
    with pytest.raises(WeaknerError, match=r"WK103.*in\.jsonl, line 5: 'text' must be") as error:
        label(folder / "in.jsonl", folder / "out", **settings)
    assert str(error.value).count("WK") == 1
    assert not leftovers(folder)
    assert sorted(contents(folder / "out")) == [UNFINISHED, "part-00000.spacy", "part-00000.spacy.json", RECORD]


@pytest.mark.slow
@pytest.mark.parametrize("call, argument", [(os._exit, 3), (signal.raise_signal, 9)])
def test_a_process_that_ends_early_ends_the_others(call, argument):
    begin = time.monotonic()
    with pytest.raises(WeaknerError, match="WK313"), processes(2) as pool:
        other = pool.submit(time.sleep, 600)
        list(pool.each(call, [argument], ["the first"]))
    assert time.monotonic() - begin < 300 and other.exception() is not None


def interrupted(path):
    """A call that takes its interruption for something else, as command lines do."""
    path.touch()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    raise ValueError("failed")


@pytest.mark.slow
def test_nothing_begins_in_a_process_that_was_interrupted(tmp_path):
    begin = time.monotonic()
    paths = [tmp_path / str(i) for i in range(4)]
    with pytest.raises(WeaknerError, match=r"WK313.*4 of 4"), processes(1) as pool:
        list(pool.each(interrupted, paths, [path.name for path in paths]))
    assert [path.exists() for path in paths] == [True, False, False, False] and time.monotonic() - begin < 60


SCRIPT = """
import sys
from pathlib import Path
from spacy_weakner.labeling.label import label

folder = Path(sys.argv[1])
print("begin")
print(label(folder / "in.txt", folder / "out", terms=folder / "terms.csv", lang="xx", shard_size=4, workers=2).docs)
"""


@pytest.mark.slow
def test_a_script_is_not_run_again(folder):
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(folder / "script.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"begin\n{N}\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("given, expected", [(None, "1"), ("3", "3")])
def test_threads_of_a_process(monkeypatch, given, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with processes(1) as pool:
        assert [*pool.each(os.getenv, ["OMP_NUM_THREADS"], [""])] == [(0, expected)]
    assert os.environ.get("OMP_NUM_THREADS") == given


def test_settings(folder):
    with pytest.raises(WeaknerError, match="WK312"):
        run(folder, "out.spacy", workers=2)
    with pytest.raises(WeaknerError, match="WK312"):
        run(folder, "out.spacy", shard="1/2")
    for setting in ("workers", "shard_size"):
        with pytest.raises(WeaknerError, match=f"WK005.*'{setting}'"):
            label(folder / "in.txt", folder / "out", terms=folder / "terms.csv", lang="xx", **{setting: 0})
    assert not (folder / "out").exists() and not leftovers(folder)


def test_other_inputs(folder):
    expected = run(folder, "text").spans
    data = (folder / "in.txt").read_bytes()
    (folder / "in.txt.gz").write_bytes(gzip.compress(data))
    settings = {"sources": folder / "sources.cfg", "lang": "xx", "exclude": [folder / "dev.txt"]}
    label(folder / "in.txt.gz", folder / "gz", **settings, shard_size=SIZE)
    assert contents(folder / "gz") == contents(folder / "text")
    assert label(folder / "in.txt.gz", folder / "file.spacy", **settings, shard_size=SIZE).spans == expected
    # Folders: several files, of which no block holds lines of two, and not with .spacy files beside others.
    (folder / "many").mkdir()
    for name in "ab":
        (folder / "many" / f"{name}.txt").write_text("One here. Two there.\n\nThree\n")
    report = label(folder / "many", folder / "m", terms=folder / "terms.csv", shard_size=2)
    assert report.docs == 6 and len(contents(folder / "m")) == 9
    assert label(folder / "many", folder / "m", terms=folder / "terms.csv", sentences="none").docs == 4
    write_docs(folder / "many" / "x.spacy", [Doc(NLP.vocab, words=["alpha"])])
    with pytest.raises(WeaknerError, match=r"WK206.*many.*a\.txt"):
        label(folder / "many", folder / "m2", terms=folder / "terms.csv")


def test_scratch_folders_where_only_the_output_can_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    (tmp_path / "out").mkdir()
    with scratch_folder(tmp_path / "out") as folder:
        assert folder.parent == tmp_path / "out"
    with scratch_folder(tmp_path / "out" / ".") as folder:
        assert folder.is_dir()
    assert not leftovers(tmp_path)
