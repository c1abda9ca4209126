"""Renders a config as text with comments."""

import json
import re
import shlex
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .compose import Composition, compose_config

# Sections in the order of spaCy's own configs.
SECTIONS = ("paths", "system", "nlp", "components", "corpora", "pretraining", "training", "initialize")
_VARIABLE = re.compile(r"\$\{[^}]+\}")


def render_config(recipe: str, size: Optional[str] = None, **settings: Any) -> str:
    """Return the config of a recipe as text with comments, for `spacy train`. For the arguments see `make_config`."""
    made = compose_config(recipe, size, **settings)
    overrides = settings.pop("overrides", {})
    given = {name: settings.get(name) for name in ("lang", "tokenizer", "transformer", "precision")}
    options = {f"--{name}": value for name, value in given.items() if (name, value) != ("lang", "en")}
    options["--set"] = " ".join(f"{recipe}:{key}={_value(value)}" for key, value in overrides.items())
    words = ["spacy weakner init config", recipe, "--size", made.size]
    words += [f"{key} {shlex.quote(value)}" for key, value in options.items() if value]
    lines = [*made.title, f"# Written by: {' '.join(words)}"]
    for name in SECTIONS:
        if name in made.config:
            lines += _section(made, name, made.config[name])
    return "\n".join(lines) + "\n"


def _section(made: Composition, name: str, settings: Dict[str, Any]) -> List[str]:
    values = {key: value for key, value in settings.items() if not _is_section(made, f"{name}.{key}", value)}
    lines = ["", *made.comments.get(name, ()), f"[{name}]"]
    for key, value in _sorted(made, name, values):
        lines += [*made.comments.get(f"{name}.{key}", ()), f"{key} = {_value(value)}"]
    for key, value in _sorted(made, name, settings):
        if key not in values:
            inner = _section(made, f"{name}.{key}", value)
            # No blank line after the header of a section that only contains other sections.
            lines += inner if len(lines) > 2 else inner[1:]
    return lines


def _is_section(made: Composition, name: str, value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return name in made.sections or any(other.startswith(f"{name}.") for other in made.sections)


def _sorted(made: Composition, name: str, settings: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    def rank(item: Tuple[str, Any]) -> Tuple[bool, int]:
        # The registered function first, then in the order of the parts.
        return not item[0].startswith("@"), made.order.get(f"{name}.{item[0]}", len(made.order))

    yield from sorted(settings.items(), key=rank)


def _value(value: Any) -> str:
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
