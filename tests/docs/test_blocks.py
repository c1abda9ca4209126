"""No block of a page escapes, and what pages name exists."""

import doctest
import importlib
import re
import shlex

from tools.pages import commands
from tools.pages.blocks import MARKS, PAGES, ROOT, read_blocks

# What a reader is to put in the place of something, in commands within sentences.
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_FENCED = re.compile(r"^ *(`{3,}).*?^ *\1`*$", flags=re.M | re.S)
_EVIDENCE = re.compile(r"(?:^    |`)((?:OMP_NUM_THREADS=\d )?python (?:[^\n`]*\\\n)*[^\n`]*|^    spacy .*)", flags=re.M)


def prose(page):
    """A page without its blocks."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def test_marks_are_known_and_every_fence_is_a_block():
    fence = re.compile(r"^ *```+ *(?:python|py|bash|sh|console|ini|cfg|json|jsonl|yaml|toml)\b", flags=re.M)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, value in re.findall(r"^ *<!--\s*([a-z]+)(?::\s*(.*?))?\s*-->$", text, flags=re.M):
            assert name in MARKS, (page, name)
            assert value or name in ("output", "part"), (page, name)
        assert len(fence.findall(text)) == sum(bool(block.language) for block in read_blocks(page)), page


def test_commands_within_sentences_exist():
    """With their options; what they work on may be left out."""
    for text in (text for page in PAGES for text in _INLINE.findall(prose(page))):
        words = text.split()
        if words[:2] not in (["spacy", "weakner"], ["weasel", "run"]):
            continue
        if words[0] == "weasel":
            commands.check(commands.Command(shlex.split(text), None, {}))
            continue
        command, rest = commands.WEAKNER, words[2:]
        while rest and hasattr(command, "commands"):
            if not re.match(r"^[a-z]", rest[0]):
                break
            assert rest[0].rstrip(",") in command.commands, text
            command = command.commands[rest.pop(0)]
        options = {
            option for param in getattr(command, "params", []) for option in (*param.opts, *param.secondary_opts)
        }
        given = {word.split("=")[0] for word in rest if re.match(r"--[a-z][\w-]*$", word)}
        assert given <= options | {"--help"}, (text, given - options)


def test_commands_of_evidence_exist():
    for page in (page for page in PAGES if page.parent.name == "evidence"):
        for text in _EVIDENCE.findall(page.read_text(encoding="utf-8")):
            for words in commands.parse(text.replace("|", "/")):
                commands.check(words)


def test_links_lead_somewhere():
    """Those of files that are read in the repository; the others are checked by the build of the site."""
    for path in {*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md"), *(ROOT / "docs" / "evidence").glob("*.md")}:
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", prose(path))):
            if not re.match(r"\w+:", link):
                name, _, anchor = link.partition("#")
                target = (path.parent / name).resolve() if name else path
                assert target.exists(), (path, link)
                headings = re.findall(r"^#+ (.+)$", prose(target) if anchor else "", re.M)
                anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
                assert not anchor or anchor in anchors, (path, link)


def test_names_exist():
    """`spacy_weakner.module.name` can be imported, and `spacy_weakner.Name.v1` is registered."""
    entry_points = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    named = r"`(spacy_weakner\.[\w.]+)(?:\(\))?`"
    for name in {name for page in PAGES for name in re.findall(named, prose(page))}:
        if re.search(r"\.v\d+$", name):
            assert f"{name} =" in entry_points, name
            continue
        parts = name.split(".")
        for i in range(len(parts), 0, -1):
            try:
                found = importlib.import_module(".".join(parts[:i]))
            except ModuleNotFoundError:
                continue
            for part in parts[i:]:
                found = getattr(found, part)
            break


def test_examples_of_docstrings_are_run():
    for path in sorted((ROOT / "spacy_weakner").rglob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            assert not doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed, path
