"""What configs there are."""

from difflib import get_close_matches
from functools import lru_cache
from typing import Iterable, List, NamedTuple, Optional, Tuple

from ..errors import Errors, WeaknerError
from .reading import FOLDER, only_for, read_part, to_config

SIZES = ("cnn", "static", "bilstm", "transformer", "gpu", "linear", "linear-static")


class Recipe(NamedTuple):
    """A config by its name.

    name (str): Its name.
    help (str): What it is for, in one line.
    sizes (Tuple[str, ...]): Sizes of the encoder that make sense; the first is the default.
    parts (Tuple[str, ...]): What it is made of.
    """

    name: str
    help: str
    sizes: Tuple[str, ...]
    parts: Tuple[str, ...]


@lru_cache(maxsize=1)
def recipes() -> Tuple[Recipe, ...]:
    """RETURNS (Tuple[Recipe, ...]): All recipes, by name."""
    return tuple(_read(path.name[: -len(".cfg")]) for path in sorted((FOLDER / "recipes").glob("*.cfg")))


def find_recipe(name: str, size: Optional[str] = None) -> Recipe:
    """Look up a recipe.

    name (str): Its name.
    size (Optional[str]): The size that is wanted.
    RETURNS (Recipe): The recipe.
    RAISES (WeaknerError): If there is none, or not in this size.
    """
    known = {recipe.name: recipe for recipe in recipes()}
    if name not in known:
        raise WeaknerError(Errors.WK600.format(name=name, names=", ".join(nearest_first(name, known))))
    recipe = known[name]
    if size is not None and size not in recipe.sizes:
        sizes = nearest_first(size, recipe.sizes)
        raise WeaknerError(Errors.WK601.format(recipe=name, size=size, sizes=", ".join(sizes)))
    return recipe


def sizes_of(size: str) -> List[str]:
    """The sizes that a size is made of.

    size (str): A size.
    RETURNS (List[str]): The sizes that it builds on, then itself.
    """
    base = to_config(read_part(f"sizes/{size}").entries).get("size", {}).get("base")
    return [size] if base is None else [*sizes_of(base), size]


def nearest_first(name: str, names: Iterable[str]) -> List[str]:
    """Put what is spelt like a name first.

    name (str): What was asked for.
    names (Iterable[str]): What there is.
    RETURNS (List[str]): The names, the nearest first, the others in their order.
    """
    every = list(names)
    near = get_close_matches(name, every, n=3, cutoff=0.5)
    return [*near, *(other for other in every if other not in near)]


def _read(name: str) -> Recipe:
    settings = to_config(only_for(read_part(f"recipes/{name}").entries, None))["recipe"]
    return Recipe(name, settings["help"], tuple(settings["sizes"]), tuple(settings["parts"]))
