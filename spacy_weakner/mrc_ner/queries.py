"""The questions that stand for entity labels."""

import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..errors import Errors, WeaknerError
from ..files import parse_json, read_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def make_queries(path: Optional[Path] = None, queries: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """Read questions. Registered as `spacy_weakner.Queries.v1`.

    path (Optional[Path]): A JSON or TOML file: an object of questions by label.
    queries (Optional[Dict[str, str]]): Questions by label, in the config itself.
    RETURNS (Dict[str, str]): Questions by label, in their order.
    RAISES (WeaknerError): If not exactly one of both is given, the file is missing or malformed, or a question is
        empty.
    """
    if (path is None) == (queries is None):
        raise WeaknerError(Errors.WK033)
    if path is not None:
        return check_queries(_read(Path(path)), str(path))
    return check_queries(queries, "[initialize]")


def check_queries(queries: Any, where: str) -> Dict[str, str]:
    """Refuse what are no questions.

    queries (Any): What should be questions by label.
    where (str): Where it stands.
    RETURNS (Dict[str, str]): The questions.
    RAISES (WeaknerError): If one is no text, or empty.
    """
    if not isinstance(queries, Mapping) or not queries:
        raise WeaknerError(Errors.WK035.format(path=where, reason="it is no object of questions by label"))
    for label, text in queries.items():
        words = (label, text)
        if not all(isinstance(own, str) and own.strip() for own in words):
            raise WeaknerError(Errors.WK034.format(where=where, label=label))
    return dict(queries)


def _read(path: Path) -> Any:
    text = "\n".join(read_lines(path))
    try:
        if path.suffix not in (".json", ".toml"):
            raise ValueError("its name has to end in .json or .toml")
        return tomllib.loads(text) if path.suffix == ".toml" else parse_json(text, object_pairs_hook=_unique)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise WeaknerError(Errors.WK035.format(path=path, reason=reason)) from error


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a label stands there twice: {', '.join(label for label, _ in pairs)}")
    return found
