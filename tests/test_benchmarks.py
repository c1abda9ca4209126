"""The benchmark for a GPU, where there is none: its mode for the CPU."""

import json
import os
import re
import subprocess
import sys

import pytest

from tools.pages.blocks import ROOT

SCRIPT = ROOT / "benchmarks" / "gpu.py"


def run(*options):
    command = [sys.executable, str(SCRIPT), *options]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.long
def test_heads_and_label_run_on_the_cpu():
    heads = "crf_ner,token_ner,span_ner,mrc_ner,label"
    done = run("--devices", "cpu", "--sizes", "cnn", "--heads", heads, "--updates", "1", "--sentences", "16")
    assert done.returncode == 0, done.stdout + done.stderr
    for head in heads.split(","):
        row = rf"^\| `{head}` \| cnn \| cpu \| [\d,]* \| [\d,]+ \| [\d,]+ \| (\d+ of \d+)? \|$"
        assert re.search(row, done.stdout, re.M)
    # What is found does not depend on when it is loaded.
    assert all(both == every for both, every in re.findall(r"\| (\d+) of (\d+) \|$", done.stdout, re.M))


@pytest.mark.long
def test_what_fails_and_what_there_is_no_time_for_is_said():
    done = run("--devices", "cpu", "--sizes", "cnn", "--heads", "crf_ner", "--seconds", "0")
    assert done.returncode == 0 and "No time was left for: crf_ner, cnn, cpu." in done.stdout
    done = run("--devices", "cpu", "--sizes", "cnn", "--heads", "nobody", "--updates", "1", "--sentences", "1")
    assert done.returncode == 1 and re.search(r"Failed: nobody, cnn, cpu: .*nobody", done.stdout)


ROW = {"benchmark": "roster", "dataset": "mine", "encoder": "cnn", "preset": "quick", "method": "full", "seed": 0}
ROW |= {"strong": 0, "weak": 9, "p": 60.0, "r": 40.0, "f1": 48.0, "seconds": 1.0, "words_per_second": 9}


@pytest.mark.slow
def test_own_data_go_to_a_folder_of_their_own(tmp_path):
    program = [sys.executable, str(ROOT / "benchmarks" / "roster.py")]

    def run_roster(*options):
        return subprocess.run([*program, *options], capture_output=True, text=True, timeout=300)

    refused = run_roster("--data", str(tmp_path), "--dataset", "mine", "--work", str(tmp_path / "work"))
    assert refused.returncode == 1 and "--output" in refused.stderr and not list(tmp_path.iterdir())
    rows = [ROW, {**ROW, "seed": 1, "f1": 50.0}]
    (tmp_path / "roster.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    page = ROOT / "docs" / "evidence" / "roster.md"
    before = page.read_bytes()
    done = run_roster("--render", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "| mine | cnn | quick | full | 60.0 ± 0.0 | 40.0 ± 0.0 | 49.0 ± 1.4 |" in (tmp_path / "roster.md").read_text(
        encoding="utf-8"
    )
    assert page.read_bytes() == before
