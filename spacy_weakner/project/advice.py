"""What would help most next, from what was measured here and, for a Transformer, on public data (best.md)."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .curve import Point, next_gain
from .rules import LINEAR, Facts

TRANSFORMER_GAIN = 1.5
TRANSFORMER_SHARE = 0.25
# What is not measured here, in points of F1 by which it is sorted in.
FIRST_GOLD, LITTLE_GOLD, FIRST_LABELS, MORE_TERMS = 20.0, 5.0, 4.0, 3.0


class Advice(NamedTuple):
    """What to do.

    gain (float): By how much it may lift the best pipeline, in points of F1.
    text (str): What it is, in words.
    """

    gain: float
    text: str


def advise(
    facts: Facts,
    points: List[Point],
    proposal: Optional[Dict[str, Any]],
    lists: Mapping[str, float],
    trained: Mapping[str, float],
    suggest: str = "",
) -> List[str]:
    """Say what to do next.

    facts (Facts): What was found.
    points (List[Point]): The learning curve.
    proposal (Optional[Dict[str, Any]]): Settings that `analyze` proposes for the term list, with "before" and
        "after".
    lists, trained (Mapping[str, float]): F1 of the term lists and of what was trained, where the choice was made.
    suggest (str): The command that tells which sentences to annotate; empty if there is no text.
    RETURNS (List[str]): Sentences, the most helpful first.
    """
    # What makes models better lifts the winner only as far as they pass the list. (Better labels make both better.)
    ahead = max(trained.values(), default=0.0)
    behind = max(0.0, max(lists.values(), default=0.0) - ahead)
    found = [_with_command(_more_gold(facts, points, behind), suggest), *_better_labels(facts, proposal, ahead)]
    if facts.size == LINEAR:
        room = 100.0 - ahead
        text = (
            "A Transformer's vectors of word pieces in the linear CRF (--transformer NAME, size linear-static): 1.5 "
            "points of F1 more for the combination on average of six data sets, at twice the time. Or all of it as "
            "encoder (--size transformer), which takes much longer."
        )
        found.append(Advice(min(TRANSFORMER_GAIN, TRANSFORMER_SHARE * room) - behind, text))
    return [text for _, text in sorted(found, key=lambda advice: -advice.gain)]


def _with_command(advice: Advice, suggest: str) -> Advice:
    return advice._replace(text=f"{advice.text} Which sentences: {suggest}") if suggest else advice


def _more_gold(facts: Facts, points: List[Point], behind: float) -> Advice:
    if not facts.gold:
        text = "Gold: with about a hundred annotated sentences one can choose, and knows how good it is."
        return Advice(FIRST_GOLD, text)
    gain = next_gain(points)
    if gain is None:
        text = f"More gold: {facts.gold} sentences are too few even to tell how much more would bring."
        return Advice(LITTLE_GOLD - behind, text)
    steps = ", ".join(f"{point['f1']:.1f} with {point['sentences']:.0f}" for point in points)
    text = f"More gold: gold alone has F1 {steps} sentences, so twice as much may bring it about {gain:.1f} points"
    if gain < behind:
        text += ", which is not enough to pass the term list"
    return Advice(gain - behind, f"{text}.")


def _better_labels(facts: Facts, proposal: Optional[Dict[str, Any]], ahead: float) -> List[Advice]:
    if proposal:
        gain = float(proposal["after"]["f1"]) - float(proposal["before"]["f1"])
        text = (
            f"A cleaner term list: the settings that 'analyze' proposes for sources.cfg bring the list alone "
            f"{gain:+.1f} points; a combination knows most of it already."
        )
        # Its stop terms were chosen on this gold, and it lifts what is packaged only as far as the list is ahead.
        return [Advice(float(proposal["after"]["f1"]) - ahead, text)]
    if facts.gold and facts.lists and not facts.text:
        return [Advice(FIRST_LABELS, "Text (--text): what the term list finds there is what models learn most from.")]
    if facts.gold and not facts.weak:
        text = "A term list, or labels of a language model, on more text: there are no weak labels yet."
        return [Advice(FIRST_LABELS, text)]
    if facts.recall is not None and facts.recall < 50:
        text = f"More terms: the weak labels find only {facts.recall:.0f} % of what there is."
        return [Advice(MORE_TERMS, text)]
    return []
