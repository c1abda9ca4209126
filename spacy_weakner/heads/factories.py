"""Helpers for the factories of components: each setting is declared once, in `__init__` of the component's class."""

import inspect
from typing import Any, Callable, Dict, TypeVar

from spacy.language import Language
from spacy.util import walk_dict

from ..about import __title__
from ..configs import encoder_settings, make_config

# Size of the encoder in default configs, which needs no download.
SIZE = "cnn"
# What components may write: with some settings (`annotate_ents`, `nested`, `spans_key`) only a part of it.
ENTITIES = ["doc.ents", "token.ent_iob", "token.ent_type", "span._.weakner_score"]
ENTITIES_AND_SPANS = [*ENTITIES, "doc.spans"]
ENTITY_SCORES = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}
# The extras that architectures need wherever a pipeline runs.
_EXTRAS = {
    **dict.fromkeys(("TransformerEncoder", "QueryContextEncoder", "FrozenTransformer"), "transformers"),
    **dict.fromkeys(("OnnxEncoder", "FrozenOnnx"), "onnx"),
}
FactoryT = TypeVar("FactoryT", bound=Callable[..., Any])


def default_config(
    component: Callable[..., Any], *, scorer: str = "spacy.ner_scorer.v1", **blocks: Any
) -> Dict[str, Any]:
    """Return the default config of a factory.

    component (Callable[..., Any]): The component's class.
    scorer (str): Registered name of its scoring method.
    **blocks (Any): The settings that have no default in the class, such as the model.
    RETURNS (Dict[str, Any]): All settings, in the order of the class.
    """
    blocks = {**blocks, "scorer": {"@scorers": scorer}}
    return {name: blocks.get(name, p.default) for name, p in _settings(component).items()}


def default_encoder() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): The config block of a convolutional encoder."""
    return encoder_settings(SIZE)


def require_extras(nlp: Language) -> None:
    """Add the extras that the encoders of a pipeline need to the requirements in its meta.json, which `spacy package`
    reads."""
    names = {str(value) for path, value in walk_dict(nlp.config["components"]) if path[-1] == "@architectures"}
    extras = {f"{__title__}[{extra}]" for name, extra in _EXTRAS.items() if f"{__title__}.{name}.v1" in names}
    given = nlp.meta.get("requirements", [])
    if not extras <= {*given}:
        nlp.meta["requirements"] = sorted({*given, *extras})


def takes_settings_of(component: Callable[..., Any]) -> Callable[[FactoryT], FactoryT]:
    """Decorate a factory `make(nlp, name, **settings)` so that spaCy, which reads the signature, fills in and validates
    the settings by the names and types of the component's `__init__`.

    component (Callable[..., Any]): The component's class.
    RETURNS (Callable): The decorator.
    """

    def decorate(factory: FactoryT) -> FactoryT:
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        given = [inspect.Parameter("nlp", kind, annotation=Language), inspect.Parameter("name", kind, annotation=str)]
        given += [p.replace(kind=kind, default=empty) for p in _settings(component).values()]  # spaCy has the defaults
        vars(factory)["__signature__"] = inspect.Signature(given)
        factory.__annotations__ = {p.name: p.annotation for p in given}
        return factory

    return decorate


def entity_head_factory(name: str, component: Callable[..., Any], *blocks: str) -> Callable[..., Any]:
    """Register the factory of a head that writes entities.

    name (str): Name of the factory, and of the head's own recipe.
    component (Callable[..., Any]): The component's class.
    *blocks (str): The settings that have no default in the class; those of the recipe are their defaults.
    RETURNS (Callable): The factory.
    """
    recipe = make_config(name, SIZE)["components"][name]

    @takes_settings_of(component)
    def make(nlp: Language, name: str, **settings: Any) -> Any:
        return component(nlp.vocab, name=name, **settings)

    # By these, spaCy distinguishes functions that are registered under one name.
    make.__qualname__, make.__module__ = f"make_{name}", component.__module__
    defaults = default_config(component, **{block: recipe[block] for block in blocks})
    register = Language.factory(
        name, assigns=ENTITIES_AND_SPANS, default_config=defaults, default_score_weights=ENTITY_SCORES
    )
    return register(make)


def _settings(component: Callable[..., Any]) -> Dict[str, inspect.Parameter]:
    given = inspect.signature(component).parameters
    return {name: p for name, p in given.items() if name not in ("vocab", "name", "nlp")}
