"""From a distribution per token to entities."""

from typing import Collection, Dict, List, Sequence

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus import weak
from ..corpus.overlaps import best_without_overlaps
from ..corpus.tags import TagScheme
from ..ty import Entity

Floats = NDArray[numpy.float64]
# Gains below this are rounding errors.
SMALLEST_GAIN = 1e-12


def proposals(doc: Doc, names: Sequence[str]) -> List[Entity]:
    """The entities that sources propose.

    doc (Doc): The Doc.
    names (Sequence[str]): Names of the sources.
    RETURNS (List[Entity]): Different entities, sorted; they may overlap.
    """
    return sorted({entity for name in names for entity in weak.group_entities(doc, weak.weak_group(name))})


def best_entities(probabilities: Floats, candidates: Collection[Entity], scheme: TagScheme) -> List[Entity]:
    """Choose, among proposed entities without overlaps, those whose tags are right for the largest expected number of
    tokens: posterior decoding, where only whole proposals can be chosen.

    If any legal tag sequence were admitted, sources that differ about a boundary would often be combined to an entity
    that none of them has proposed, and that is nearly always wrong.

    Choosing an entity instead of "O" gains sum_t p_t(tag of t) - p_t(O); see `best_without_overlaps`.

    probabilities (Floats): Shape (n_tokens, n_tags).
    candidates (Collection[Entity]): The proposed entities.
    scheme (TagScheme): The tag scheme.
    RETURNS (List[Entity]): Entities from left to right. Of equal choices the one with fewer, earlier entities.
    """
    outside = numpy.concatenate([[0.0], numpy.cumsum(probabilities[:, 0])])
    gains: Dict[Entity, float] = {}
    for start, end, label in sorted(candidates):
        inside = probabilities[numpy.arange(start, end), scheme.span_tags(label, end - start)].sum()
        gain = float(inside - (outside[end] - outside[start]))
        if gain > SMALLEST_GAIN:
            gains[start, end, label] = gain
    entities, bounds = list(gains), [entity[:2] for entity in gains]
    chosen = best_without_overlaps(bounds, list(gains.values()), len(probabilities), SMALLEST_GAIN)
    return [entities[i] for i in chosen]
