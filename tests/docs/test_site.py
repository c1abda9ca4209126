"""The site is built without a warning, and its search leads to the right page."""

import json
import subprocess
import sys

import pytest

from tools.pages.blocks import ROOT

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    output = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(output)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


def first_page(index, word):
    """The page that Sphinx's `searchtools.js` lists first for a word, with its scores."""
    from sphinx.search.en import SearchEnglish

    scores = {}

    def found(page, score):
        scores[page] = max(scores.get(page, 0), score)

    for title, places in index["alltitles"].items():
        if word in title.lower() and len(word) >= len(title) / 2:
            for page, _ in places:
                found(page, round(15 * len(word) / len(title)) + (index["titles"][page] == title))
    for entry, places in index["indexentries"].items():
        if word in entry and len(word) >= len(entry) / 2:
            for page, _, is_main in places:
                if is_main:
                    found(page, round(100 * len(word) / len(entry)))
    stem = SearchEnglish({}).stem(word)
    for terms, score, partial in ((index["terms"], 5, 2), (index["titleterms"], 15, 7)):
        matching = {stem: score} if stem in terms else dict.fromkeys((term for term in terms if stem in term), partial)
        for term, points in matching.items():
            for page in [terms[term]] if isinstance(terms[term], int) else terms[term]:
                found(page, points)
    best = max(scores.values(), default=0)
    (page,) = (page for page, score in scores.items() if score == best)
    return index["docnames"][page]


PLACES = {
    "excel": "start/own-data",
    "semicolon": "start/own-data",
    "csv": "start/own-data",
    "upgrade": "start/install",
    "update": "guides/serving",
    "update term list": "guides/serving",
    "threshold": "guides/evaluation",
    "precision": "guides/evaluation",
    "confidence": "guides/evaluation",
    "annotate": "guides/annotation-tools",
    "gpu": "guides/gpu",
    "memory": "guides/serving",
    "speed": "guides/serving",
    "ids": "guides/ids",
    "negation": "guides/ids",
    "nested": "reference/components/span_ner",
}


def test_a_search_leads_to_the_right_page(site):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert {word: first_page(index, word) for word in PLACES} == PLACES
