"""The rules that decide which candidates are trained, for how long and with which settings. The figures behind them are
in docs/evidence."""

from typing import Dict, List, Literal, NamedTuple, Optional, Tuple

from ..evaluation.terms.label_warnings import HARMFUL_PRECISION
from ..scores import Strict

TERM_LIST, GOLD_ALONE, WEAK_ALONE, LIST_AND_HEAD = "term list", "gold alone", "weak alone", "list and head"
COMBINED = "combined"
F1, SPEED = "f1", "speed"
# A linear CRF, and one with subword vectors as additional features.
LINEAR, LINEAR_STATIC = "linear", "linear-static"
LINEARS = (LINEAR, LINEAR_STATIC)
# Maximum number of sentences of text for a linear CRF: they stay in memory, and more improve it little.
LINEAR_TEXTS = 5000
# Share of the unmatched tokens taken as "O", by the recall of the list: 0.2 at a recall of 50 %, 0.6 at 80 %
# (foundation.md).
_RATES = ((50.0, 0.2), (80.0, 0.6))
# The share without gold, when the recall is unknown (best.md).
_RATE_WITHOUT_GOLD = 0.5
# Passes over gold and text: heads with features of the list soon stop improving (best.md).
GOLD_PASSES, TEXT_PASSES = 20.0, 2.0


class Pace(NamedTuple):
    """The pace at which an encoder trains. Its speed was measured on two cores; that of "gpu" on a GPU."""

    words_per_second: int
    gold_steps: int  # minimum number of updates on gold
    text_steps: int  # minimum number of updates on text
    evaluations: int  # per training
    folds: int  # of the gold


PACES = {
    LINEAR: Pace(20000, 1, 1, 1, 5),
    LINEAR_STATIC: Pace(15000, 1, 1, 1, 5),
    "transformer": Pace(1000, 150, 200, 5, 3),
    "gpu": Pace(8000, 500, 1000, 10, 4),
}


# How candidates are compared; cross-validation uses the gold.
ChosenBy = Literal["dev", "cross-validation", "nothing"]


class Facts(Strict):
    """The facts about a project: the numbers of its sentences and tokens, and the precision, recall and F1 of its weak
    labels on gold, in [0, 100], or None if they are unknown."""

    size: str  # of the encoder
    gold: int
    dev: int
    text: int
    gold_words: int
    text_words: int
    lists: int  # term lists, which can be used at prediction time
    precision: Optional[float] = None
    recall: Optional[float] = None
    f1: Optional[float] = None
    weak: bool  # True if the text has weak labels
    chosen_by: ChosenBy
    sources: int = 0  # weak sources that were scored on gold
    collected: bool = False  # True if a list was probably collected from the gold: see `evaluation/terms/collected.py`


class Settings(Strict):
    """Settings of all trainings of a project."""

    gold_steps: int  # updates on gold
    text_steps: int
    negative_rate: float  # share of the missing tokens that an update takes as "O"
    evaluations: int  # per training


class Rule(Strict):
    """A decision whether a candidate is trained, with its reason."""

    name: str
    trained: bool
    why: str


def choose_candidates(facts: Facts) -> List[Rule]:
    """Decide which candidates are trained, and why. Whether they can be combined is decided later."""
    why = {TERM_LIST: "the baseline for all other candidates"} if facts.lists else {}
    if facts.gold:
        why[GOLD_ALONE] = f"a linear CRF, trained on {facts.gold} gold sentences"
        features = "the words and the matches of the list" if facts.lists else "the words"
        why.update(dict.fromkeys(heads_on_gold(facts).values(), f"a CRF with {features} as features"))
    rules = [Rule(name=name, trained=True, why=text) for name, text in why.items()]
    if facts.gold or facts.weak:
        learns, text = _learns_from_weak(facts)
        rules.append(Rule(name=WEAK_ALONE, trained=learns, why=text))
        if facts.lists and learns:
            text = "the list's matches and the head's probable entities; where they overlap, the longest span"
            rules.append(Rule(name=LIST_AND_HEAD, trained=True, why=text))
    return rules


def linear_beside(size: str) -> str:
    """Return the size of the linear CRF that is trained besides an encoder."""
    return size if size in LINEARS else LINEAR


def heads_on_gold(facts: Facts) -> Dict[str, str]:
    """Return the heads on gold, which have the matches of any lists as features: names of the candidates by size."""
    sizes = [linear_beside(facts.size)] if facts.lists else []
    sizes += [] if facts.size in LINEARS else [facts.size]
    names = {size: LINEAR if size in LINEARS else size for size in sizes}
    return {size: f"{name} with list" if facts.lists else name for size, name in names.items()}


def _learns_from_weak(facts: Facts) -> Tuple[bool, str]:
    if not facts.gold:
        return True, "there is no gold"
    if not facts.text:
        return False, "there is no text to label (--text)"
    if not facts.weak:
        return False, "there are no weak labels"
    if facts.collected:
        return False, "a list was collected from the gold, so the candidate would learn the gold itself"
    if facts.precision is None:
        return True, f"{facts.text} weakly labeled sentences"
    if facts.precision < HARMFUL_PRECISION:
        return False, (
            f"only {facts.precision:.1f} % of the weak labels are right on gold; labels with a precision below "
            f"{HARMFUL_PRECISION:.0f} % do harm"
        )
    return True, f"{facts.text} weakly labeled sentences; on gold, {facts.precision:.1f} % of the weak labels are right"


def choose_settings(facts: Facts, words_per_update: float, minutes: float) -> Tuple[Settings, List[str]]:
    """Decide for how long and with which settings candidates are trained, with notes. `words_per_update` is the number
    of tokens in a batch."""
    pace = PACES[facts.size]
    ceiling = max(1, int(minutes * 60 * pace.words_per_second / words_per_update))

    def steps(words: int, passes: float, floor: int) -> int:
        return min(max(floor, round(passes * words / words_per_update)), ceiling)

    settings = Settings(
        gold_steps=steps(facts.gold_words, GOLD_PASSES, pace.gold_steps),
        text_steps=steps(facts.text_words, TEXT_PASSES, pace.text_steps),
        negative_rate=round(_rate(facts), 3),
        evaluations=pace.evaluations,
    )
    notes = []
    if facts.size not in LINEARS:  # linear heads train until they converge
        if facts.gold:
            passes = settings.gold_steps * words_per_update / max(1, facts.gold_words)
            notes.append(f"gold: {settings.gold_steps} updates, {passes:.0f} passes over {facts.gold_words:,} words")
        if facts.text:
            passes = settings.text_steps * words_per_update / max(1, facts.text_words)
            limited = settings.text_steps == ceiling
            notes.append(
                f"text: {settings.text_steps} updates, {passes:.1f} passes over {facts.text_words:,} words"
                + (f" (limited to about {minutes:g} minutes)" if limited else "")
                + (": less than one pass, so part of the text is never used" if passes < 1 else "")
            )
    elif facts.weak and facts.text > LINEAR_TEXTS:
        notes.append(f"text: the linear CRF learns from the first {LINEAR_TEXTS:,} of {facts.text:,} sentences")
    if facts.weak:
        notes.append(f"share of the missing tokens that are taken as 'O': {settings.negative_rate:.2f}")
    return settings, notes


def _rate(facts: Facts) -> float:
    """Interpolate linearly between the two points of `_RATES`; outside, use the nearer point."""
    if facts.recall is None:
        return _RATES[0][1] if facts.gold else _RATE_WITHOUT_GOLD
    (x0, y0), (x1, y1) = _RATES
    return y0 + min(1.0, max(0.0, (facts.recall - x0) / (x1 - x0))) * (y1 - y0)
