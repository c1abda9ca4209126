"""The questions that represent entity labels."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from ..errors import Errors, WeaknerError
from ..files import read_object

_OBJECT = "questions by label"


def make_queries(path: Optional[Path] = None, queries: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """Read questions. Registered as `spacy_weakner.Queries.v1`.

    path (Optional[Path]): A JSON or TOML file with questions by label.
    queries (Optional[Dict[str, str]]): Questions by label, in the config itself.
    RETURNS (Dict[str, str]): Questions by label, in the given order.
    RAISES (WeaknerError): If both or neither are given, the file is missing or malformed, or a question is empty.
    """
    if path is None and queries is None:
        raise WeaknerError(Errors.WK010.format(setting="paths.queries", what="a JSON or TOML file with questions"))
    if path is not None and queries is not None:
        raise WeaknerError(Errors.WK331.format(setting="queries", where="without 'path'", instead=", or 'path'"))
    if path is not None:
        return check_queries(read_object(Path(path), _OBJECT), str(path))
    return check_queries(queries, "[initialize]")


def check_queries(queries: Any, where: str) -> Dict[str, str]:
    """Check that a value has questions by label.

    queries (Any): The value.
    where (str): Its place, for error messages.
    RETURNS (Dict[str, str]): The questions.
    RAISES (WeaknerError): If a label or question is empty or not a text.
    """
    if not isinstance(queries, Mapping) or not queries:
        raise WeaknerError(Errors.WK206.format(path=where, reason="no questions", cure=f"Give {_OBJECT}"))
    for label, text in queries.items():
        words = (label, text)
        if not all(isinstance(word, str) and word.strip() for word in words):
            raise WeaknerError(Errors.WK036.format(where=where, reason=f"no question for the labels {label}"))
    return dict(queries)
