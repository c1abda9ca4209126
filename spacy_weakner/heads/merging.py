"""What was found in the parts of a Doc, put together."""

from typing import Any, List, Tuple

import numpy
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..corpus.parts import Part
from ..corpus.tags import TagScheme
from ..ty import Entity, PathScore


def merge_candidates(
    doc: Doc, parts: List[Part], candidates: List[List[Tuple[Entity, float]]]
) -> List[Tuple[Entity, float]]:
    """Candidates with their probabilities, on the tokens of the Doc.

    doc (Doc): The Doc.
    parts (List[Part]): Its parts.
    candidates (List[List[Tuple[Entity, float]]]): Those of each part.
    RETURNS (List[Tuple[Entity, float]]): All of them, in the order of the parts.
    """
    return [(part.entity(e), score) for part, found in zip(parts, candidates, strict=True) for e, score in found]


def merge_rows(doc: Doc, parts: List[Part], rows: List[Floats2d], n_tags: int) -> Floats2d:
    """Distributions over tags. White space is "O".

    doc (Doc): The Doc.
    parts (List[Part]): Its parts.
    rows (List[Floats2d]): Of each part, shape (n_tokens, n_tags); "O" is the first column.
    n_tags (int): The number of tags.
    RETURNS (Floats2d): Shape (n_tokens, n_tags).
    """
    result: Any = numpy.zeros((len(doc), n_tags), dtype="float32")
    result[:, 0] = 1.0
    for part, given in zip(parts, rows, strict=True):
        result[part.tokens] = given
    return result


def merge_paths(doc: Doc, parts: List[Part], paths: List[PathScore], scheme: TagScheme) -> PathScore:
    """Tag sequences of independent sentences: their scores add up. White space inside an entity belongs to it.

    doc (Doc): The Doc.
    parts (List[Part]): Its parts.
    paths (List[PathScore]): That of each part.
    scheme (TagScheme): The tags.
    RETURNS (PathScore): One tag per token.
    """
    tags = ["O"] * len(doc)
    for part, path in zip(parts, paths, strict=True):
        before = None
        for token, tag in zip(part.tokens.tolist(), path.tags, strict=True):
            if before is not None and scheme.continuations()[scheme.index[tags[before]], scheme.index[tag]]:
                tags[before + 1 : token] = [f"I-{tag[2:]}"] * (token - before - 1)
            tags[token], before = tag, token
    return PathScore(tags, sum(path.score for path in paths), sum(path.log_probability for path in paths))
