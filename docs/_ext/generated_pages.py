"""Pages that are written while the site is built, and that git ignores: `notebooks/NAME.md` of the notebook
`notebooks/NAME.py`, and `reference/commands/NAME.md` of each command."""

from pathlib import Path
from typing import Any, Dict

import jupytext
from weakner_reference import commands


def write_pages(app: Any) -> None:
    """Write the pages.

    app (Any): The Sphinx application.
    """
    home = Path(app.srcdir, "reference", "commands")
    pages = {home / f"{name}.md": text for name, text in commands.pages().items()}
    for path in Path(app.srcdir, "notebooks").glob("*.py"):
        notebook = jupytext.read(path)
        # Without what Jupyter needs, and without outputs, which are those of whoever runs the notebook.
        notebook.metadata = {"jupytext": {"notebook_metadata_filter": "-all"}}
        pages[path.with_suffix(".md")] = jupytext.writes(notebook, fmt="md").strip() + "\n"
    home.mkdir(exist_ok=True)
    for path in {*home.glob("*.md")} - pages.keys():
        path.unlink()  # of a command that is gone
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


def setup(app: Any) -> Dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
