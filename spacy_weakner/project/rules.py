"""The rules: what is trained, how long and with which settings, from what was found. All of them are here; the figures
behind them are in docs/evidence."""

from typing import List, NamedTuple, Optional, Tuple

from ..errors import check_range
from ..evaluation.terms.concerns import HARMFUL_PRECISION

TERM_LIST, GOLD_ALONE, WEAK_ALONE, LIST_AND_HEAD = "term list", "gold alone", "weak alone", "list and head"
COMBINED = "combined"
F1, SPEED = "f1", "speed"
# The linear CRF; with vectors of word pieces beside its features.
LINEAR, LINEAR_STATIC = "linear", "linear-static"
LINEARS = (LINEAR, LINEAR_STATIC)
# Sentences of text that a linear CRF learns from: they stay in memory, and more teach it little.
LINEAR_TEXTS = 5000
# Weak labels of which fewer are right teach a model their errors; what `analyze` warns of is not trained on.
MIN_PRECISION = HARMFUL_PRECISION
# Tokens that a list does not match are "O" more often the more it finds: 0.2 of them where half is missing, 0.6 where
# four in five are found (foundation.md).
_RATES = ((50.0, 0.2), (80.0, 0.6))
# Without gold nobody knows; see `best/blind.py`.
_BLIND_RATE = 0.5
# Heads that start as the list are soon as good as they get (best.md).
GOLD_PASSES, TEXT_PASSES = 20.0, 3.0


class Pace(NamedTuple):
    """How fast an encoder trains.

    words_per_second (float): On two cores, or a GPU for "gpu".
    gold_steps, text_steps (int): Fewer updates than this are never enough.
    evaluations (int): How often a training is evaluated.
    folds (int): Into how many parts the gold is split for what has to be unseen.
    """

    words_per_second: float
    gold_steps: int
    text_steps: int
    evaluations: int
    folds: int


PACES = {
    "linear": Pace(20000, 1, 1, 1, 5),
    "linear-static": Pace(15000, 1, 1, 1, 5),
    "transformer": Pace(800, 200, 250, 5, 3),
    "gpu": Pace(8000, 500, 1000, 10, 4),
}


class Facts(NamedTuple):
    """What was found.

    size (str): Size of the encoder.
    gold, dev, text (int): Sentences.
    gold_words, text_words (int): Tokens.
    lists (int): Term lists that can be used at prediction time.
    precision, recall, f1 (Optional[float]): Of the weak labels on gold, in [0, 100]; None if that is
        not known.
    weak (bool): Whether there are weak labels of the text.
    chosen_by (str): What candidates are compared on: "dev", "cross-validation" or "nothing".
    sources (int): Sources of weak labels that were measured on gold.
    collected (bool): Whether a list seems to be collected from the gold: see `evaluation/terms/collected.py`.
    """

    size: str
    gold: int
    dev: int
    text: int
    gold_words: int
    text_words: int
    lists: int
    precision: Optional[float]
    recall: Optional[float]
    f1: Optional[float]
    weak: bool
    chosen_by: str
    sources: int = 0
    collected: bool = False


class Settings(NamedTuple):
    """What trainings are given.

    gold_steps (int): Updates on gold alone.
    text_steps (int): Updates on text.
    negative_rate (float): Share of the unknown tokens that an update takes as "O".
    evaluations (int): How often a training is evaluated.
    """

    gold_steps: int
    text_steps: int
    negative_rate: float
    evaluations: int

    def frequency(self, steps: int) -> int:
        """RETURNS (int): Updates between evaluations of a training."""
        return max(1, steps // self.evaluations)


class Rule(NamedTuple):
    """Whether a candidate is trained.

    name (str): The candidate.
    trained (bool): Whether it is.
    why (str): Why, or why not.
    """

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
    | list and head | there are weak labels and a list: see `best/blind.py` |
    | combined | there is gold: see `best/recipe.py` |

    facts (Facts): What was found.
    RETURNS (List[Rule]): In the order of the table; those that nobody would expect are left out.
    """
    rules = []
    if facts.lists:
        rules.append(Rule(TERM_LIST, True, "what everything else has to beat"))
    if facts.gold:
        rules.append(Rule(GOLD_ALONE, True, f"a linear CRF, {facts.gold} gold sentences"))
        reads = "reads what the list says beside the words" if facts.lists else "reads the words"
        for size in head_sizes(facts):
            rules.append(Rule(with_list(size, facts), True, f"a CRF that {reads}"))
        rules.append(Rule(WEAK_ALONE, *_teaches(facts)))
    elif facts.weak:
        rules.append(Rule(WEAK_ALONE, True, "there is no gold"))
    if facts.lists and rules[-1].name == WEAK_ALONE and rules[-1].trained:
        why = "what the list matches and what the head is sure of; where they overlap, the longest"
        rules.append(Rule(LIST_AND_HEAD, True, why))
    return rules


def linear_beside(size: str) -> str:
    """RETURNS (str): Size of the linear CRF that is trained beside an encoder."""
    return size if size in LINEARS else LINEAR


def head_sizes(facts: Facts) -> List[str]:
    """RETURNS (List[str]): Sizes of the heads that are trained on gold, and read what the lists say."""
    linear = [linear_beside(facts.size)] if facts.lists else []
    return linear + [size for size in [facts.size] if size not in LINEARS]


def with_list(size: str, facts: Facts) -> str:
    """RETURNS (str): What a head that reads what the lists say is called among the candidates."""
    name = LINEAR if size in LINEARS else size
    return f"{name} with list" if facts.lists else name


def _teaches(facts: Facts) -> Tuple[bool, str]:
    if not facts.text:
        return False, "there is no text that could be labelled (--text)"
    if not facts.weak:
        return False, "there are no weak labels"
    if facts.collected:
        return False, "it would learn the gold itself from a list that was collected from it"
    if facts.precision is not None and facts.precision < MIN_PRECISION:
        return False, (
            f"only {facts.precision:.1f} % of the weak labels are right on gold, and below {MIN_PRECISION:.0f} % they "
            "do harm"
        )
    if facts.precision is None:
        return True, f"{facts.text} weakly labelled sentences"
    return True, f"{facts.text} weakly labelled sentences, {facts.precision:.1f} % of whose labels are right on gold"


def choose_settings(
    facts: Facts,
    words_per_update: float,
    minutes: float,
    *,
    max_steps: Optional[int] = None,
    negative_rate: Optional[float] = None,
) -> Tuple[Settings, List[str]]:
    """Decide how long and with which settings is trained.

    facts (Facts): What was found.
    words_per_update (float): Tokens of a batch.
    minutes (float): No training takes longer than about this.
    max_steps (Optional[int]): Updates of every training; None: from the size of the corpora.
    negative_rate (Optional[float]): See `Settings`; None: from what was measured of the labels.
    RETURNS (Tuple[Settings, List[str]]): The settings, and why they are what they are.
    RAISES (WeaknerError): If one that is given is out of range.
    """
    if max_steps is not None:
        check_range("max_steps", max_steps, 1, None)
    if negative_rate is not None:
        check_range("negative_rate", negative_rate, 0.0, 1.0)
    pace = PACES[facts.size]
    ceiling = max(1, int(minutes * 60 * pace.words_per_second / words_per_update))
    rate = (
        _between(_RATES, facts.recall, 0.2 if facts.gold else _BLIND_RATE) if negative_rate is None else negative_rate
    )
    gold_steps = _steps(facts.gold_words, GOLD_PASSES, words_per_update, pace.gold_steps, ceiling)
    text_steps = _steps(facts.text_words, TEXT_PASSES, words_per_update, pace.text_steps, ceiling)
    if max_steps is not None:
        gold_steps = text_steps = max_steps
    notes = []
    trains = facts.size not in LINEARS  # until it converges
    if facts.gold and trains:
        passes = gold_steps * words_per_update / max(1, facts.gold_words)
        notes.append(f"gold: {gold_steps} updates, {passes:.0f} passes over {facts.gold_words:,} words")
    if facts.text and trains:
        passes = text_steps * words_per_update / max(1, facts.text_words)
        limit = f" (limited to about {minutes:g} minutes)" if text_steps == ceiling and max_steps is None else ""
        less = ": less than one, so part of the text is never seen" if passes < 1 else ""
        notes.append(f"text: {text_steps} updates, {passes:.1f} passes over {facts.text_words:,} words{limit}{less}")
    if facts.weak and not trains and facts.text > LINEAR_TEXTS:
        notes.append(f"text: the linear CRF learns from the first {LINEAR_TEXTS:,} of {facts.text:,} sentences")
    if facts.weak:
        notes.append(f"unknown tokens that are taken as 'O': {rate:.2f}")
    return Settings(gold_steps, text_steps, round(rate, 3), pace.evaluations), notes


def _steps(words: float, passes: float, words_per_update: float, floor: int, ceiling: int) -> int:
    return min(max(floor, round(passes * words / words_per_update)), ceiling)


def _between(line: Tuple[Tuple[float, float], Tuple[float, float]], x: Optional[float], default: float) -> float:
    """The value at x on a line between two points, and that of the nearer point outside."""
    if x is None:
        return default
    (x0, y0), (x1, y1) = line
    part = min(1.0, max(0.0, (x - x0) / (x1 - x0)))
    return y0 + part * (y1 - y0)
