"""The benchmark for a GPU, where there is none: its mode for the CPU."""

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
