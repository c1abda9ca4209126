"""The matches of sources in the Docs of a batch, as arrays."""

from itertools import pairwise
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.tokens import Doc

from ..corpus.overlaps import longest_first
from ..corpus.weak import group_scores, weak_group
from ..ty import BoolMask, Ints

# Number of a label that is not among the known ones.
UNKNOWN = -1


class Matches(NamedTuple):
    """The matches of one source in the concatenated tokens of a batch."""

    looked: BoolMask  # shape (n_tokens,): tokens of Docs that the source has labeled
    starts: Ints  # shape (n_matches,): first tokens; in the order of the Docs
    ends: Ints  # shape (n_matches,): exclusive ends
    labels: Ints  # shape (n_matches,): numbers of the labels; -1: another one
    scores: NDArray[numpy.float64]  # shape (n_matches,): scores of the source; 1 if it has none
    # Shape (n_matches,): the matches that are kept if, where matches overlap, only the longest are kept.
    longest: BoolMask

    @property
    def covered(self) -> BoolMask:
        """Mask of the tokens in the longest matches: shape (n_tokens,)."""
        steps = numpy.zeros(len(self.looked) + 1, dtype="int64")
        numpy.add.at(steps, self.starts[self.longest], 1)
        numpy.add.at(steps, self.ends[self.longest], -1)
        result: BoolMask = numpy.cumsum(steps[:-1]) > 0
        return result

    def spread(self) -> Tuple[Ints, Ints, Ints]:
        """Return, for every token of each match: the match, the token, and its position in the match; shape (n,)."""
        lengths = self.ends - self.starts
        places = numpy.arange(int(lengths.sum())) - numpy.repeat(numpy.cumsum(lengths) - lengths, lengths)
        matches = numpy.repeat(numpy.arange(len(lengths)), lengths)
        return matches, self.starts[matches] + places, places


def read_matches(docs: Sequence[Doc], source: str, labels: Sequence[str], hidden: Sequence[bool]) -> Matches:
    """Read the span group of a source. Docs without the group, or where it is hidden, count as not labeled."""
    name, ids = weak_group(source), {get_string_id(label): i for i, label in enumerate(labels)}
    looked = [not hide and name in doc.spans for doc, hide in zip(docs, hidden, strict=True)]
    lengths = list(map(len, docs))
    rows: List[Tuple[int, int, int, float, bool]] = []
    offset = 0
    for doc, length, there in zip(docs, lengths, looked, strict=True):
        if there:
            rows += _rows(doc, name, ids, offset)
        offset += length
    columns: List[Any] = list(zip(*rows, strict=True)) or [()] * 5
    types = ("int64", "int64", "int64", "float64", "bool")
    arrays = [numpy.asarray(column, dtype=type_) for column, type_ in zip(columns, types, strict=True)]
    return Matches(numpy.repeat(numpy.asarray(looked, dtype=bool), lengths), *arrays)


def _rows(doc: Doc, name: str, ids: Dict[int, int], offset: int) -> List[Tuple[int, int, int, float, bool]]:
    group = doc.spans[name]
    if not len(group):
        return []
    spans = list(group)
    bounds = [(span.start, span.end) for span in spans]
    scores = [1.0 if score is None else score for score in group_scores(doc, name)]
    # Comparing neighbors is cheaper than resolving overlaps.
    ordered = sorted(bounds)
    apart = all(before[1] <= after[0] for before, after in pairwise(ordered))
    longest = {*range(len(spans))} if apart else {*longest_first(spans)}
    return [
        (start + offset, end + offset, ids.get(span.label, UNKNOWN), score, i in longest)
        for i, ((start, end), span, score) in enumerate(zip(bounds, spans, scores, strict=True))
    ]
