"""Composes configs of parts: the common base, the size of the encoder, the head, the corpora, the recipe."""

from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from confection import Config

from ..errors import Errors, WeaknerError, check_choice
from .reading import Entry, only_for, put_in_place, read_part, to_config
from .recipes import Recipe, find_recipe, reads_transformer, sizes_of, trains_transformer

# Sections that control the composition, and are not part of the result.
_PRIVATE = ("recipe", "size", "places")
# Types by which values of these types can be overridden; other ones by any.
_KINDS: Dict[type, Tuple[type, ...]] = {**{kind: (kind,) for kind in (bool, int, list, dict)}, float: (int, float)}


class Composition(NamedTuple):
    """A config, with the comments and the layout of its text."""

    recipe: Recipe
    size: str
    config: Config
    title: List[str]  # comment on the whole config
    comments: Dict[str, Tuple[str, ...]]  # comment by name of setting or section
    order: Dict[str, int]  # rank by name of setting or section
    sections: Set[str]  # names that are written as a section, not as a value


def make_config(recipe: str, size: Optional[str] = None, **settings: Any) -> Config:
    """Make the config of a recipe.

    recipe (str): Name of the recipe, for example "crf_ner.strong_weak"; `recipes` lists them.
    size (Optional[str]): Size of the encoder; None: the first one of the recipe.
    lang (str): Code of the language.
    tokenizer (Optional[str]): A registered tokenizer; None or empty: that of the language.
    transformer (Optional[str]): Name or folder of the Transformer, for a size with one; None or empty: the size's.
    precision (Optional[str]): Precision of torch's matrix products, for such a size; see `MatmulPrecision`. None or
        empty: full precision.
    overrides (Mapping[str, Any]): Other values of settings of the config, by dotted name.
    RETURNS (Config): The config. Variables such as `${paths.train}` are not interpolated.
    RAISES (WeaknerError): If there is no such recipe, size, language, tokenizer, precision or setting, the size has no
        Transformer, or a value is overridden by one of another type.
    """
    return compose_config(recipe, size, **settings).config


def flatten(config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the values of a config by dotted name; a section is an empty dictionary."""
    flat: Dict[str, Any] = {}
    pending: List[Tuple[str, Any]] = list(config.items())
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            flat[key] = {}
            pending.extend((f"{key}.{name}", child) for name, child in value.items())
        else:
            flat[key] = value
    return flat


def encoder_settings(size: str) -> Dict[str, Any]:
    """Return the encoder of a size, as a section for a component with its own encoder."""
    config = Config(is_interpolated=False)
    for name in sizes_of(size):
        config = config.merge(to_config(read_part(f"sizes/{name}").entries))
    return dict(config["ENCODER"])


def compose_config(
    recipe: str,
    size: Optional[str] = None,
    *,
    lang: str = "en",
    tokenizer: Optional[str] = None,
    transformer: Optional[str] = None,
    precision: Optional[str] = None,
    overrides: Mapping[str, Any] = MappingProxyType({}),
) -> Composition:
    """Make a config with its comments and layout. For the arguments see `make_config`."""
    found = find_recipe(recipe, size)
    chosen = size or found.sizes[0]
    made = _compose(found, chosen)
    made.config["nlp"]["lang"] = lang
    made.config["nlp"]["tokenizer"] = _tokenizer(lang, tokenizer) or made.config["nlp"]["tokenizer"]
    has_settings = trains_transformer if precision else reads_transformer
    if (transformer or precision) and not has_settings(chosen):
        others = ", ".join(name for name in found.sizes if has_settings(name)) or "none"
        setting = "precision" if precision else "name"
        raise WeaknerError(Errors.WK602.format(size=chosen, setting=setting, recipe=recipe, sizes=others))
    if transformer:
        made.config["paths"]["transformer"] = transformer
    if precision:
        from ..ty import PRECISIONS  # imports spaCy; see the comment below

        check_choice("precision", precision, PRECISIONS)
        made.config["initialize"]["before_init"]["precision"] = precision
    for key, value in overrides.items():
        _override(made, key, value)
    return made


def _override(made: Composition, key: str, value: Any) -> None:
    known = flatten(made.config)
    if key not in known:
        near = get_close_matches(key, known, n=5, cutoff=0.5)
        check_choice(f"setting of {made.recipe.name}", key, near or sorted(known))
    there = known[key]
    kinds = next((kinds for kind, kinds in _KINDS.items() if isinstance(there, kind)), None)
    is_variable = isinstance(value, str) and value.startswith("${")
    if kinds is not None and type(value) not in kinds and not is_variable:
        what = "a section, as JSON in quotes" if isinstance(there, dict) else f"a value such as {there}"
        raise WeaknerError(Errors.WK005.format(setting=key, value=repr(value), expected=what))
    *sections, name = key.split(".")
    section = made.config
    for each in sections:
        section = section[each]
    section[name] = value


def _compose(recipe: Recipe, size: str) -> Composition:
    chain = sizes_of(size)
    layers = _layers(recipe, chain)
    config = Config(is_interpolated=False)
    comments: Dict[str, Tuple[str, ...]] = {}
    # The encoder is merged into sections of the parts, so it comes after them.
    for entries in (layers[name] for name in ("base", "sizes", "parts", "encoder", "recipe")):
        for layer in entries:
            config = config.merge(to_config(layer))
            comments.update({entry.name: entry.comment for entry in layer if entry.comment})
    for name in _PRIVATE:
        config.pop(name, None)
    order: Dict[str, int] = {}
    sections: Set[str] = set()
    # Within a section, settings of the size come last: those of the head are more important for readers.
    for entries in (layers[name] for name in ("base", "parts", "recipe", "sizes", "encoder")):
        for entry in (entry for layer in entries for entry in layer):
            order.setdefault(entry.name, len(order))
            sections.add(entry.section)
    title = [*read_part(f"recipes/{recipe.name}").title, *comments.pop("", ())]
    title += [line for name in recipe.parts for line in read_part(f"parts/{name}").title]
    title += read_part(f"sizes/{size}").title
    return Composition(recipe, size, config, title, comments, order, sections)


def _layers(recipe: Recipe, sizes: Sequence[str]) -> Dict[str, List[List[Entry]]]:
    files = {
        "base": ["base"],
        "sizes": [f"sizes/{name}" for name in sizes],
        "parts": [f"parts/{name}" for name in recipe.parts],
        "recipe": [f"recipes/{recipe.name}"],
    }
    layers = {
        kind: [only_for(read_part(name).entries, size) for name in names for size in (None, *sizes)]
        for kind, names in files.items()
    }
    places: Dict[str, Optional[str]] = {}
    for layer in (layer for entries in layers.values() for layer in entries):
        places.update(to_config(layer).get("places", {}))
    layers["encoder"] = [[entry for entry in layer if _is_encoder(entry)] for layer in layers["sizes"]]
    layers["sizes"] = [[entry for entry in layer if not _is_encoder(entry)] for layer in layers["sizes"]]
    return {kind: [put_in_place(layer, places) for layer in entries] for kind, entries in layers.items()}


def _is_encoder(entry: Entry) -> bool:
    return entry.section.split(".")[0] == "ENCODER"


def _tokenizer(lang: str, tokenizer: Optional[str]) -> Optional[Dict[str, Any]]:
    if lang == "en" and not tokenizer:
        return None
    # Imported here, because spaCy loads our entry points while it is being imported.
    from ..pipelines import language_tokenizer, tokenizer_name

    return {"@tokenizers": tokenizer_name(lang, tokenizer)} if tokenizer else language_tokenizer(lang)
