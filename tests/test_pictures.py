"""The pictures of the documentation are what their script draws."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMES = ["before-and-after", "best", "cofee", "comparison", "joint", "needle", "negative-sampling", "roster"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    path = ROOT / "benchmarks" / "pictures.py"
    if not path.exists():
        pytest.skip("not in a source tree")
    spec = importlib.util.spec_from_file_location("pictures", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        spec.loader.exec_module(module)
    module.PICTURES = tmp_path_factory.mktemp("pictures")
    module.main()
    return module.PICTURES


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_what_is_drawn_today(drawn, name):
    kept = ROOT / "docs" / "pictures" / f"{name}.svg"
    assert (drawn / f"{name}.svg").read_bytes() == kept.read_bytes(), "cd benchmarks && python pictures.py"


def test_there_is_no_other_picture(drawn):
    assert sorted(path.stem for path in drawn.iterdir()) == NAMES
