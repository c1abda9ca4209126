"""The blocks of a page, and what its source says of them.

A comment on the lines before a block, which readers do not see, marks it:

    <!-- needs: a GPU -->            the block is not run, but its commands, options and settings have to exist
    <!-- add: --training.max_steps 2 -->   these options are added to the trainings and workflows of a block that is run
    <!-- file: terms.csv -->         the block is a file; commands of the page find it
    <!-- output -->                  the block is what the block before it prints; `...` stands for anything
    <!-- exit: 1 -->                 the last command ends with this code
    <!-- onto: crf_ner cnn -->       an ini block belongs into the config of this recipe and size
    <!-- keywords: excel, csv -->    not about a block: words that lead a search to this place (docs/_ext/keywords.py)
    <!-- part -->                    an ini block shows settings of which others are left out; it is only parsed
"""

import re
from pathlib import Path
from typing import Dict, List, NamedTuple

ROOT = Path(__file__).parents[2]
# Pages of notebooks are made of notebooks, which are run as such; those of commands, of the application.
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if not path.name.endswith(".template.md") and not {"_build", "notebooks", "commands"} & {*path.parts}
)
MARKS = {"needs", "add", "file", "output", "exit", "onto", "part", "keywords"}
LANGUAGES = {"python": "python", "py": "python", "bash": "shell", "sh": "shell", "console": "shell", "ini": "ini"}
LANGUAGES |= {"cfg": "ini", "json": "json", "jsonl": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml"}
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|:{3,})(?P<info>[^`\n]*)$")
_MARK = re.compile(r"<!--\s*([a-z]+)(?::\s*(.*?))?\s*-->$")


class Block(NamedTuple):
    """A fenced block.

    page (Path): The page.
    line (int): Line of its first fence.
    language (str): python, shell, ini, json, yaml, toml, or "" for what is not run.
    text (str): Its lines.
    marks (Dict[str, str]): What the comments before it say.
    """

    page: Path
    line: int
    language: str
    text: str
    marks: Dict[str, str]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"

    @property
    def runs(self) -> bool:
        """Whether something is done with it."""
        return bool(self.language or {"file", "output"} & set(self.marks))


def read_blocks(page: Path) -> List[Block]:
    """All blocks of a page, in order; those within others (admonitions, lists) too."""
    blocks: List[Block] = []
    marks: Dict[str, str] = {}
    lines = page.read_text(encoding="utf-8").splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        found = _FENCE.match(line)
        if found and found["fence"][0] == "`":
            start, indent = i, len(found["indent"])
            i += 1
            while i < len(lines) and not re.match(rf" *{found['fence']}`*$", lines[i]):
                i += 1
            text = "".join(f"{inner[indent:]}\n" for inner in lines[start + 1 : i])
            info = found["info"].strip()
            if info.startswith("{") and not info.startswith("{code"):  # a directive, and not code
                if any(_FENCE.match(inner) for inner in lines[start + 1 : i]):
                    i = start  # what stands in it counts
            else:
                name = info.replace("{code-block}", "").replace("{code}", "").strip()
                blocks.append(Block(page, start + 1, LANGUAGES.get(name, ""), text, marks))
            marks = {}
        elif mark := _MARK.match(line.strip()):
            name = mark[1]
            if name in MARKS:
                marks = {**marks, name: mark[2] or ""}
        elif line.strip():
            marks = {}
        i += 1
    return blocks
