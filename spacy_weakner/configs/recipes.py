"""What configs there are."""

from functools import lru_cache
from typing import List, NamedTuple, Optional, Tuple

from ..errors import check_choice
from .reading import FOLDER, only_for, read_part, to_config

SIZES = ("cnn", "static", "bilstm", "transformer", "gpu", "spacy-transformers", "linear", "linear-static")


class Recipe(NamedTuple):
    """A config by its name."""

    name: str
    help: str  # what it is for, in one line
    sizes: Tuple[str, ...]  # sizes of the encoder that make sense; the first is the default
    parts: Tuple[str, ...]  # what it is made of


@lru_cache(maxsize=1)
def recipes() -> Tuple[Recipe, ...]:
    """All recipes, by name."""
    return tuple(_read(path.name[: -len(".cfg")]) for path in sorted((FOLDER / "recipes").glob("*.cfg")))


def find_recipe(name: str, size: Optional[str] = None) -> Recipe:
    """Look up a recipe, which must have the size."""
    known = {recipe.name: recipe for recipe in recipes()}
    check_choice("recipe", name, known)
    recipe = known[name]
    if size is not None:
        check_choice(f"size of {name}", size, recipe.sizes)
    return recipe


def sizes_of(size: str) -> List[str]:
    """The sizes that a size builds on, then itself."""
    base = to_config(read_part(f"sizes/{size}").entries).get("size", {}).get("base")
    return [size] if base is None else [*sizes_of(base), size]


def _read(name: str) -> Recipe:
    settings = to_config(only_for(read_part(f"recipes/{name}").entries, None))["recipe"]
    return Recipe(name, settings["help"], tuple(settings["sizes"]), tuple(settings["parts"]))
