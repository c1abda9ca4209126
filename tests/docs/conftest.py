"""A folder with small files of the names that the pages use."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tools.pages.blocks import ROOT

# A package of a pipeline, as `package` makes it, without building a wheel.
INIT = """
from pathlib import Path
from spacy.util import load_model_from_init_py

__version__ = "0.1.0"


def load(**overrides):
    return load_model_from_init_py(Path(__file__), **overrides)
"""
NAME = "drugs"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Never write there."""
    from tools.pages.commands import WEAKNER, parse, run

    assert WEAKNER
    home = tmp_path_factory.mktemp("pages") / "home"
    home.mkdir()
    before = Path.cwd()
    os.chdir(home)
    try:
        for command in parse(
            f"""
            python {ROOT}/assets/demo/make_corpus.py raw --train 120 --gold 40 --dev 30 --test 30 --pages 40
            python {ROOT}/assets/demo/make_corpus.py more --train 1 --gold 0 --dev 30 --test 1 --pages 1 --seed 1
            """
        ):
            run(command)
        for name in ("gold", "dev", "test", "text"):
            shutil.copy(f"raw/{name}.jsonl", f"{name}.jsonl")
        shutil.copy("raw/terms.csv", "terms.csv")
        shutil.copy("raw/pages.wiki", "pages.wiki")
        rows = [json.loads(line) for line in Path("text.jsonl").read_text(encoding="utf-8").splitlines()]
        Path("text.txt").write_text("".join(f"{_text(row)}\n" for row in rows), encoding="utf-8")
        Path("texts.txt").write_text("".join(f"{_text(row)}\n" for row in rows[:8]), encoding="utf-8")
        _small_files()
        for line in STAGES.splitlines():
            for command in parse(line):
                run(command)
        _package()
    finally:
        os.chdir(before)
    return home


# What the pages begin with, made as they make it.
STAGES = """
spacy weakner convert gold.jsonl gold.spacy
spacy weakner convert dev.jsonl dev.spacy
spacy weakner convert test.jsonl test.spacy
spacy weakner convert more/dev.jsonl heldout.spacy
spacy weakner convert test.jsonl unseen.spacy
spacy weakner label text.txt labeled.spacy --terms terms.csv
spacy weakner label gold.spacy gold-labeled.spacy --terms terms.csv
spacy weakner aggregate labeled.spacy weak.spacy
spacy weakner aggregate labeled.spacy averaged.spacy --method majority --soft
spacy weakner init config crf_ner config.cfg --size linear
spacy train config.cfg --output training --paths.train gold.spacy --paths.dev dev.spacy --components.crf_ner.scores true
"""


# What Label Studio exports.
_SPAN = {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}
_RESULT = {"from_name": "label", "to_name": "text", "type": "labels", "value": _SPAN}
EXPORT = [{"id": 1, "data": {"text": "Anna met Bob"}, "annotations": [{"result": [_RESULT]}], "predictions": []}]


def _text(row):
    return row.get("text") or " ".join(row["tokens"])


def _small_files():
    words = {"BRAND": "names of brands", "PRODUCT": "names of products", "MATERIAL": "materials", "COLOR": "colors"}
    words |= {"PATTERN": "patterns of cloth", "GROUP": "groups of people that a product is for"}
    for name in ("labels.json", "queries.json"):
        Path(name).write_text(json.dumps(words), encoding="utf-8")
    first = [json.loads(line) for line in Path("gold.jsonl").read_text(encoding="utf-8").splitlines()][:5]
    answers = [{"text": _text(row), "ents": [["cotton", "MATERIAL"]]} for row in first]
    Path("answers.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in answers), encoding="utf-8")
    Path("patterns.jsonl").write_text('{"label": "COLOR", "pattern": [{"LOWER": "black"}]}\n', encoding="utf-8")
    Path("export.json").write_text(json.dumps(EXPORT), encoding="utf-8")
    for name in ("drugs.csv", "products.csv"):
        shutil.copy("terms.csv", name)


def _package():
    """What `pip install` of a packaged pipeline leaves, in a folder that can be put on the path."""
    name = f"en_{NAME}"
    folder = Path("site") / name
    folder.mkdir(parents=True)
    shutil.copytree("training/model-best", folder / f"{name}-0.1.0")
    meta = json.loads((folder / f"{name}-0.1.0" / "meta.json").read_text(encoding="utf-8"))
    (folder / "meta.json").write_text(json.dumps({**meta, "lang": "en", "name": NAME, "version": "0.1.0"}))
    (folder / "__init__.py").write_text(INIT)
    info = Path("site") / f"{name}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")


@pytest.fixture
def scratch(prepared, tmp_path, monkeypatch):
    """A copy of these files, in which a page may do what it says."""
    folder = tmp_path / "project"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder / "site"))
    sys.modules.pop(f"en_{NAME}", None)  # that of another page's folder
    return folder
