"""Local links of Markdown files that are read in the repository lead somewhere. (Those of the site are checked by its
build.)"""

import re

import pytest

from .reference import DOCS, ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FILES = sorted({*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(DOCS / "evidence").glob("*.md")})


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    for link in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
        if not re.match(r"\w+:", link):
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link
