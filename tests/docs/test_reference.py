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
from thinc.api import Config
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
PAGES = sorted(REFERENCE.rglob("*.md"))
# Pages of the Python API, each with the packages and modules that its directives name.
API = {
    page.stem: re.findall(r"^```\{api\} (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    for page in sorted((REFERENCE / "api").glob("*.md"))
}
# What is no registered function that a config names.
OTHER = {"spacy_factories", "spacy_cli"}


def entry_points():
    parser = configparser.ConfigParser()
    parser.optionxform = str
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    for group, lines in parser["options.entry_points"].items():
        for line in lines.strip().splitlines():
            name, target = (part.strip() for part in line.split("="))
            yield group, name, target


def targets(group):
    return [(name, target) for own, name, target in entry_points() if own == group]


FUNCTIONS = [(group, name) for group, name, _ in entry_points() if group not in OTHER]


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


def whole(text):
    """A part of a config with the sections that its own stand in."""
    named = re.findall(r"^\[(.+)\]$", text, re.MULTILINE)
    above = {".".join(name.split(".")[:n]): None for name in named for n in range(1, name.count(".") + 1)}
    return "".join(f"[{name}]\n\n" for name in above if name not in named) + text


def section(text, target):
    """What stands between the place of that name and the next one."""
    return text.split(f"\n({target})=\n" if f"\n({target})=\n" in text else f"({target})=\n")[1].split("\n(")[0]


# Components


@pytest.mark.parametrize("name", [name for name, _ in targets("spacy_factories")])
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


@pytest.mark.parametrize("path", sorted((REFERENCE / "components").glob("*_*.md")), ids=lambda path: path.stem)
def test_examples_of_settings_are_settings(path):
    """The configs on the pages name what there is, with values of the types that they have."""
    defaults = spacy.blank("en").get_factory_meta(path.stem).default_config
    for text in re.findall(r"```ini\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        config = Config().from_str(whole(text), interpolate=False)
        given = config.get("components", {}).get(path.stem, {})
        assert {*given} - {"factory"} <= {*defaults}
        for key, value in given.items():
            if key in defaults and defaults[key] is not None and value is not None:
                assert isinstance(value, type(defaults[key])), key


# Registered functions


@pytest.mark.parametrize(("group", "name"), FUNCTIONS, ids=lambda own: own)
def test_every_registered_function(pages, group, name):
    (page,) = (text for path, text in pages.items() if path.startswith("registered/") and f"({name})=" in text)
    made = section(page, name)
    assert f'{registered.REGISTRIES[group]} = "{name}"' in made
    ((module, attribute),) = (target.split(":") for own, target in targets(group) if own == name)
    function = getattr(import_module(module), attribute)
    about = docstrings.read(function)
    assert about.summary and {*inspect.signature(function).parameters} <= rows(made) <= {
        "name",
        "---",
        *about.arguments,
    }


# The command line


def test_every_command_and_option(pages):
    page = pages["cli.md"]

    def walk(group, before=""):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, f"{before}{name} ")
            elif not command.hidden:
                yield f"{before}{name}", command

    every = dict(walk(get_command(app)))
    assert len(every) > 20 and every.keys() == commands.commands().keys()
    for name, command in every.items():
        made = section(page, f"command-{name.replace(' ', '-')}")
        assert f"spacy weakner {name}" in made
        for own in command.params:
            if own.name != "help":
                names = (
                    own.opts + own.secondary_opts
                    if own.param_type_name == "option"
                    else [(own.metavar or own.name).upper()]
                )
                assert all(f"`{each}`" in made.replace("\\|", "|") for each in names), (name, own.name)
                assert own.help, (name, own.name)


# Messages


def test_every_code(pages):
    codes = {name for owner in (errors.Errors, errors.Warnings) for name in vars(owner) if re.fullmatch(r"WK\d+", name)}
    assert 100 < len(codes) <= 170 and codes == messages.messages().keys()
    for code in codes:
        assert pages["errors.md"].count(f"{{#{code}}}") == 1


# The Python API


@pytest.mark.parametrize("name, package", [(name, package) for name, packages in API.items() for package in packages])
def test_every_function_of_the_api(pages, name, package):
    page = pages[f"api/{name}.md"]
    found = api.modules(package)
    assert found
    for module in found:
        made = page.split(f"({module.__name__})=")[1]
        for name, own in api.members(module).items():
            assert f"\n### {name.replace('_', chr(92) + '_')}\n" in made, name
            assert docstrings.read(own).text or docstrings.read(own).outcomes, name


def test_commands_are_functions_with_all_that_is_said():
    """What a command calls says of each argument what it does."""
    for package in (package for packages in API.values() for package in packages):
        for module in api.modules(package):
            main = vars(module).get(module.__name__.rsplit(".", 1)[1])
            if inspect.isfunction(main):
                assert {*inspect.signature(main).parameters} <= {*docstrings.read(main).arguments}, main
