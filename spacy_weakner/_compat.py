"""Optional packages. Importing this module imports none of them."""

from importlib.util import find_spec

has_torch = find_spec("torch") is not None
has_spacy_transformers = find_spec("spacy_transformers") is not None
