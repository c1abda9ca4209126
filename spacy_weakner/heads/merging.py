"""Results of the parts of a Doc, put together."""

from typing import Any, List, Sequence, Tuple

import numpy
from spacy.tokens import Doc

from ..corpus.parts import Part
from ..corpus.tags import TagScheme
from ..ty import Entity, PathScore, TagScores


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


def merge_tags(doc: Doc, parts: List[Part], found: List[TagScores], scheme: TagScheme) -> TagScores:
    """Tag sequences and distributions of independent sentences: the scores of sequences add up. White space is "O", but
    inside an entity it belongs to that.

    doc (Doc): The Doc.
    parts (List[Part]): Its parts.
    found (List[TagScores]): Those of each part.
    scheme (TagScheme): The tags; "O" is the first.
    RETURNS (TagScores): Those of the Doc.
    """
    rows = merge_rows(doc, parts, [rows for _, rows in found], len(scheme))
    return merge_paths(doc, parts, [path for path, _ in found], scheme), rows


def merge_rows(doc: Doc, parts: List[Part], rows: Sequence[Any], n_tags: int) -> Any:
    """The second half of `merge_tags`: shape (n_tokens, n_tags)."""
    result = numpy.zeros((len(doc), n_tags), dtype="float32")
    result[:, 0] = 1.0
    for part, given in zip(parts, rows, strict=True):
        result[part.tokens] = given
    return result


def merge_paths(doc: Doc, parts: List[Part], paths: List[PathScore], scheme: TagScheme) -> PathScore:
    """The first half of `merge_tags`."""
    tags = ["O"] * len(doc)
    for part, path in zip(parts, paths, strict=True):
        before = None
        for token, tag in zip(part.tokens.tolist(), path.tags, strict=True):
            if before is not None and scheme.continuations()[scheme.index[tags[before]], scheme.index[tag]]:
                tags[before + 1 : token] = [f"I-{tag[2:]}"] * (token - before - 1)
            tags[token], before = tag, token
    return PathScore(tags, sum(path.score for path in paths), sum(path.log_probability for path in paths))
