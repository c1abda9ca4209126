"""docs/formats.md lists what there is, and its examples are read."""

import re
from pathlib import Path

import pytest

from spacy_weakner.corpus.formats import names
from spacy_weakner.corpus.formats.names import FORMATS, INPUTS, OUTPUTS, SUFFIXES
from spacy_weakner.corpus.formats.reading import file_format, read_corpus
from spacy_weakner.corpus.formats.tools import GATHERERS, READERS, WRITERS
from spacy_weakner.corpus.jsonl import KEYS

from .util import NLP

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
SAYS = (names.UNKNOWN, names.MISSING, names.WEAK, names.WRONG, names.CATS, names.IDS)


@pytest.fixture(scope="module")
def page():
    if not PAGE.exists():
        pytest.skip("not in a source tree")
    return PAGE.read_text(encoding="utf-8")


def test_the_table_is_the_registry(page):
    def row(format_):
        says = ["yes" if what in format_.holds else "" for what in SAYS]
        cells = [f"`{format_.name}`", format_.title, " ".join(format_.inputs), " ".join(format_.outputs), *says]
        return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"

    table = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 11]
    assert table == [row(format_) for format_ in FORMATS.values()]
    assert set(re.findall(r"^### `([a-z-]+)`$", page, re.MULTILINE)) == set(FORMATS)


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "spacy"])
def test_examples_are_read(page, tmp_path, name):
    section = page.split(f"### `{name}`\n")[1].split("\n### ")[0]
    text = re.search(r"```\w+\n(.*?)```", section, re.DOTALL)[1]
    suffix = ".jsonl" if name == "huggingface" else FORMATS[name].inputs[0]
    path = tmp_path / f"a{suffix}"
    path.write_text(text)
    if name == "brat":
        path.with_suffix(".txt").write_text("Anna met Bob")
    assert file_format(path) == name
    assert len(list(read_corpus(path, NLP))) == (4 if name == "jsonl" else 2 if name in ("prodigy", "text") else 1)


def test_names_are_one(page):
    assert set(READERS) == set(INPUTS) - {"jsonl", "conll", "text", "spacy"} and set(GATHERERS) < set(READERS)
    assert set(WRITERS) == set(OUTPUTS) - {"jsonl", "conll", "spacy"}
    assert set(SUFFIXES.values()) <= set(INPUTS)
    assert {"complete", "wrong"} <= KEYS
