"""Files that a well-kept project has, and what they say of it."""

import configparser
import re
from pathlib import Path

import pytest
import srsly

from spacy_weakner.about import __version__

ROOT = Path(__file__).parent.parent


def read(name):
    path = ROOT / name
    if not path.exists():
        pytest.skip("not in a source tree")
    return path.read_text(encoding="utf-8")


def test_the_citation_is_that_of_this_version_and_the_five_papers():
    citation = srsly.yaml_loads(read("CITATION.cff"))
    assert citation["version"] == __version__ and citation["license"] == "MIT"
    assert len(citation["references"]) == 5
    for paper in citation["references"]:
        assert paper["title"] and 2020 <= paper["year"] <= 2022
        assert all(author["family-names"] and author["given-names"] for author in paper["authors"])


def test_the_changelog_keeps_its_form():
    text = read("CHANGELOG.md")
    assert text.startswith("# Changelog\n") and "## [Unreleased]\n" in text
    kinds = re.findall(r"^### (.+)$", text, flags=re.M)
    assert {*kinds} <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    versions = re.split(r"^## ", text, flags=re.M)[1:]
    assert all(len(set(found)) == len(found) for found in (re.findall(r"^### (.+)$", v, flags=re.M) for v in versions))


def test_the_same_pythons_are_named_everywhere():
    parser = configparser.ConfigParser()
    parser.read_string(read("setup.cfg"))
    found = re.findall(r"Python :: 3\.(\d+)$", parser["metadata"]["classifiers"], flags=re.M)
    first, last = int(found[0]), int(found[-1])
    assert [*map(int, found)] == [*range(first, last + 1)]
    assert parser["options"]["python_requires"] == f">=3.{first},<3.{last + 1}"
    for page in ("README.md", "docs/start/install.md"):
        assert re.findall(r"Python (3\.\d+) to (3\.\d+)", read(page)) == [(f"3.{first}", f"3.{last}")], page
