"""The pages: every block is run, or says what it needs and is read."""

import pytest

from .blocks import PAGES, ROOT, read_blocks
from .running import run_page

pytestmark = [
    pytest.mark.docs,
    # Of libraries that we cannot change, and of spaCy's packaging, which leaves files open.
    pytest.mark.filterwarnings("ignore"),
]
RUN = [page for page in PAGES if page.name != "README.md" or page.parent != ROOT]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_blocks_run(page, scratch, tiny_bert, trained_here):
    if not any(block.runs for block in read_blocks(page)):
        pytest.skip("no blocks")
    run_page(page, tiny_bert)
