"""From a distribution per token to entities."""

from typing import Collection, List, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..annotations import weak
from ..annotations.tags import TagScheme
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

    Choosing an entity instead of "O" gains sum_t p_t(tag of t) - p_t(O). The best choice for the first t tokens is
    either that for the first t - 1, or an entity that ends at t and the best choice before it (weighted interval
    scheduling).

    probabilities (Floats): Shape (n_tokens, n_tags).
    candidates (Collection[Entity]): The proposed entities.
    scheme (TagScheme): The tag scheme.
    RETURNS (List[Entity]): Entities from left to right. Of equal choices the one with fewer, earlier entities.
    """
    outside = numpy.concatenate([[0.0], numpy.cumsum(probabilities[:, 0])])
    ending: List[List[Tuple[float, Entity]]] = [[] for _ in range(len(probabilities) + 1)]
    for start, end, label in sorted(candidates):
        inside = probabilities[numpy.arange(start, end), scheme.span_tags(label, end - start)].sum()
        gain = float(inside - (outside[end] - outside[start]))
        if gain > SMALLEST_GAIN:
            ending[end].append((gain, (start, end, label)))
    best = [0.0]
    chosen: List[Optional[Entity]] = [None]
    for t in range(1, len(ending)):
        best.append(best[t - 1])
        chosen.append(None)
        for gain, entity in ending[t]:
            if best[entity[0]] + gain > best[t] + SMALLEST_GAIN:
                best[t], chosen[t] = best[entity[0]] + gain, entity
    entities: List[Entity] = []
    t = len(best) - 1
    while t > 0:
        last = chosen[t]
        if last is not None:
            entities.append(last)
        t = t - 1 if last is None else last[0]
    return entities[::-1]
