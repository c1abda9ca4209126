"""README: its blocks are run, and it is short."""

import pytest

from .blocks import ROOT
from .running import run_page

README = ROOT / "README.md"


def test_it_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.docs
@pytest.mark.filterwarnings("ignore")
def test_blocks_run(scratch, tiny_bert, trained_here):
    assert run_page(README, tiny_bert)
