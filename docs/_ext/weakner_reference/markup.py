"""Markdown from plain text: what stands in docstrings, messages and help is no Markdown."""

import re
from typing import Any, List, Sequence

import srsly

# A name that has a page of its own: registered functions, and codes of messages.
_NAMED = re.compile(r"spacy_weakner\.\w+\.v\d+|WK\d{3}")
_PUNCTUATION = re.compile(r"([\\*_\[\]<>#|$~^{}@!])")
_CODE = re.compile(r"(`[^`]+`)")
_ITEM = re.compile(r"^- ", re.MULTILINE)


def escape(text: str) -> str:
    """Make a text one line of Markdown in which only code in backticks is marked; registered names become links.

    text (str): The text.
    RETURNS (str): Markdown, fit for a cell of a table.
    """
    parts = _CODE.split(" ".join(text.split()))
    return "".join(code(part[1:-1]) if i % 2 else _PUNCTUATION.sub(r"\\\1", part) for i, part in enumerate(parts))


def code(text: str) -> str:
    """Mark a text as code.

    text (str): One line, without backticks.
    RETURNS (str): Markdown, fit for a cell of a table; a link, if there is a place about it.
    """
    marked = "`" + text.replace("|", "\\|") + "`"
    return f"[{marked}](#{text})" if _NAMED.fullmatch(text) else marked


def prose(text: str) -> str:
    """Make Markdown of the text of a docstring: paragraphs, lists, and indented formulas or tables.

    text (str): The text.
    RETURNS (str): Markdown.
    """
    return "\n\n".join(_block(block) for block in re.split(r"\n{2,}", text) if block.strip())


def _block(block: str) -> str:
    if block.startswith("    "):
        return fence("text", "\n".join(line[4:] for line in block.splitlines()))
    head, *items = _ITEM.split(block)
    marked = [escape(head)] if head.strip() else []
    return "\n\n".join([*marked, "\n".join(f"- {escape(item)}" for item in items)]).strip()


def value(setting: Any) -> str:
    """A value as a config file has it.

    setting (Any): What JSON can hold.
    RETURNS (str): Markdown.
    """
    return code(srsly.json_dumps(setting))


def fence(language: str, text: str) -> str:
    """A block of code.

    language (str): Its language.
    text (str): The code.
    RETURNS (str): Markdown.
    """
    return f"```{language}\n{text.strip(chr(10))}\n```"


def target(name: str) -> str:
    """A place that links lead to: `[text](#name)` on any page.

    name (str): Its name.
    RETURNS (str): Markdown, to stand before a heading.
    """
    return f"({name})="


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    header (Sequence[str]): Names of the columns.
    rows (Sequence[Sequence[str]]): Cells in Markdown; columns that are empty everywhere are left out.
    RETURNS (str): Markdown; nothing without rows.
    """
    if not rows:
        return ""
    used = [i for i in range(len(header)) if any(row[i] for row in rows)]
    lines: List[Sequence[str]] = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line[i] for i in used) + " |" for line in lines)


def document(*parts: str) -> str:
    """Blocks below each other.

    *parts (str): Markdown; empty ones are left out.
    RETURNS (str): Markdown.
    """
    return "\n\n".join(part for part in parts if part)
