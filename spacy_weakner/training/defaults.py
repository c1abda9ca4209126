"""What the heads are made of where a config does not say: the same as in the configs."""

from typing import Any, Dict

from ..configs import encoder_settings, make_config

SIZE = "cnn"


def default_config(head: str) -> Dict[str, Any]:
    """Default settings of a head that has a recipe of its own.

    head (str): Its factory.
    RETURNS (Dict[str, Any]): The settings; the encoder needs no download.
    """
    settings: Dict[str, Any] = make_config(head, SIZE)["components"][head]
    return settings


def default_encoder() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): A convolutional encoder that needs no download."""
    return encoder_settings(SIZE)
