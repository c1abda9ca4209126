"""What would help most next, from what was measured here and, for a Transformer, on public data."""

from typing import Any, Dict, List, Optional, Tuple

from .curve import Point, next_gain
from .rules import Facts

# Weak labels and 250 gold sentences of BC5CDR: 71.9 with the CNN, 77.9 with MiniLM; gold alone 57.8 and 71.8
# (docs/evidence/foundation.md). Where less is missing, less can be gained.
TRANSFORMER_GAIN = 6.0
TRANSFORMER_SHARE = 0.25
# What is not measured here, in points of F1 by which it is sorted in.
FIRST_GOLD, LITTLE_GOLD, FIRST_LABELS, MORE_TERMS = 20.0, 5.0, 4.0, 3.0
Advice = Tuple[float, str]


def advise(
    facts: Facts, points: List[Point], proposal: Optional[Dict[str, Any]], best_f1: Optional[float]
) -> List[str]:
    """Say what to do next.

    facts (Facts): What was found.
    points (List[Point]): The learning curve.
    proposal (Optional[Dict[str, Any]]): Settings that `judge` proposes for the term list, with "before" and "after".
    best_f1 (Optional[float]): F1 of the winner.
    RETURNS (List[str]): Sentences, the most helpful first.
    """
    found = [_more_gold(facts, points), *_better_labels(facts, proposal)]
    if facts.size in ("cnn", "bilstm"):
        room = 100.0 if best_f1 is None else 100.0 - best_f1
        text = (
            "A Transformer as encoder (--size transformer): on BC5CDR with 250 gold sentences it was 6 points better "
            "than the small CNN where there were weak labels, and 14 with gold alone."
        )
        found.append((min(TRANSFORMER_GAIN, TRANSFORMER_SHARE * room), text))
    return [text for _, text in sorted(found, key=lambda advice: -advice[0])]


def _more_gold(facts: Facts, points: List[Point]) -> Advice:
    if not facts.gold:
        return FIRST_GOLD, "Gold: with about a hundred annotated sentences one can choose, and knows how good it is."
    gain = next_gain(points)
    if gain is None:
        return LITTLE_GOLD, f"More gold: {facts.gold} sentences are too few even to tell how much more would bring."
    steps = ", ".join(f"{point['f1']:.1f} with {point['sentences']:.0f}" for point in points)
    told = f"gold alone has F1 {steps} sentences, so twice as much may bring it about {gain:.1f} points"
    return gain, f"More gold: {told}."


def _better_labels(facts: Facts, proposal: Optional[Dict[str, Any]]) -> List[Advice]:
    if proposal:
        gain = float(proposal["after"]["f1"]) - float(proposal["before"]["f1"])
        return [(gain, f"A cleaner term list: the settings that 'judge' proposes bring it {gain:+.1f} points.")]
    if facts.gold and not facts.weak:
        text = "A term list, or labels of a language model, on more text: there are no weak labels yet."
        return [(FIRST_LABELS, text)]
    if facts.recall is not None and facts.recall < 50:
        return [(MORE_TERMS, f"More terms: the weak labels find only {facts.recall:.0f} % of what there is.")]
    return []
