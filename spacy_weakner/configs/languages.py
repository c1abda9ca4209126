"""Languages and tokenizers of spaCy. This module imports spaCy, so it is imported only where it is needed."""

import pkgutil
from typing import Any, Dict

import spacy.lang
from spacy.util import get_lang_class, registry

from ..errors import Errors, WeaknerError, check_choice


def language_tokenizer(lang: str) -> Dict[str, Any]:
    """Return the section [nlp.tokenizer] of a language."""
    try:
        found = get_lang_class(lang)
    except ImportError as error:
        names = {module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg}
        names.update(registry.languages.get_all())
        check_choice("lang", lang, sorted(names))
        raise WeaknerError(Errors.WK108.format(what=f"the language '{lang}'", reason=error)) from error
    return dict(found.default_config["nlp"]["tokenizer"])


def named_tokenizer(name: str) -> Dict[str, Any]:
    """Return the section [nlp.tokenizer] of a registered tokenizer with its default settings."""
    if not registry.has("tokenizers", name):
        check_choice("tokenizer", name, sorted(registry.tokenizers.get_all()))
    return {"@tokenizers": name}
