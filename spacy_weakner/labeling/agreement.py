"""What several samples of an answer agree on, in two steps: mentions first, then their types (Xie et al., EMNLP 2023,
https://arxiv.org/abs/2310.10035)."""

from collections import Counter
from typing import Dict, List, Sequence, Tuple

from ..ty import Entity


def vote(samples: Sequence[Sequence[Entity]]) -> Tuple[List[Entity], List[float]]:
    """Let samples vote.

    samples (Sequence[Sequence[Entity]]): What each found: (start, end, label).
    RETURNS (Tuple[List[Entity], List[float]]): Every mention of any sample with the label that most of those name that
        have it (in a draw the one that was named first), in the order of the text; and for each the share of all
        samples that have it, with whichever label.
    """
    labels: Dict[Tuple[int, int], Counter[str]] = {}
    found: Counter[Tuple[int, int]] = Counter()
    for sample in samples:
        unique = dict.fromkeys(sample)
        found.update({(start, end) for start, end, _ in unique})
        for start, end, label in unique:
            labels.setdefault((start, end), Counter())[label] += 1
    places = sorted(labels)
    # Of equal counts, most_common gives the one that came first.
    entities = [(*place, labels[place].most_common(1)[0][0]) for place in places]
    return entities, [found[place] / len(samples) for place in places]
