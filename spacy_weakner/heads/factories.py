"""Factories of components, made from the components' classes: what a class takes is said once, in its `__init__`."""

import inspect
from typing import Any, Callable, Dict, Optional, Sequence, TypeVar

from spacy.language import Language

from ..configs import encoder_settings, make_config

# Encoders of heads that a config says nothing of need no download.
SIZE = "cnn"
ComponentT = TypeVar("ComponentT")
ENTITIES = ("doc.ents", "token.ent_iob", "token.ent_type")
ENTITY_SCORES = {"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None}


def register_component(
    name: str,
    component: Callable[..., ComponentT],
    blocks: Dict[str, Any],
    *,
    assigns: Sequence[str] = ENTITIES,
    score_weights: Optional[Dict[str, Optional[float]]] = ENTITY_SCORES,
    scorer: str = "spacy.ner_scorer.v1",
) -> Callable[..., ComponentT]:
    """Register the factory of a component. Its arguments, and their types, are those of the class, but for the pipeline
    in the place of the vocabulary; so are the settings of a config, in their order. A class that takes `nlp` is given
    the pipeline.

    name (str): Name of the factory.
    component (Callable[..., ComponentT]): The class; it takes a vocabulary, a name and settings.
    blocks (Dict[str, Any]): Default settings of the arguments that the class has no default for: of heads the model
        and, for example, the loss. Defaults of the others stand in the class.
    assigns (Sequence[str]): What the component writes.
    score_weights (Optional[Dict[str, Optional[float]]]): Weights of its scores in the choice of a checkpoint, if it has
        any.
    scorer (str): Registered name of its scoring method.
    RETURNS (Callable[..., ComponentT]): The factory.
    """
    parameters = inspect.signature(component).parameters
    own = [p for key, p in parameters.items() if key not in ("vocab", "name", "nlp")]
    blocks = {**blocks, "scorer": {"@scorers": scorer}}

    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    given = [inspect.Parameter("nlp", kind, annotation=Language), inspect.Parameter("name", kind, annotation=str)]
    given += [p.replace(kind=kind, default=empty) for p in own]  # spaCy fills in the defaults
    signature = inspect.Signature(given)

    def make(*args: Any, **named: Any) -> ComponentT:
        settings = signature.bind_partial(*args, **named).arguments
        nlp = settings.pop("nlp")
        home = {"nlp": nlp} if "nlp" in parameters else {}
        return component(nlp.vocab, **settings, **home)

    vars(make)["__signature__"] = signature
    make.__annotations__ = {p.name: p.annotation for p in given}
    make.__name__ = make.__qualname__ = f"make_{name}"
    make.__doc__ = f"Create the component; the arguments are those of `{component.__name__}`."
    Language.factory(
        name,
        assigns=list(assigns),
        default_config={p.name: blocks.get(p.name, p.default) for p in own},
        default_score_weights=dict(score_weights or {}),
        func=make,
    )
    return make


def default_blocks(head: str, *keys: str) -> Dict[str, Any]:
    """Settings of a head in its own recipe.

    head (str): Its factory.
    *keys (str): Names of the settings.
    RETURNS (Dict[str, Any]): The settings.
    """
    settings: Dict[str, Any] = make_config(head, SIZE)["components"][head]
    return {key: settings[key] for key in keys}


def default_encoder() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): A convolutional encoder."""
    return encoder_settings(SIZE)
