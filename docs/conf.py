"""The documentation: `sphinx-build -W --keep-going -b html docs site`."""

import sys
from pathlib import Path

from spacy_weakner.about import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "spacy_weakner"
author = "the authors of spacy_weakner"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx_design", "mathml", "weakner_reference", "generated_pages", "keywords"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "**/*.template.md", "**/*.jsonl"]
# What is typed is what is shown: "--option" is no dash.
smartquotes = False
nitpicky = True

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]

html_theme = "furo"
html_title = f"spacy_weakner {release}"
html_copy_source = False
html_math_renderer = "mathml"
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
