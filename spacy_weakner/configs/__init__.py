"""Configs of all recipes and sizes, composed of parts: see docs/configs.md."""

from .compose import encoder_settings, make_config
from .recipes import Recipe, recipes
from .render import render_config

__all__ = ["Recipe", "encoder_settings", "make_config", "recipes", "render_config"]
