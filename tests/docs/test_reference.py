"""The reference is complete: what can be set, named, called or met stands in it. What the directives put on the pages
is compared with the entry points, the application and the code."""

import configparser
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
import spacy
from typer.main import get_command

from spacy_weakner import errors
from spacy_weakner.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
if not DOCS.exists():
    pytest.skip("not in a source tree", allow_module_level=True)
pytest.importorskip("sphinx")
sys.path.insert(0, str(DOCS / "_ext"))  # what writes the reference lies beside the site
from weakner_reference import DIRECTIVES, api, commands, docstrings, factories, messages, registered  # noqa: E402

pytestmark = pytest.mark.slow
REFERENCE = DOCS / "reference"
DIRECTIVE = re.compile(r"^```\{(\w+)\}(?: (\S+))?\n```$", re.MULTILINE)
# Those of commands are written while the site is built.
PAGES = sorted(path for path in REFERENCE.rglob("*.md") if path.parent.name != "commands")
# Pages of the Python API, each with the packages and modules that its directives name.
API = {
    page.stem: re.findall(r"^```\{api\} (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    for page in sorted((REFERENCE / "api").glob("*.md"))
}
# What is no registered function that a config names.
OTHER = {"spacy_factories", "spacy_cli"}


def entry_points():
    """Group, name, module and attribute of each."""
    parser = configparser.ConfigParser()
    parser.optionxform = str
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    for group, lines in parser["options.entry_points"].items():
        for line in lines.strip().splitlines():
            name, target = (part.strip() for part in line.split("="))
            yield group, name, *target.split(":")


@pytest.fixture(scope="module")
def pages():
    """What stands on all pages: their own text, and what their directives give."""
    found = {}
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        made = [DIRECTIVES[name](*filter(None, [argument])) for name, argument in DIRECTIVE.findall(text)]
        found[path.relative_to(REFERENCE).as_posix()] = "\n\n".join([text, *made])
    return found


def rows(text):
    """First cells of the tables, without marks."""
    return {line.split("|")[1].strip().strip("`") for line in text.splitlines() if line.startswith("| ")}


def section(text, target):
    """What stands between the place of that name and the next one."""
    return text.split(f"\n({target})=\n" if f"\n({target})=\n" in text else f"({target})=\n")[1].split("\n(")[0]


# Components


@pytest.mark.parametrize("name", factories.names())
def test_every_setting_of_a_component(pages, name):
    page = pages[f"components/{name}.md"]
    settings, defaults = page.split("## What it reads and writes")
    made = settings.split("## Settings")[1]
    meta = spacy.blank("en").get_factory_meta(name)
    assert {*meta.default_config} <= rows(made)
    taken = inspect.signature(factories.component_class(name).initialize).parameters
    assert {*taken} - {"self", "get_examples", "nlp"} <= rows(made)
    # Every setting says what it does and, but for blocks, its default.
    for line in made.splitlines():
        if line.startswith("| `"):
            assert line.count(" | ") == 3 and not re.search(r"\|\s+\|", line.replace("\\|", "")), line
    assert "|  |" not in made.split("In `[initialize")[0]
    assert f'factory = "{name}"' in defaults
    assert f"| [`{name}`]" in pages["components/index.md"]


# Registered functions


def test_every_registered_function(pages):
    assert {*factories.names()} == {name for group, name, *_ in entry_points() if group == "spacy_factories"}
    for group, name, module, attribute in entry_points():
        if group in OTHER:
            continue
        (page,) = (text for path, text in pages.items() if path.startswith("registered/") and f"({name})=" in text)
        made = section(page, name)
        assert f'{registered.REGISTRIES[group]} = "{name}"' in made
        function = getattr(import_module(module), attribute)
        about = docstrings.read(function)
        described = {"name", "---", *about.arguments}
        assert about.summary and {*inspect.signature(function).parameters} <= rows(made) <= described, name


# The command line


def test_every_command_and_option(pages):
    def walk(group, before=""):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, f"{before}{name} ")
            elif not command.hidden:
                yield f"{before}{name}", command

    every = dict(walk(get_command(app)))
    assert every.keys() == commands.commands().keys()
    for name, command in every.items():
        place = name.replace(" ", "-")
        assert f"[`{name}`](#command-{place})" in pages["cli.md"]
        made = section(commands.pages()[place], f"command-{place}").replace("\\|", "|")
        assert f"spacy weakner {name}" in made
        for own in command.params:
            if own.name != "help":
                is_option = own.param_type_name == "option"
                names = own.opts + own.secondary_opts if is_option else [(own.metavar or own.name).upper()]
                assert all(f"`{each}`" in made for each in names) and own.help, (name, own.name)


# Messages


def test_every_code(pages):
    codes = {name for owner in (errors.Errors, errors.Warnings) for name in vars(owner) if re.fullmatch(r"WK\d+", name)}
    assert codes == messages.messages().keys()
    assert all(pages["errors.md"].count(f"{{#{code}}}") == 1 for code in codes)


# The Python API


@pytest.mark.parametrize("name, package", [(name, package) for name, packages in API.items() for package in packages])
def test_every_function_of_the_api(pages, name, package):
    found = api.modules(package)
    assert found
    for module in found:
        made = pages[f"api/{name}.md"].split(f"({module.__name__})=")[1]
        for member, own in api.members(module).items():
            assert f"\n### {member.replace('_', chr(92) + '_')}\n" in made, member
            assert docstrings.read(own).text or docstrings.read(own).outcomes, member
        # What a command calls says of each argument what it does.
        main = vars(module).get(module.__name__.rsplit(".", 1)[1])
        if inspect.isfunction(main):
            assert {*inspect.signature(main).parameters} <= {*docstrings.read(main).arguments}, main
