"""The base of the heads that predict a tag for every token."""

from abc import abstractmethod
from typing import Any, Iterable, List, Sequence, Tuple

import numpy
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..corpus.parts import Part
from ..corpus.tags import TagScheme, make_scheme
from ..ty import PathScore, TagScores
from .entities import EntityHead
from .head import TargetT


class TaggingHead(EntityHead[List[Floats2d], TargetT]):
    """Base of the heads whose model returns a row for every token, with a column for each tag of a scheme.

    tag_scheme (str): "IO", "BIO" or "IOBES".
    """

    tag_scheme: str

    @property
    def scheme(self) -> TagScheme:
        """RETURNS (TagScheme): The tag scheme over the component's labels."""
        return make_scheme(self.tag_scheme, self.labels)

    @property
    def n_outputs(self) -> int:
        """RETURNS (int): The number of tags."""
        return len(self.scheme)

    @property
    def no_tags(self) -> TagScores:
        """RETURNS (TagScores): The scores of a Doc without tokens."""
        return PathScore([], 0.0, 0.0), numpy.zeros((0, self.n_outputs), dtype="float32")

    def merge_tags(self, doc: Doc, parts: List[Part], found: List[TagScores]) -> TagScores:
        """Merge the scores of independent sentences of a Doc; scores of sequences are summed."""
        rows = merge_rows(doc, parts, [rows for _, rows in found], self.n_outputs)
        return merge_paths(doc, parts, [path for path, _ in found], self.scheme), rows

    @abstractmethod
    def score_tags(self, docs: Iterable[Doc]) -> List[TagScores]:
        """Return, for each Doc, its best tag sequence, and the distribution over the tags of each token, float32
        (n_tokens, n_tags), with the columns `distribution_labels`."""

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The tags, which are the columns of distributions."""
        return self.scheme.tags


def merge_rows(doc: Doc, parts: List[Part], rows: Sequence[Any], n_tags: int) -> Any:
    """Merge distributions over tags of the parts of a Doc, shape (n_tokens, n_tags); white space is "O"."""
    result = numpy.zeros((len(doc), n_tags), dtype="float32")
    result[:, 0] = 1.0
    for part, given in zip(parts, rows, strict=True):
        result[part.tokens] = given
    return result


def merge_paths(doc: Doc, parts: List[Part], paths: List[PathScore], scheme: TagScheme) -> PathScore:
    """Merge tag sequences of the parts of a Doc; white space is "O" or, inside an entity, part of it."""
    tags = ["O"] * len(doc)
    for part, path in zip(parts, paths, strict=True):
        before = None
        for token, tag in zip(part.tokens.tolist(), path.tags, strict=True):
            if before is not None and scheme.continuations()[scheme.index[tags[before]], scheme.index[tag]]:
                tags[before + 1 : token] = [f"I-{tag[2:]}"] * (token - before - 1)
            tags[token], before = tag, token
    return PathScore(tags, sum(path.score for path in paths), sum(path.log_probability for path in paths))
