"""The rules that decide which candidates are trained, for how long and with which settings. The figures behind them are
in docs/evidence."""

from typing import List, Literal, Optional, Tuple

from ..configs.recipes import FROZEN, LINEAR, LINEAR_STATIC
from ..evaluation.terms.label_warnings import HARMFUL_PRECISION
from ..scores import Strict

TERM_LIST, GOLD_ALONE, WEAK_ALONE, LIST_AND_HEAD = "term list", "gold alone", "weak alone", "list and head"
COMBINED = "combined"
# Name of the head on weak labels.
WEAK = "weak"
# A linear CRF that learns from the text as the combination on a Transformer labels it.
STUDENT = "student"
# A combination of it and the lists.
STUDENT_AND_LIST = "student and list"
F1, SPEED = "f1", "speed"
LINEARS = (LINEAR, LINEAR_STATIC)
# Sizes whose Transformer is trained on the weak labels of the text before it is frozen, and the number of updates. More
# text does not need more: it is sampled.
TRAINED = {"transformer": 200, "gpu": 1000}
SIZES = (*LINEARS, FROZEN, *TRAINED)
# Maximum number of sentences of text for a linear CRF: they stay in memory, and more improve it little.
LINEAR_TEXTS = 5000
# Share of the unmatched tokens taken as "O", by the recall of the list: 0.2 at a recall of 50 %, 0.6 at 80 %
# (foundation.md).
_RATES = ((50.0, 0.2), (80.0, 0.6))
# The share without gold, when the recall is unknown (best.md).
_RATE_WITHOUT_GOLD = 0.5
# Evaluations of a Transformer in its training, which also show its progress.
EVALUATIONS = 5
# Number of folds of the gold.
FOLDS = 5
# With fewer sentences of gold, students do not learn from what their teacher is not sure of, combinations include a
# student (students.md), and combinations are compared in more folds.
_LITTLE = 200
# With fewer sentences of gold, cross-validation cannot tell whether the combination is better than a student, and it
# was not (students.md).
TOO_FEW = 75

# How candidates are compared; cross-validation uses the gold.
ChosenBy = Literal["dev", "cross-validation", "nothing"]


class Facts(Strict):
    """The facts about a project: the numbers of its sentences, and the precision, recall and F1 of its weak labels on
    gold, in [0, 100], or None if they are unknown."""

    size: str  # of the encoder
    gold: int
    dev: int
    text: int
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

    text_steps: int  # updates of a Transformer on the weak labels of the text; 0: it is not trained
    negative_rate: float  # share of the missing tokens that an update takes as "O"


class Rule(Strict):
    """A decision whether a candidate is trained, with its reason."""

    name: str
    trained: bool
    why: str


def choose_candidates(facts: Facts) -> List[Rule]:
    """Decide which candidates are trained, and why. Whether they can be combined is decided later."""
    why = {TERM_LIST: "the baseline for all other candidates"} if facts.lists else {}
    if facts.gold:
        on = "" if facts.size in LINEARS else " on a frozen Transformer"
        why[GOLD_ALONE] = f"a linear CRF{on}, trained on {facts.gold} gold sentences"
        if facts.lists:
            encoder = "" if facts.size in LINEARS else "the frozen Transformer, "
            why[head_with_lists(facts.size)] = f"a CRF with {encoder}the words and the matches of the list as features"
    rules = [Rule(name=name, trained=True, why=text) for name, text in why.items()]
    if facts.gold or facts.weak:
        learns, text = _learns_from_weak(facts)
        rules.append(Rule(name=WEAK_ALONE, trained=learns, why=text))
        if facts.lists and learns:
            text = "the list's matches and the head's probable entities; where they overlap, the longest span"
            rules.append(Rule(name=LIST_AND_HEAD, trained=True, why=text))
    return rules


def gold_size(size: str) -> str:
    """Return the size of the heads on gold, with and without features of lists."""
    return size if size in LINEARS else FROZEN


def weak_size(size: str) -> str:
    """Return the size of the head on weak labels: a linear CRF learns from thousands of sentences what a frozen
    Transformer would add."""
    return LINEAR if size == FROZEN else size


def head_with_lists(size: str) -> str:
    """Return the name of the candidate whose head has the matches of lists as features."""
    return f"{LINEAR if size in LINEARS else FROZEN} with list"


def combines_gold_alone(facts: Facts) -> bool:
    """Return True if the combination includes the head without features of lists: if it is on a Transformer, if there
    is no list, or if a list was collected from the gold."""
    return facts.size not in LINEARS or facts.collected or not facts.lists


def has_student(facts: Facts) -> bool:
    """Return True if a student can be trained: there is a Transformer to learn from (without gold, one that is trained
    on the weak labels), and text to learn on. (With a list that was collected from the gold, the text would teach it
    the entities of held-out folds.)"""
    if not facts.gold:
        return facts.size in TRAINED and facts.weak
    has_text = bool(facts.text) and (facts.weak or not facts.lists)
    return facts.size not in LINEARS and has_text and not facts.collected


def is_little(gold: int) -> bool:
    """Return True if there is little gold."""
    return 0 < gold < _LITTLE


def trains_student(facts: Facts, *, for_speed: bool) -> bool:
    """Return True if a student is trained: for speed or, with little gold, for the combination."""
    return has_student(facts) and (for_speed or is_little(facts.gold))


def selects_for_speed(facts: Facts, prefer: str, precision: Optional[float] = None) -> bool:
    """Return True if the fast candidates are selected from: if speed is preferred or, unless a precision is wanted, a
    student if there are too few sentences of gold."""
    too_few = 0 < facts.gold < TOO_FEW and facts.chosen_by == "cross-validation"
    return prefer == SPEED or (has_student(facts) and too_few and precision is None)


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


def choose_settings(facts: Facts) -> Tuple[Settings, List[str]]:
    """Decide with which settings candidates are trained, with notes."""
    learns = (facts.gold or facts.weak) and _learns_from_weak(facts)[0]
    steps = TRAINED.get(facts.size, 0) if learns else 0
    settings = Settings(text_steps=steps, negative_rate=round(_rate(facts), 3))
    notes = []
    if steps:
        notes.append(f"text: the Transformer is trained on the weak labels in {steps} updates, and then frozen")
    elif facts.size in TRAINED and facts.text:
        notes.append("text: the Transformer is not trained on it, but frozen as it is")
    elif learns and facts.text > LINEAR_TEXTS:
        notes.append(f"text: the linear CRF learns from the first {LINEAR_TEXTS:,} of {facts.text:,} sentences")
    if learns:
        notes.append(f"share of the missing tokens that are taken as 'O': {settings.negative_rate:.2f}")
    return settings, notes


def _rate(facts: Facts) -> float:
    """Interpolate linearly between the two points of `_RATES`; outside, use the nearer point."""
    if facts.recall is None:
        return _RATES[0][1] if facts.gold else _RATE_WITHOUT_GOLD
    (x0, y0), (x1, y1) = _RATES
    return y0 + min(1.0, max(0.0, (facts.recall - x0) / (x1 - x0))) * (y1 - y0)
