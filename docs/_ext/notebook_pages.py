"""Pages of notebooks: `docs/notebooks/NAME.py` becomes `NAME.md` beside it, which git ignores."""

from pathlib import Path
from typing import Any, Dict

import jupytext


def write_pages(app: Any) -> None:
    """Write the pages. Outputs are not in them: they are those of who runs the notebook.

    app (Any): The Sphinx application.
    """
    for path in sorted(Path(app.srcdir, "notebooks").glob("*.py")):
        notebook = jupytext.read(path)
        # What Jupyter wants to know is nothing to read.
        notebook.metadata = {"jupytext": {"notebook_metadata_filter": "-all"}}
        text = jupytext.writes(notebook, fmt="md").strip() + "\n"
        page = path.with_suffix(".md")
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8", newline="\n")


def setup(app: Any) -> Dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
