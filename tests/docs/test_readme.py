"""README: its blocks are run, and it is short."""

from .blocks import ROOT, read_blocks
from .running import run_page

README = ROOT / "README.md"


def test_it_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_blocks_run(scratch, tiny_bert, trained_here):
    assert run_page(README, tiny_bert) == sum(block.runs for block in read_blocks(README))
