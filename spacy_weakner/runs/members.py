"""Finds the pipelines that differ by their seed alone, as `train --members` has trained them."""

from pathlib import Path
from typing import List, Union

from ..errors import Errors, WeaknerError
from ..files import existing, parse_json

INDEX = "members.json"


def find_members(model: Union[str, Path]) -> List[Union[str, Path]]:
    """The pipelines of a model.

    model (Union[str, Path]): A pipeline, or a folder of `train --members`.
    RETURNS (List[Union[str, Path]]): The members, or the pipeline itself.
    RAISES (WeaknerError): If the folder is damaged.
    """
    index = Path(model) / INDEX
    if not index.is_file():
        return [model]
    try:
        names = [str(name) for name in parse_json(index.read_bytes())]
    except (ValueError, TypeError) as error:
        raise WeaknerError(Errors.WK437.format(path=index)) from error
    return [existing(index.parent / name, "run 'spacy weakner train --members' again") for name in names]
