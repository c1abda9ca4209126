"""Notebooks of the documentation run from top to bottom."""

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "notebooks"
# In a process of its own: what notebooks need warns.
RUN = """
import sys
import jupytext, nbclient
notebook = jupytext.read(sys.argv[1])
nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
jupytext.write(notebook, sys.argv[2])
"""


@pytest.mark.docs
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    output = tmp_path / "executed.ipynb"
    command = [sys.executable, "-c", RUN, str(path), str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    text = output.read_text(encoding="utf-8")
    # The pictures of sentences, the audit, the project's last lines, the table and the entities' ids are there.
    assert text.count("<mark") > 3
    for words in ("Sources", "Packaged", "combined", "exceptions.html#KeyError"):
        assert words in text
