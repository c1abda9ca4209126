"""Which candidates are trained, for how long and with which settings. All rules are here; the figures behind them are
in docs/evidence."""

from typing import List, Optional, Tuple

from ..errors import check_range
from ..evaluation.terms.label_warnings import HARMFUL_PRECISION
from ..scores import Strict

TERM_LIST, GOLD_ALONE, WEAK_ALONE, LIST_AND_HEAD = "term list", "gold alone", "weak alone", "list and head"
COMBINED = "combined"
F1, SPEED = "f1", "speed"
# A linear CRF; the same with subword vectors beside its features.
LINEAR, LINEAR_STATIC = "linear", "linear-static"
LINEARS = (LINEAR, LINEAR_STATIC)
# Sentences of text that a linear CRF learns from: they stay in memory, and more teach it little.
LINEAR_TEXTS = 5000
# Weak labels with a lower precision teach a model their errors.
MIN_PRECISION = HARMFUL_PRECISION
# Share of the unmatched tokens taken as "O", by the recall of the list: 0.2 where half is missing, 0.6 where four in
# five are found (foundation.md).
_RATES = ((50.0, 0.2), (80.0, 0.6))
# The same without gold, where the recall is unknown (best.md).
_RATE_WITHOUT_GOLD = 0.5
# Heads that start as the list soon stop improving (best.md).
GOLD_PASSES, TEXT_PASSES = 20.0, 3.0


class Pace(Strict):
    """How fast an encoder trains.

    words_per_second (float): On two cores, or on a GPU for "gpu".
    gold_steps, text_steps (int): The fewest updates.
    evaluations (int): Evaluations per training.
    folds (int): Folds of the gold.
    """

    words_per_second: float
    gold_steps: int
    text_steps: int
    evaluations: int
    folds: int


PACES = {
    size: Pace(words_per_second=speed, gold_steps=gold, text_steps=text, evaluations=evaluations, folds=folds)
    for size, speed, gold, text, evaluations, folds in (
        ("linear", 20000, 1, 1, 1, 5),
        ("linear-static", 15000, 1, 1, 1, 5),
        ("transformer", 800, 200, 250, 5, 3),
        ("gpu", 8000, 500, 1000, 10, 4),
    )
}


class Facts(Strict):
    """What a project has.

    size (str): Size of the encoder.
    gold, dev, text (int): Sentences.
    gold_words, text_words (int): Tokens.
    lists (int): Term lists that can be used at prediction time.
    precision, recall, f1 (Optional[float]): Of the weak labels on gold, in [0, 100]; None: unknown.
    weak (bool): True if the text has weak labels.
    chosen_by (str): What candidates are compared on: "dev", "cross-validation" or "nothing".
    sources (int): Weak sources that were scored on gold.
    collected (bool): True if a list seems to be collected from the gold: see `evaluation/terms/collected.py`.
    """

    size: str
    gold: int
    dev: int
    text: int
    gold_words: int
    text_words: int
    lists: int
    precision: Optional[float] = None
    recall: Optional[float] = None
    f1: Optional[float] = None
    weak: bool
    chosen_by: str
    sources: int = 0
    collected: bool = False


class Settings(Strict):
    """Settings of all trainings of a project.

    gold_steps, text_steps (int): Updates on gold, and on text.
    negative_rate (float): Share of the unknown tokens that an update takes as "O".
    evaluations (int): Evaluations per training.
    """

    gold_steps: int
    text_steps: int
    negative_rate: float
    evaluations: int

    def frequency(self, steps: int) -> int:
        """Updates between two evaluations of a training."""
        return max(1, steps // self.evaluations)


class Rule(Strict):
    """Whether a candidate is trained, and why or why not."""

    name: str
    trained: bool
    why: str


def choose_candidates(facts: Facts) -> List[Rule]:
    """Decide what is trained.

    | candidate | is trained if |
    |---|---|
    | term list | there is one: it needs no training |
    | gold alone | there is gold |
    | linear with list | there is gold and a list |
    | Transformer with list | there is gold, and the size is a Transformer |
    | weak alone | there are weak labels, and at least 30 % of them are right on gold |
    | list and head | there are weak labels and a list: see `assembling.list_and_head` |
    | combined | there is gold: see `combine.py` |
    """
    rules = []

    def add(name: str, trained: bool, why: str) -> None:
        rules.append(Rule(name=name, trained=trained, why=why))

    if facts.lists:
        add(TERM_LIST, True, "what everything else has to beat")
    if facts.gold:
        add(GOLD_ALONE, True, f"a linear CRF, {facts.gold} gold sentences")
        features = "the words and the matches of the list" if facts.lists else "the words"
        for size in head_sizes(facts):
            add(with_list(size, facts), True, f"a CRF with features of {features}")
        add(WEAK_ALONE, *_teaches(facts))
    elif facts.weak:
        add(WEAK_ALONE, True, "there is no gold")
    if facts.lists and rules[-1].name == WEAK_ALONE and rules[-1].trained:
        add(
            LIST_AND_HEAD,
            True,
            "matches of the list and probable entities of the head; of overlapping ones the longest",
        )
    return rules


def linear_beside(size: str) -> str:
    """Size of the linear CRF that is trained beside an encoder."""
    return size if size in LINEARS else LINEAR


def head_sizes(facts: Facts) -> List[str]:
    """Sizes of the heads that are trained on gold, with the matches of the lists as features."""
    linear = [linear_beside(facts.size)] if facts.lists else []
    return linear + [size for size in [facts.size] if size not in LINEARS]


def with_list(size: str, facts: Facts) -> str:
    """Name of such a head among the candidates."""
    name = LINEAR if size in LINEARS else size
    return f"{name} with list" if facts.lists else name


def _teaches(facts: Facts) -> Tuple[bool, str]:
    if not facts.text:
        return False, "there is no text that could be labeled (--text)"
    if not facts.weak:
        return False, "there are no weak labels"
    if facts.collected:
        return False, "it would learn the gold itself from a list that was collected from it"
    if facts.precision is None:
        return True, f"{facts.text} weakly labeled sentences"
    if facts.precision < MIN_PRECISION:
        return False, (
            f"only {facts.precision:.1f} % of the weak labels are right on gold, and below {MIN_PRECISION:.0f} % they "
            "do harm"
        )
    return True, f"{facts.text} weakly labeled sentences, {facts.precision:.1f} % of whose labels are right on gold"


def choose_settings(
    facts: Facts,
    words_per_update: float,
    minutes: float,
    *,
    max_steps: Optional[int] = None,
    negative_rate: Optional[float] = None,
) -> Tuple[Settings, List[str]]:
    """Decide for how long and with which settings candidates are trained.

    facts (Facts): What the project has.
    words_per_update (float): Tokens of a batch.
    minutes (float): Most minutes of a training, roughly.
    max_steps (Optional[int]): Updates of every training; None: from the size of the corpora.
    negative_rate (Optional[float]): See `Settings`; None: from the recall of the labels.
    RETURNS (Tuple[Settings, List[str]]): The settings, and notes on them.
    RAISES (WeaknerError): If a given one is out of range.
    """
    if max_steps is not None:
        check_range("max_steps", max_steps, 1, None)
    if negative_rate is not None:
        check_range("negative_rate", negative_rate, 0.0, 1.0)
    pace = PACES[facts.size]
    ceiling = max(1, int(minutes * 60 * pace.words_per_second / words_per_update))

    def steps(words: int, passes: float, floor: int) -> int:
        return max_steps or min(max(floor, round(passes * words / words_per_update)), ceiling)

    settings = Settings(
        gold_steps=steps(facts.gold_words, GOLD_PASSES, pace.gold_steps),
        text_steps=steps(facts.text_words, TEXT_PASSES, pace.text_steps),
        negative_rate=round(_rate(facts) if negative_rate is None else negative_rate, 3),
        evaluations=pace.evaluations,
    )
    notes = []
    if facts.size not in LINEARS:  # which train until they converge
        if facts.gold:
            passes = settings.gold_steps * words_per_update / max(1, facts.gold_words)
            notes.append(f"gold: {settings.gold_steps} updates, {passes:.0f} passes over {facts.gold_words:,} words")
        if facts.text:
            passes = settings.text_steps * words_per_update / max(1, facts.text_words)
            limited = settings.text_steps == ceiling and max_steps is None
            notes.append(
                f"text: {settings.text_steps} updates, {passes:.1f} passes over {facts.text_words:,} words"
                + (f" (limited to about {minutes:g} minutes)" if limited else "")
                + (": less than one, so part of the text is never used" if passes < 1 else "")
            )
    elif facts.weak and facts.text > LINEAR_TEXTS:
        notes.append(f"text: the linear CRF learns from the first {LINEAR_TEXTS:,} of {facts.text:,} sentences")
    if facts.weak:
        notes.append(f"unknown tokens that are taken as 'O': {settings.negative_rate:.2f}")
    return settings, notes


def _rate(facts: Facts) -> float:
    """On the line between the two points of `_RATES`; outside, that of the nearer point."""
    if facts.recall is None:
        return _RATES[0][1] if facts.gold else _RATE_WITHOUT_GOLD
    (x0, y0), (x1, y1) = _RATES
    return y0 + min(1.0, max(0.0, (facts.recall - x0) / (x1 - x0))) * (y1 - y0)
