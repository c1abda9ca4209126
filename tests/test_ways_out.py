"""Messages that name a way out: each is provoked, and then what it says is done."""

import ast
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, NamedTuple, Set, Tuple, Union

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from typer.main import get_command
from typer.testing import CliRunner

import spacy_weakner
from spacy_weakner.cli.app import app

pytestmark = pytest.mark.slow

NLP = spacy.blank("en")
TEXT = "Anna met Bob in Paris."
GOLD = [{"tokens": ["Anna", "met", "Bob", str(i)], "ents": [[0, 1, "PER"], [2, 3, "PER"]]} for i in range(60)]
ROW = {"text": TEXT, "label": [[0, 4, "PER"]]}
TERMS = "label,term\nPER,Anna\nPER,Bob\nLOC,Paris\n"
TEXTS = f"{TEXT}\nBob left Paris.\n"
Change = Callable[[Path], Any]


class Way(NamedTuple):
    """A way out.

    files: Contents by name: text, bytes, rows of JSON, or a Doc's entities and span groups.
    command: What is done first, without "spacy weakner".
    message: What it says; groups are put into what follows, as <1> and so on.
    steps: What is done then: "$ ..." by a shell, functions with the folder, all else as a command; "again ..." is the
        first one with more options, and the last one has to do without that message.
    """

    files: Dict[str, Any]
    command: str
    message: str
    steps: Tuple[Union[str, Change], ...]


def edit(name: str, old: str, new: str) -> Change:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def rename(old: str, new: str) -> Change:
    return lambda folder: (folder / old).rename(folder / new)


def write_file(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    if callable(content):
        content(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".spacy":
        bin_ = DocBin(store_user_data=True)
        for groups in content:
            doc = Doc(NLP.vocab, words=["Anna", "met", "Bob"])
            for name, spans in groups.items():
                doc.spans[name] = [Span(doc, *span) for span in spans]
            bin_.add(doc)
        bin_.to_disk(path)
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content), encoding="utf-8")


def span_ruler(path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("span_ruler").add_patterns([{"label": "PER", "pattern": "Anna"}])
    nlp.to_disk(path)


WAYS: Dict[str, Way] = {
    # Reading
    "a row of another tool": Way(
        {"a.jsonl": [{"tokens": ["a"], "ents": []}] * 300 + [ROW]},
        "convert a.jsonl b.spacy",
        r"line 301.*first: spacy weakner (convert \S+ \S+ --format doccano)",
        (lambda folder: write_file(folder / "a.jsonl", [ROW]), "<1>"),
    ),
    "spans that are not tokens": Way(
        {"a.jsonl": [{"text": TEXT, "ents": [[0, 3, "PER"]]}]},
        "convert a.jsonl b.spacy",
        r"WK103.*spacy weakner convert \.\.\. (--misaligned drop)",
        ("again <1>",),
    ),
    "numbers of tags": Way(
        {"a.jsonl": [{"tokens": ["Anna"], "ner_tags": [1]}]},
        "convert a.jsonl b.spacy",
        r"WK103.*(--labels O,B-PER,I-PER)",
        ("again <1>",),
    ),
    "spans beyond their text": Way(
        {"a.jsonl": [ROW, {"text": "Yours,\nBob Lee", "label": [[7, 18, "PER"]]}]},
        "convert a.jsonl b.spacy",
        r"WK742.*spacy weakner (convert .*)",
        ("<1>",),
    ),
    "keys of Prodigy": Way(
        {"a.jsonl": [{"text": TEXT, "_input_hash": 1, "entities": [[0, 4, "PER"]], "answer": "accept"}]},
        "convert a.jsonl b.spacy",
        r"'entities'.*rename the key to '(spans)'",
        (edit("a.jsonl", '"entities"', '"spans"'), "again"),
    ),
    "another encoding": Way(
        {"a.txt": "Zoë and Käthe\n".encode("cp1252")},
        "convert a.txt b.spacy",
        r"WK104.*Convert it: (.*)",
        ("$ <1>", "convert a-utf8.txt b.spacy"),
    ),
    "zero bytes": Way(
        {"a.txt": b"one\0 line\nmore\n" * 9},
        "convert a.txt b.spacy",
        r"WK620.*remove the zero bytes: (.*)",
        ("$ <1>", "convert a-utf8.txt b.spacy"),
    ),
    "an unknown suffix": Way(
        {"a.data": [ROW]}, "convert a.data b.spacy", r"WK105.*--format", ("again --format doccano",)
    ),
    "a misspelt path": Way(
        {"gold.jsonl": GOLD}, "check --gold gold.json", r"WK100.*did you mean '(\S+)'", ("check --gold <1>",)
    ),
    "columns in a text file": Way(
        {"a.txt": "Anna B-PER\nleft O\n" * 9},
        "check --text a.txt",
        r"Rename it to (\.conll)",
        (rename("a.txt", "a.conll"), "check --text a.conll"),
    ),
    "byte order marks": Way(
        {"a.txt": "one is here\ufefftwo is here\n"},
        "check --text a.txt",
        r"Remove the marks: (sed .*)",
        ("$ <1>", "again"),
    ),
    # Span groups
    "a span group": Way(
        {"a.spacy": [{"sc": [(0, 1, "PER")]}]},
        "convert a.spacy b.jsonl",
        r"to read them: (--spans-key sc)\)",
        ("again <1> --overwrite",),
    ),
    # Writing
    "an output that exists": Way(
        {"a.jsonl": GOLD, "b.spacy": b"mine"},
        "convert a.jsonl b.spacy",
        r"WK314.*line: (--overwrite)\)",
        ("again <1>",),
    ),
    "a file for a part of the shards": Way(
        {"a.txt": TEXTS, "t.csv": TERMS},
        "label a.txt out.spacy --terms t.csv --shard 1/2",
        r"WK312.*a folder \(a name without suffix\)",
        ("label a.txt out --terms t.csv --shard 1/2",),
    ),
    "what columns cannot hold": Way(
        {"a.jsonl": [{"tokens": ["-DOCSTART-", "x"], "ents": []}]},
        "convert a.jsonl b.conll",
        r"WK746.*write (\.jsonl)",
        ("convert a.jsonl b<1>",),
    ),
    # Labeling
    "no section": Way(
        {"a.txt": TEXTS, "drugs.csv": TERMS, "s.cfg": ""},
        "label a.txt out --sources s.cfg",
        r'WK311.*like (\[sources\.drugs\]) with (terms = "drugs\.csv")',
        (lambda folder: write_file(folder / "s.cfg", '[sources.drugs]\nterms = "drugs.csv"\n'), "again"),
    ),
    "a setting of a single source": Way(
        {"a.txt": TEXTS, "t.csv": TERMS, "s.cfg": '[sources.list]\nterms = "t.csv"\n'},
        "label a.txt out --sources s.cfg --abbreviations",
        r"WK331 ?\]? '(\w+)'.*to the section",
        (edit("s.cfg", "terms", "abbreviations = true\nterms"), "label a.txt out --sources s.cfg"),
    ),
    "terms without a label": Way(
        {"a.txt": TEXTS, "t.txt": "Anna\nBob\n"},
        "label a.txt out --terms t.txt",
        r"WK103.*(--term-label)",
        ("again <1> PER",),
    ),
    "a list without header": Way(
        {"t.csv": "PER,Anna\nPER,Bob\nPER,Eve\nLOC,Paris\nLOC,Rome\nLOC,Ulm\n"},
        "check --terms t.csv",
        r"for example: (sed -i .*)",
        ("$ <1>", "again"),
    ),
    "not labeled": Way(
        {"a.jsonl": GOLD, "t.csv": TERMS},
        "aggregate a.spacy out",
        r"WK301.*Run 'spacy weakner label' first",
        ("label a.spacy b.spacy --terms t.csv", "aggregate b.spacy out"),
    ),
    "nothing is known of a source": Way(
        {"a.txt": TEXTS, "t.csv": TERMS},
        "aggregate labeled.spacy out --method weighted",
        r"WK330.*the method '(label_model)'",
        ("aggregate labeled.spacy out --method <1>",),
    ),
    "gold that is not labeled": Way(
        {"a.txt": TEXTS, "t.csv": TERMS, "a.jsonl": GOLD},
        "aggregate labeled.spacy out --method weighted --gold a.spacy",
        r"WK332.*Label the gold corpus",
        ("label a.spacy g.spacy --terms t.csv", "aggregate labeled.spacy out --method weighted --gold g.spacy"),
    ),
    "nothing to judge": Way(
        {"a.jsonl": GOLD, "a.txt": TEXTS, "t.csv": TERMS},
        "analyze labeled.spacy --worst-terms",
        r"WK407.*spacy weakner (label) GOLD OUTPUT",
        ("<1> a.spacy g.spacy --terms t.csv", "analyze g.spacy --worst-terms"),
    ),
    "a pipeline that writes spans": Way(
        {"a.txt": TEXTS, "model": span_ruler},
        "label a.txt out --pipeline model",
        r"WK306.*groups: (\w+)\..*line: (--spans-key)\)",
        ("again <2> <1>",),
    ),
    "a corpus that is not whole": Way(
        {"a.txt": TEXTS, "t.csv": TERMS, "out/.unfinished": ""},
        "aggregate out weak",
        r"WK789.*Run the same command again",
        ("label a.txt out --terms t.csv", "again"),
    ),
    "an unknown tokenizer": Way(
        {"a.txt": TEXTS},
        "convert a.txt b.spacy --tokenizer WordTokenizer",
        r"WK005.*(spacy_weakner\.WordTokenizer\.v1)",
        ("convert a.txt b.spacy --tokenizer <1>",),
    ),
    # Comparing and suggesting
    "nothing that is in doubt": Way(
        {
            "a.txt": TEXTS,
            "s.cfg": '[sources.a]\nterms = "t.csv"\n[sources.b]\nterms = "u.csv"\n',
            "t.csv": TERMS,
            "u.csv": "label,term\nLOC,Anna\n",
        },
        "suggest a.txt out.jsonl",
        r"WK775.*(--sources)\)",
        ("again <1> s.cfg",),
    ),
    # Configs and projects
    "a size that is none": Way(
        {}, "init config crf_ner --size huge", r"WK005.*one of: ([\w-]+)", ("init config crf_ner --size <1>",)
    ),
    "nothing to learn from": Way({"a.jsonl": GOLD}, "init project new", r"WK680.*(--gold)\)", ("again <1> a.jsonl",)),
    "a source of that name": Way(
        {"a.txt": TEXTS, "t.csv": TERMS, "s.cfg": '[sources.gazetteer]\nterms = "t.csv"\n'},
        "init project new --text a.txt --terms t.csv --sources s.cfg",
        r"WK690.*'(\w+)'.*Rename the source in s\.cfg",
        (lambda folder: write_file(folder / "s.cfg", '[sources.other]\nterms = "t.csv"\n'), "again"),
    ),
    "gold under another key": Way(
        {"a.jsonl": [{"tokens": ["Anna"], "mentions": [[0, 1, "PER"]]}] * 60},
        "prepare corpus --gold a.jsonl",
        r"WK407.*'ents' or '(spans)'",
        (edit("a.jsonl", '"mentions"', '"spans"'), "again"),
    ),
    "labels in a text that no source can be called": Way(
        {"a.jsonl": [{"text": TEXT, "weak_ents": {"my.list": [[0, 4, "PER"]]}}]},
        "init project new --text a.jsonl",
        r"WK691.*Rename it, under '(weak_ents)'",
        (edit("a.jsonl", '"my.list"', '"list"'), "again"),
    ),
    "configs of other settings": Way(
        {"configs/linear/crf_ner.cfg": ""},
        "check --configs configs --lang de --size linear",
        r"→ spacy weakner (init config .*)",
        ("<1>", "again"),
    ),
    # Other findings of `check`
    "rows without annotation": Way(
        {"a.jsonl": [*GOLD, {"tokens": ["Nobody"]}]},
        "check --gold a.jsonl",
        r'without annotation.*Write ("ents": \[\])',
        (edit("a.jsonl", '{"tokens": ["Nobody"]}', '{"tokens": ["Nobody"], "ents": []}'), "again"),
    ),
    "terms of one letter": Way(
        {"t.csv": "label,term\nX,a\nX,bcd\n", "s.cfg": '[sources.list]\nterms = "t.csv"\n'},
        "check --sources s.cfg",
        r'of one character.*match wrongly, set (stop = \["a"\])',
        (edit("s.cfg", "terms", 'stop = ["a"]\nterms'), "again"),
    ),
    "terms with several labels": Way(
        {"t.csv": "label,term\nX,abc\nY,abc\n", "s.cfg": '[sources.list]\nterms = "t.csv"\n'},
        "check --sources s.cfg",
        r'several labels.*set (ambiguity = "first")',
        (edit("s.cfg", "terms", 'ambiguity = "first"\nterms'), "again"),
    ),
    "labels of another name": Way(
        {"a.jsonl": GOLD, "t.csv": "label,term\nPerson,Anna\n", "s.cfg": '[sources.list]\nterms = "t.csv"\n'},
        "check --gold a.jsonl --sources s.cfg",
        r'In \[sources\.list\]: (labels = \{"Person": "PER")',
        (edit("s.cfg", "terms", 'labels = {"Person": "PER"}\nterms'), "again"),
    ),
    "another language": Way(
        {"a.txt": "Das ist nicht das, was ich mit dem und von der zu euch auf den Weg für sie nach hier\n" * 9},
        "check --text a.txt",
        r"→ (--lang de)",
        ("again <1>",),
    ),
    "tokens that the tokenizer does not make": Way(
        {
            "a.jsonl": [
                {"tokens": ["COX", "-", "2", "x" * i], "spaces": [False, False, True, False], "ents": [[0, 3, "X"]]}
                for i in range(1, 60)
            ]
        },
        "check --gold a.jsonl",
        r"→ (--tokenizer spacy_weakner\.WordTokenizer\.v1)",
        ("again <1>",),
    ),
}
# What a way needs beside its files.
BEFORE = {
    "a.spacy": "convert a.jsonl a.spacy",
    "labeled.spacy": "label a.txt labeled.spacy --terms t.csv",
    "text.spacy": "convert a.txt text.spacy",
}


def run(command: str) -> Tuple[int, str]:
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


@pytest.mark.parametrize("name", WAYS)
def test_the_way_out_leads_out(tmp_path, monkeypatch, name):
    way = WAYS[name]
    folder = tmp_path / "my files"  # a blank, which commands have to quote
    folder.mkdir()
    monkeypatch.chdir(folder)
    for file_, content in way.files.items():
        write_file(folder / file_, content)
    needed = [way.command, *(step for step in way.steps if isinstance(step, str))]
    for file_, before in BEFORE.items():
        if any(file_ in step for step in needed) and file_ not in way.files:
            assert run(before)[0] == 0
    code, text = run(way.command)
    found = re.search(way.message, text)
    assert found, text
    for step in way.steps:
        if callable(step):
            step(folder)
            continue
        for number, group in enumerate(found.groups(), start=1):
            step = step.replace(f"<{number}>", group)
        if step.startswith("$ "):
            command = re.split(r" (?:⚠|✘|ℹ|✔) ", step[2:])[0]
            subprocess.run(command, shell=True, check=True, timeout=60)
            continue
        command = step.replace("again", way.command, 1) if step.startswith("again") else step
        code, text = run(re.split(r" (?:⚠|✘|ℹ|✔) ", command)[0])
    assert not re.search(way.message, text), text
    # What else a check finds is no matter.
    assert code == 0 or command.startswith("check"), text


def commands(group: Any, before: str = "") -> Iterator[Tuple[str, Set[str]]]:
    """Commands and their options."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", {opt for own in command.params for opt in (*own.opts, *own.secondary_opts)}


COMMANDS = dict(commands(get_command(app)))
# Of `spacy weakner` itself, of trainings, and of other programs.
OTHERS = {"--help", "--code", "--nproc-per-node", "--head", "--force-reinstall", "--no-deps", "--converter"}
OTHERS |= {"--force", "--dry"}  # of weasel


def texts() -> Iterator[Tuple[str, str]]:
    """All strings of the package, with what is filled in as "{}"."""
    for path in sorted(Path(spacy_weakner.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield path.name, "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.name, node.value


def test_commands_and_options_that_are_named_are_there():
    known = {option for options in COMMANDS.values() for option in options} | OTHERS
    n = 0
    for name, text in texts():
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+(?![\w.-])", text):
            assert option in known, (name, text)
            n += 1
        for said in re.findall(r"spacy weakner ([a-z][^;,'`)]*)", text):
            words = said.split()
            command = next((c for c in (" ".join(words[:2]), words[0]) if c in COMMANDS), None)
            assert command is not None, (name, text)
            for option in re.findall(r"--[a-z][a-z-]+(?![\w.-])", said.partition(". ")[0]):
                assert option in COMMANDS[command] | OTHERS, (name, command, text)
            n += 1
    assert n > 100
