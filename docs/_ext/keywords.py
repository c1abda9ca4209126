"""Words that readers search for and that a page does not use: `<!-- keywords: excel, csv -->` above a heading or at the
top of a page. They become entries of Sphinx's index, which its search lists first; readers do not see them."""

import re
from typing import Any, Dict, List

_KEYWORDS = re.compile(r"^<!-- keywords: (.+) -->$", flags=re.M)


def index_entries(app: Any, name: str, source: List[str]) -> None:
    """Called by Sphinx when it has read a page.

    app (Any): The Sphinx application.
    name (str): The page.
    source (List[str]): Its text, as the only item.
    """
    source[0] = _KEYWORDS.sub(_directive, source[0])


def _directive(match: Any) -> str:
    return "```{index} " + ", ".join(f"!{word.strip()}" for word in match[1].split(",")) + "\n```"


def setup(app: Any) -> Dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", index_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
