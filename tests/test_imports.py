"""What importing this package costs, what it needs, and which folder may import which."""

import ast
import configparser
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import spacy_weakner

PACKAGE = Path(spacy_weakner.__file__).parent
# Arrows point downwards only. Folders of one row do not import each other.
ROWS = [
    set(row.split())
    for row in (
        "_compat errors ty about code_version encodings files own_code progress scratch torch_io tokenizers pipelines "
        "scores losses batching caching shims",
        "corpus configs crf",
        "aggregation linear runtime sources",
        "encoders heads",
        "testing training",
        "abbreviations crf_ner ent_combiner gazetteer_ruler mrc_ner sentence_category span_ner token_ner",
        "cofee joint needle roster term_linker",
        "conversion encoder_tools labeling runs",
        "calibration relabel",
        "active_learning evaluation",
        "checks",
        "project",
        "cli",
        "__main__",
    )
]
LEVELS = {name: level for level, row in enumerate(ROWS) for name in row}
# Light modules that import nothing heavy themselves, so they may use each other.
BOTTOM = ROWS[0]
MODULES = sorted(PACKAGE.rglob("*.py"))

BLOCK = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(name)

BLOCKED = {"torch", "torchcrf", "transformers", "tokenizers", "spacy_transformers"}
sys.meta_path.insert(0, Blocker())
"""
LOAD = """
import importlib, json
for target in json.loads(sys.argv[1]):
    module, name = target.split(":")
    assert callable(getattr(importlib.import_module(module), name)), target
assert not BLOCKED & {name.split(".")[0] for name in sys.modules}
"""
COMMANDS = """
import importlib
BLOCKED |= {"accelerate", "cupy", "mwparserfromhell", "onnx", "onnxruntime", "openpyxl", "pyarrow", "ray"}
for name in sys.argv[1:]:
    importlib.import_module(f"spacy_weakner.cli.{name}")
"""
PARSER = """
import importlib
BLOCKED |= {"spacy", "thinc", "numpy", "pydantic"}
importlib.import_module("spacy_weakner.labeling.anchors.markup")
"""
HELP = """
import runpy
BLOCKED |= {"spacy", "thinc", "numpy", "pydantic"}
sys.argv = ["spacy_weakner", "--help"]
runpy.run_module("spacy_weakner", run_name="__main__")
"""
# Packages that spacy.blank imports without the entry points of the given ones.
BLANK = """
import importlib.metadata as metadata
every = metadata.distributions
unwanted = sys.argv[1].split(",")
metadata.distributions = lambda **kw: (d for d in every(**kw) if d.metadata["Name"].replace("-", "_") not in unwanted)
import spacy
before = {name.split(".")[0] for name in sys.modules}
assert spacy.blank("xx").has_factory("crf_ner") == (sys.argv[1] == "spacy_transformers")
print(*{name.split(".")[0] for name in sys.modules} - before - sys.stdlib_module_names)
"""


def run(script, *args):
    command = [sys.executable, "-W", "error", "-c", BLOCK + script, *args]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def entry_points():
    """All targets of the entry points in setup.cfg."""
    setup = PACKAGE.parent / "setup.cfg"
    if not setup.exists():
        pytest.skip("not in a source tree")
    parser = configparser.ConfigParser()
    parser.optionxform = str
    parser.read(setup, encoding="utf-8")
    groups = parser["options.entry_points"].values()
    return sorted(line.split("=")[1].strip() for group in groups for line in group.strip().splitlines())


def test_every_entry_point_imports_without_torch():
    run(LOAD, json.dumps(entry_points()))


def test_the_help_page_needs_no_spacy():
    assert {"convert", "evaluate"} <= {*run(HELP)}


def test_the_process_that_parses_pages_needs_no_spacy():
    pytest.importorskip("mwparserfromhell")
    run(PARSER)


def test_every_command_imports_without_extras():
    run(COMMANDS, *(path.stem for path in (PACKAGE / "cli").glob("[a-z]*.py")))


def test_a_blank_pipeline_imports_nothing_else_for_us():
    with_us, without = (set(run(BLANK, names)) for names in ("spacy_transformers", "spacy_transformers,spacy_weakner"))
    assert with_us - without == {"spacy_weakner"}


# Who imports whom


@cache
def imported(path):
    """Names of the modules that a file imports anywhere in it."""
    own, names = ("spacy_weakner", *path.relative_to(PACKAGE).with_suffix("").parts), []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = own[: -node.level] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # "from . import x" names modules, "from .x import y" mostly what is in them.
            names += [module] if node.module else [f"{module}.{alias.name}" for alias in node.names]
    return names


def test_arrows_point_downwards():
    for path in MODULES:
        own = path.relative_to(PACKAGE).with_suffix("").parts[0].replace("__init__", "__main__")
        inside = {name.split(".")[1] for name in imported(path) if name.startswith("spacy_weakner.")}
        if own in BOTTOM:
            assert inside <= BOTTOM, path
        else:
            assert {name for name in inside if LEVELS[name] >= LEVELS[own]} <= {own}, path


STAGES = ["calibration", "conversion", "encoder_tools", "labeling", "relabel", "runs", "runtime"]


@pytest.mark.parametrize("head", ["crf_ner", "mrc_ner", "sentence_category", "span_ner", "token_ner"])
def test_stages_know_no_head(head):
    for path in (path for folder in STAGES for path in (PACKAGE / folder).rglob("*.py")):
        assert not [name for name in imported(path) if name.startswith(f"spacy_weakner.{head}")], path


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("torch_model.py")), ids=lambda path: path.parent.name)
def test_torch_models_do_not_know_spacy(path):
    assert not [name for name in imported(path) if name.split(".")[0] in ("spacy", "spacy_weakner", "thinc")]


@pytest.mark.parametrize("name", ["kernel", "scaled", "decoding"])
def test_the_arithmetic_knows_numpy_alone(name):
    tops = {module.split(".")[0] for module in imported(PACKAGE / "crf" / f"{name}.py")}
    assert not tops & {"spacy", "thinc", "torch"}
