"""The pages: every block is run, or says what it needs and is read; notebooks run from top to bottom."""

import subprocess
import sys

import pytest

from tools.pages.blocks import PAGES, ROOT, read_blocks
from tools.pages.running import run_page

pytestmark = [
    pytest.mark.docs,
    # Of libraries that we cannot change, and of spaCy's packaging, which leaves files open.
    pytest.mark.filterwarnings("ignore"),
]
RUN = [page for page in PAGES if any(block.runs for block in read_blocks(page))]
# In a process of its own: what notebooks need warns.
RUN_NOTEBOOK = """
import sys
import jupytext, nbclient
notebook = jupytext.read(sys.argv[1])
nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
jupytext.write(notebook, sys.argv[2])
"""


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, scratch, tiny_bert, trained_here):
    assert run_page(page, tiny_bert)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    output = tmp_path / "executed.ipynb"
    command = [sys.executable, "-c", RUN_NOTEBOOK, str(path), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    text = output.read_text(encoding="utf-8")
    # The pictures of sentences, the audit, the project's last lines, the table and the entities' ids are there.
    assert text.count("<mark") > 3
    for words in ("Sources", "Packaged", "combined", "exceptions.html#KeyError"):
        assert words in text
