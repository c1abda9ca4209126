"""The pictures of the documentation are what their script draws."""

import importlib.util
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMES = ["best", "cofee", "comparison", "joint", "needle", "negative-sampling", "roster"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    path = ROOT / "benchmarks" / "pictures.py"
    if not path.exists():
        pytest.skip("not in a source tree")
    spec = importlib.util.spec_from_file_location("pictures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.PICTURES = tmp_path_factory.mktemp("pictures")
    module.main()
    return module.PICTURES


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_what_is_drawn_today(drawn, name):
    kept = ROOT / "docs" / "pictures" / f"{name}.svg"
    assert (drawn / f"{name}.svg").read_bytes() == kept.read_bytes(), "cd benchmarks && python pictures.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_told_in_words_and_stays_on_its_card(drawn, name):
    root = ElementTree.parse(drawn / f"{name}.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{space}title").text and len(root.find(f"{space}desc").text) > 50
    width, height = float(root.get("width")), float(root.get("height"))
    assert width == 700
    for text in root.iter(f"{space}text"):
        assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height - 6
    for box in root.iter(f"{space}rect"):
        assert float(box.get("x", 0)) + float(box.get("width")) <= width


def test_there_is_no_other_picture(drawn):
    assert sorted(path.stem for path in drawn.iterdir()) == NAMES
