"""The scores that README, Choose and Guides name stand in the evidence that they link to. Pages of evidence begin with
their answer, and are short."""

import re

import pytest

from tools.pages.blocks import ROOT

DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("not in a source tree", allow_module_level=True)
PAGES = [ROOT / "README.md", DOCS / "index.md", *sorted(DOCS.glob("choose/*.md")), *sorted(DOCS.glob("guides/*.md"))]
EVIDENCE = sorted(path for path in DOCS.glob("evidence/*.md") if not path.name.endswith(".template.md"))
# Scores in percent, and whatever else has two digits and a decimal.
FIGURE = re.compile(r"(?<![\d.,])\d\d\.\d(?!\d|\.\d)")
LINK = re.compile(r"\]\((?:[\w./]*/)?evidence/([\w-]+)\.md(?:#([\w-]+))?\)")
FENCED = re.compile(r"^ *(`{3,}).*?^ *\1`*$", flags=re.M | re.S)
# No measurements.
OTHER = {("docs/guides/serving.md", "13.9")}  # seconds of CPU


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def figures(text):
    """The figures of a text, rounded as pages round them."""
    return {*FIGURE.findall(text), *(f"{float(figure):.1f}" for figure in re.findall(r"\d+\.\d\d(?!\d)", text))}


def linked_text(name, anchor):
    """The page of evidence, or its section."""
    text = (DOCS / "evidence" / f"{name}.md").read_text(encoding="utf-8")
    if not anchor:
        return text
    for found in re.finditer(r"^(#+) (.+)$", text, flags=re.M):
        if slug(found[2]) == anchor:
            end = re.search(rf"^#{{1,{len(found[1])}}} ", text[found.end() :], flags=re.M)
            return text[found.start() : found.end() + end.start() if end else None]
    raise AssertionError(f"{name}.md has no section {anchor}")


def parts(text):
    """Paragraphs, items of lists and rows of tables, with their links to evidence or else those of the section."""
    for section in re.split(r"^(?=#+ )", FENCED.sub("", text), flags=re.M):
        for part in re.split(r"\n\n|\n(?=\||- )", section):
            yield part, LINK.findall(part) or LINK.findall(section)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_scores_stand_in_the_evidence(page):
    name = page.relative_to(ROOT).as_posix()
    text = page.read_text(encoding="utf-8")
    missing = []
    for part, links in parts(text):
        named = {figure for figure in FIGURE.findall(part) if (name, figure) not in OTHER}
        measured = {figure for link in links or LINK.findall(text) for figure in figures(linked_text(*link))}
        missing += [(figure, part[:80]) for figure in sorted(named - measured)]
    assert not missing, missing


@pytest.mark.parametrize("page", EVIDENCE, ids=lambda page: page.stem)
def test_evidence_begins_with_its_answer(page):
    """In up to three sentences and perhaps a table, with scores that the rest of the page has."""
    _, answer, table, *rest = page.read_text(encoding="utf-8").split("\n\n")
    assert re.match(r"[^|\s!:#-]", answer), answer
    assert len(re.findall(r"[.](?=\s+[A-Z`\[0-9]|$)", answer)) <= 3, answer
    shown = f"{answer}\n{table}" if table.startswith("| F1") else answer
    assert {*FIGURE.findall(shown)} <= figures("\n\n".join([table, *rest] if shown == answer else rest))


@pytest.mark.parametrize("page", EVIDENCE, ids=lambda page: page.stem)
def test_evidence_is_short(page):
    """Outside of tables and commands."""
    lines = FENCED.sub("", page.read_text(encoding="utf-8")).splitlines()
    assert sum(len(line.split()) for line in lines if not line.startswith(("|", "    "))) <= 1500
