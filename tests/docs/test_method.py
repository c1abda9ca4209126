"""The page on a method of one's own, from its package to the row in the table, with one seed."""

import pytest
from weasel.util import load_project_config

from spacy_weakner.configs import reading
from spacy_weakner.configs.recipes import recipes
from tools.pages.blocks import ROOT, read_blocks
from tools.pages.commands import parse, run

PAGE = ROOT / "docs" / "contributing" / "a-method.md"
INSTALLED = {
    "METADATA": "Metadata-Version: 2.1\nName: sure-ner\nVersion: 0.1.0\n",
    "entry_points.txt": "[spacy_weakner_recipes]\nsure_ner = sure_ner.configs\n",
}


@pytest.mark.docs
@pytest.mark.filterwarnings("ignore")
def test_the_workflow_ends_in_a_table(scratch, monkeypatch):
    files = {block.marks["file"]: block.text for block in read_blocks(PAGE) if "file" in block.marks}
    files |= {f"sure_ner-0.1.0.dist-info/{name}": text for name, text in INSTALLED.items()}
    for name, text in {**files, "sure_ner/__init__.py": ""}.items():
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text(text, encoding="utf-8")
    assert all(line in files["pyproject.toml"] for line in ("spacy_weakner_recipes", 'sure_ner = "sure_ner.configs"'))
    monkeypatch.syspath_prepend(scratch)
    cached = (reading.folders, reading.read_part, recipes)
    for function in cached:
        function.cache_clear()
    try:
        project = load_project_config(scratch)
        commands = {command["name"]: command for command in project["commands"]}
        for name in project["workflows"]["sure"]:
            for script in commands[name]["script"]:
                for command in parse(script):
                    run(command)
            assert all((scratch / output).exists() for output in commands[name].get("outputs", ()))
    finally:
        for function in cached:
            function.cache_clear()
    (shown,) = (line for block in read_blocks(PAGE) for line in block.text.splitlines() if "weakner table" in line)
    table = "".join(map(run, parse(shown.replace("scores-*.json", "scores-0.json"))))
    assert "student" in table and "vs teacher" in table
