"""The guide to a paper, from the workflows to the table, with few updates and one seed."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from tools.pages.blocks import ROOT, read_blocks

PAGE = ROOT / "docs" / "guides" / "paper.md"
FEW = ["--vars.max_steps", "2", "--vars.eval_frequency", "2"]


@pytest.mark.docs
def test_a_changed_setting_ends_in_a_table(scratch):
    for name in ("assets", "configs", "scripts"):
        shutil.copytree(ROOT / name, scratch / name)
    shutil.copy(ROOT / "project.yml", scratch)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    blocks = [block.text for block in read_blocks(PAGE) if "needs" in block.marks]
    assert len(blocks) == 4
    for text in blocks:
        words = shlex.split(text.replace("\\\n", " ").replace('--vars.seeds "0 1 2"', ""))
        if words[0] == "weasel":
            words += FEW
        # As a shell does.
        words = [
            path for word in words for path in (sorted(map(str, scratch.glob(word))) if "/mine*" in word else [word])
        ]
        done = subprocess.run([sys.executable, "-m", *words], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "mine-ratio" in (scratch / "curves.svg").read_text(encoding="utf-8")
    assert len(list(scratch.glob("metrics/*-spans.json"))) == 2
    table = (scratch / "table.tex").read_text(encoding="utf-8")
    assert "& - & 1 &" in table and "sampler.ratio=0.2 & 1 &" in table
