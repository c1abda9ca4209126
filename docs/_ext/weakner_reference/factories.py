"""Components: settings, what `[initialize]` takes, what is read and written, and methods."""

import inspect
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Dict, List

import spacy
from spacy.language import FactoryMeta
from thinc.api import Config

from .docstrings import RETURNS, Docstring, read
from .markup import code, document, escape, fence, prose, table, target, value
from .signatures import argument_table, call_form, outcome_lines, parameters, type_name

PACKAGE = "spacy_weakner"
# Of every component that spaCy initializes.
_INITIALIZE = ("self", "get_examples", "nlp")
# What spaCy calls on every component, and what its documentation describes.
_SPACY = {"from_bytes", "from_disk", "to_bytes", "to_disk", "initialize"}


def names() -> List[str]:
    """RETURNS (List[str]): The factories of this package."""
    return sorted(point.name for point in _points())


def render(name: str) -> str:
    """The reference of a component.

    name (str): Its factory.
    RETURNS (str): Markdown.
    """
    component, meta = component_class(name), spacy.blank("en").get_factory_meta(name)
    about, given_defaults = read(component), meta.default_config or {}
    defaults = {key: _default(own) for key, own in given_defaults.items()}
    settings = [own for own in parameters(component) if own.name in given_defaults]
    initialize = parameters(component.initialize, _INITIALIZE)
    given = {own.name: value(own.default) for own in initialize if own.default is not own.empty}
    return document(
        target(f"component-{name}"),
        "## Settings",
        prose(about.text),
        f"In `[components.{name}]`:",
        argument_table(settings, about, defaults),
        outcome_lines(about),
        f"In `[initialize.components.{name}]`:" if initialize else "",
        argument_table(initialize, read(component.initialize), given),
        "## What it reads and writes",
        _annotations(meta),
        "## Methods",
        f"Those of every component of spaCy, and of {code(_path(component))}:",
        _methods(component),
        "## Default settings, whole",
        fence("ini", Config({"components": {name: {"factory": name, **given_defaults}}}).to_str()),
    )


def component_class(name: str) -> Any:
    """The class that a factory makes.

    name (str): The factory.
    RETURNS (Any): The class.
    """
    return type(spacy.blank("en").create_pipe(name))


def methods(component: Any) -> Dict[str, Any]:
    """What can be called on a component, beside what spaCy's own have.

    component (Any): The class.
    RETURNS (Dict[str, Any]): Functions and properties by name, in the order of the code, the class's own first.
    """
    found: Dict[str, Any] = {}
    for owner in component.__mro__:
        if owner.__module__.startswith(PACKAGE):
            for name, own in vars(owner).items():
                if not name.startswith("_") and name not in _SPACY and isinstance(own, (property, type(render))):
                    found.setdefault(name, own)
    return {name: own for name, own in found.items() if _documented(component, name)}


def _documented(component: Any, name: str) -> bool:
    return bool(inspect.getdoc(getattr(component, name)))


def _methods(component: Any) -> str:
    rows = []
    for name, own in methods(component).items():
        about = read(getattr(component, name))
        form = name if isinstance(own, property) else call_form(name, own)
        rows.append([code(form), code(_result(own, about)), escape(about.summary or _outcome(about))])
    return table(["method", "gives", "what it does"], rows)


def _result(own: Any, about: Docstring) -> str:
    field = about.outcomes.get(RETURNS)
    function: Any = own.fget if isinstance(own, property) else own
    return (field.type if field else "") or type_name(inspect.signature(function).return_annotation) or "None"


def _outcome(about: Docstring) -> str:
    return about.outcomes[RETURNS].text if RETURNS in about.outcomes else ""


def _annotations(meta: FactoryMeta) -> str:
    weights = {key: weight for key, weight in (meta.default_score_weights or {}).items() if weight is not None}
    rows = [
        ["needs of components before it", ", ".join(map(code, meta.requires)) or "nothing"],
        ["writes", ", ".join(map(code, meta.assigns))],
        [
            "scores, and their weights in the choice of a checkpoint",
            ", ".join(f"{code(k)} {weights[k]}" for k in weights),
        ],
    ]
    return table(["", "on a Doc, as the factory declares it"], [row for row in rows if row[1]])


def _default(own: Any) -> str:
    return "a block, [below](#default-settings-whole)" if isinstance(own, dict) else value(own)


def _path(component: Any) -> str:
    return f"{component.__module__}.{component.__qualname__}"


def _points() -> List[EntryPoint]:
    return [point for point in entry_points(group="spacy_factories") if point.value.startswith(f"{PACKAGE}.")]
