from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

import spacy_weakner
from spacy_weakner import __version__
from spacy_weakner.code_version import (
    _registered,
    all_sources,
    code_of,
    code_version,
    hash_sources,
    imported_sources,
    names_in,
)

PACKAGE = Path(spacy_weakner.__file__).parent


def test_every_source_counts(tmp_path):
    (tmp_path / "part").mkdir()
    hashes = []
    for name, text in (("a.py", "a"), ("a.py", "b"), ("part/c.cfg", "x"), ("part/d.jinja", "x"), ("a.py", "a")):
        (tmp_path / name).write_text(text)
        hashes.append(hash_sources(tmp_path, all_sources(tmp_path)))
    (tmp_path / "a.py").rename(tmp_path / "z.py")
    hashes.append(hash_sources(tmp_path, all_sources(tmp_path)))
    assert len(set(hashes)) == len(hashes)


def test_it_names_the_version():
    assert code_version().startswith(f"{__version__} ") and code_version() == code_version()
    assert code_of(["spacy_weakner.labeling.label"]).startswith(f"{__version__} ")
    assert code_of([], ["ner", 3, None]) == "" and code_of(["elsewhere"]) == code_version()
    # Names of settings add their code.
    assert code_of(["spacy_weakner.files"], ["crf_ner"]) != code_of(["spacy_weakner.files"], ["no name"])
    assert code_of([], names_in('[components.a]\nfactory = "crf_ner"')) == code_of(["spacy_weakner.crf_ner.component"])


@pytest.mark.parametrize(
    "module, changed, counts",
    [
        ("labeling.label", "labeling/label.py", True),
        ("labeling.label", "labeling/__init__.py", True),
        ("labeling.label", "labeling/labelers.py", True),
        ("labeling.label", "corpus/tags.py", True),  # imported by what it imports
        ("labeling.label", "gazetteer_ruler/component.py", True),  # by the name of its factory
        ("labeling.label", "gazetteer_ruler/trie.py", True),
        ("labeling.label", "crf_ner/component.py", False),
        ("labeling.label", "relabel/complete.py", False),
        ("labeling.label", "cli/label.py", False),
        ("relabel.complete", "configs/sizes/cnn.cfg", False),
        ("relabel.complete", "relabel/complete.py", True),
        ("relabel.complete", "labeling/label.py", False),
        ("crf_ner.component", "crf/kernel.py", True),
        ("crf_ner.component", "labeling/label.py", False),
    ],
)
def test_a_module_depends_on_what_it_imports(module, changed, counts):
    assert (PACKAGE / changed in sources_of(module)) == counts


@cache
def sources_of(module):
    return imported_sources(PACKAGE, [f"spacy_weakner.{module}"], _registered())


def test_threads_may_ask_at_the_same_time():
    def read(_):
        return imported_sources(PACKAGE, ["spacy_weakner.project.fit"], _registered())

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, range(4)))
    assert len(found[0]) > 100 and all(files == found[0] for files in found)
