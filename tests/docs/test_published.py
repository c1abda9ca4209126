"""Files that other sites read."""

import json
import re

import pytest
import srsly

from tools.pages.blocks import ROOT

if not (ROOT / "universe.json").exists():
    pytest.skip("not in a source tree", allow_module_level=True)
# Of website/UNIVERSE.md and website/meta/universe.json of spaCy.
TEXTS = {"id", "title", "slogan", "description", "github", "pip", "code_language", "url", "thumb", "image", "author"}
LISTS = {"code_example", "category", "tags"}
CATEGORIES = {
    "pipeline",
    "training",
    "conversational",
    "research",
    "scientific",
    "biomedical",
    "visualizers",
    "containers",
}
CATEGORIES |= {"apis", "standalone", "models", "extensions", "nonpython"}


def test_universe():
    entry = json.loads((ROOT / "universe.json").read_text(encoding="utf-8"))
    assert {"id", "title", "slogan", "description", "author", "category"} <= entry.keys() <= TEXTS | LISTS
    assert all(isinstance(value, str if key in TEXTS else list) and value for key, value in entry.items())
    assert {*entry["category"]} <= CATEGORIES
    compile("\n".join(entry["code_example"]), "code_example", "exec")


def test_citation():
    """What version 1.2.0 of the format needs."""
    cited = srsly.read_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    for work in (cited, *cited["references"]):
        assert work["type"] in ("software", "conference-paper") and work["authors"] and work["title"]


def test_ci_runs_the_commands_of_the_readme():
    jobs = srsly.read_yaml(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    commands = jobs["readme"]["steps"][-1]["run"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"grep -m1 -E '(.+?)' README", commands)
    assert len(found) == 2 and all(re.search(pattern, readme, flags=re.M) for pattern in found)
