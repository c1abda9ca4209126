import shutil
from pathlib import Path

import pytest

from spacy_weakner.configs import render_config
from spacy_weakner.project.context import ALONE, WITH_LISTS, config_name

from ..command_line import trainings_by
from .util import write_ruler


@pytest.fixture(scope="session")
def configs(tmp_path_factory):
    """A folder of all configs that a project may have. Never write there."""
    folder = tmp_path_factory.mktemp("configs")
    for recipe in (ALONE, WITH_LISTS):
        for size in ("transformer", "linear", "linear-static", "frozen"):
            path = folder / config_name(recipe, size)
            path.parent.mkdir(exist_ok=True)
            path.write_text(render_config(recipe, size, lang="xx"))
    return folder


@pytest.fixture
def trainings(monkeypatch):
    """`spacy train` as a list of what it was called with; what the pipelines find stands in `finds`, by the name of
    their folder."""

    class Calls(list):
        finds = {}

        def names(self):
            return {call["output"].name for call in self}

    calls = Calls()

    def fake(config, output, overrides, gpu_id):
        calls.append({"config": Path(config), "output": output, **overrides})
        (output / "train.log").write_text("log")
        made = write_ruler(output / "model-best", calls.finds.get(output.name, {}))
        shutil.copytree(made, output / "model-last")

    trainings_by(fake, monkeypatch)
    return calls
