"""The recipes and sizes of configs."""

from functools import lru_cache
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..errors import Errors, WeaknerError, check_choice
from .reading import FOLDER, folders, only_for, read_part, to_config

# A linear CRF; one with subword vectors as additional features; and one on a frozen Transformer, or on the encoder of a
# spaCy pipeline.
LINEAR, LINEAR_STATIC, FROZEN, FROZEN_TOK2VEC = "linear", "linear-static", "frozen", "frozen-tok2vec"
SIZES = ("cnn", "static", "bilstm", "transformer", "gpu", LINEAR, LINEAR_STATIC, FROZEN, FROZEN_TOK2VEC)


class Recipe(NamedTuple):
    """A recipe of a config."""

    name: str
    help: str  # its purpose, in one line
    sizes: Tuple[str, ...]  # supported sizes of the encoder; the first is the default
    parts: Tuple[str, ...]  # the parts that it is composed of


@lru_cache(maxsize=1)
def recipes() -> Tuple[Recipe, ...]:
    """Return all recipes, sorted by name: those of this package and of others."""
    paths: Dict[str, Path] = {}
    for folder in folders():
        for name in _names(folder):
            if (other := paths.setdefault(name, folder)) != folder:
                raise WeaknerError(Errors.WK013.format(name=name, first=other, second=folder))
    return tuple(map(_read, sorted(paths)))


def find_recipe(name: str, size: Optional[str] = None) -> Recipe:
    """Look up a recipe; raises an error if it does not exist, or does not support the size."""
    # Otherwise other packages need not be searched, as components read their recipes when they are imported.
    if name not in _names(FOLDER):
        check_choice("recipe", name, [recipe.name for recipe in recipes()])
    recipe = _read(name)
    check_choice(f"size of {name}", size, recipe.sizes, optional=True)
    return recipe


def _names(folder: Path) -> List[str]:
    return [path.name.removesuffix(".cfg") for path in (folder / "recipes").glob("*.cfg")]


def sizes_of(size: str) -> List[str]:
    """Return the sizes that a size extends, followed by the size itself."""
    base = to_config(read_part(f"sizes/{size}").entries).get("size", {}).get("base")
    return [size] if base is None else [*sizes_of(base), size]


def reads_transformer(size: str) -> bool:
    """Return True if a size has a Transformer, which `paths.transformer` names."""
    return any(
        "transformer" in to_config(read_part(f"sizes/{name}").entries).get("paths", {}) for name in sizes_of(size)
    )


def trains_transformer(size: str) -> bool:
    """Return True if a size has a Transformer that is trained."""
    return "transformer" in sizes_of(size)


def _read(name: str) -> Recipe:
    settings = to_config(only_for(read_part(f"recipes/{name}").entries, None))["recipe"]
    return Recipe(name, settings["help"], tuple(settings["sizes"]), tuple(settings["parts"]))
