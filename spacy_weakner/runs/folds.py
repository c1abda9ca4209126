"""The folds of a cross-fit: pipelines, each with the corpus that it was not trained on."""

from pathlib import Path
from typing import List, Tuple

from ..errors import Errors, WeaknerError
from ..files import existing, parse_json
from ..runtime.hashes import hash_file

INDEX = "folds.json"


def read_folds(folder: Path) -> List[Tuple[str, Path]]:
    """The folds that `train --folds` has made.

    folder (Path): Its output.
    RETURNS (List[Tuple[str, Path]]): Pipelines, each with the corpus that it was not trained on.
    RAISES (WeaknerError): If there are none.
    """
    folder = Path(folder)
    index = existing(folder / INDEX, "make folds with 'spacy weakner train --folds'")
    try:
        rows = parse_json(index.read_bytes())
        folds = [(str(folder / str(row["model"])), folder / str(row["corpus"]), row["corpus_hash"]) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise WeaknerError(Errors.WK363.format(path=index)) from error
    for _, corpus, key in folds:
        if hash_file(existing(corpus)) != key:
            raise WeaknerError(Errors.WK367.format(path=corpus))
    return [(model, corpus) for model, corpus, _ in folds]
