"""What heads share that give every token a tag."""

from typing import List, Sequence, Tuple

from spacy.tokens import Doc
from thinc.types import Floats2d

from ..corpus.parts import Part
from ..corpus.tags import TagScheme, make_scheme
from ..losses import Array
from ..sources.strengths import Strength, starting_weights
from ..ty import PathScore
from .entities import EntityHead
from .head import TargetT
from .merging import merge_paths, merge_rows

TagScores = Tuple[PathScore, Floats2d]


class TaggingHead(EntityHead[List[Floats2d], TargetT]):
    """Base of the heads whose model gives every token a row, with a column for each tag of a scheme.

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

    def starting_votes(self, strengths: Sequence[Strength]) -> Array:
        """Weights of the votes, towards the tags of the sources' own reading."""
        return starting_weights(self.scheme, strengths)

    def _merge_rows(self, doc: Doc, parts: List[Part], rows: List[Floats2d]) -> Floats2d:
        return merge_rows(doc, parts, rows, self.n_outputs)

    def _merge_paths(self, doc: Doc, parts: List[Part], paths: List[PathScore]) -> PathScore:
        return merge_paths(doc, parts, paths, self.scheme)

    def _merge_tags(self, doc: Doc, parts: List[Part], found: List[TagScores]) -> TagScores:
        return (
            self._merge_paths(doc, parts, [path for path, _ in found]),
            self._merge_rows(doc, parts, [rows for _, rows in found]),
        )

    @property
    def distribution_labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The columns of `distributions`: the tags."""
        return self.scheme.tags
