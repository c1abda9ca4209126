"""Thresholds of the combination for a wanted precision, fitted on gold that it was not trained on."""

from itertools import chain
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from spacy.tokens import Doc

from ..calibration.calibrate import DELTA, ScoredEntities, ThresholdReport, format_thresholds
from ..corpus.gold import find_gold
from ..corpus.weak import doc_entities
from ..errors import Errors, WeaknerError
from ..evaluation.tables import Table, shorten_line
from ..evaluation.tradeoff import Tradeoff
from ..scores import Strict, count_matches

# Gold, and predictions of a combiner that was not fitted on it.
Pairs = Sequence[Tuple[Doc, Doc]]
# Predicts a part of the gold as the package does, with thresholds.
Decide = Callable[[int, Mapping[str, float]], Sequence[Doc]]


class Precision(Strict):
    """The result of the fit."""

    wanted: float
    header: List[str]
    rows: List[List[str]]
    unsure: List[str]  # labels whose precision is not guaranteed
    held_out: List[float]  # precision and recall in [0, 100] with thresholds that were fitted on other sentences

    def lines(self) -> List[str]:
        """Return the result as sentences."""
        chance = f"with a probability of at least {100 * (1 - DELTA):g} % for each label"
        precision, recall = self.held_out
        found = [
            f"Thresholds were fitted for a precision of {100 * self.wanted:g} %, {chance}.",
            f"On sentences that they were not fitted on: precision {precision:.1f} %, recall {recall:.1f} %.",
        ]
        if self.unsure:
            labels = ", ".join(map(shorten_line, self.unsure))
            found.append(f"It is not certain for these labels, which keep the best threshold there is: {labels}.")
        return found

    def table(self) -> Table:
        """Return the thresholds as a table."""
        title = f"Thresholds for a precision of {100 * self.wanted:g} %, on the sentences that they were fitted on"
        return Table(title, ["Label", *self.header[1:]], [[shorten_line(row[0]), *row[1:]] for row in self.rows])


def fit_precision(combiner: Any, parts: Sequence[Pairs], wanted: float, decide: Decide) -> Tuple[Precision, Pairs]:
    """Fit thresholds on all parts of the gold, and set them. Return also the gold with the predictions for each part
    under thresholds that were fitted on the others."""
    decided: List[Tuple[Doc, Doc]] = []
    for n, part in enumerate(parts):
        _set_thresholds(combiner, [other for i, other in enumerate(parts) if i != n], wanted)
        decided += zip((gold for gold, _ in part), decide(n, combiner.thresholds), strict=True)
    report = _set_thresholds(combiner, parts, wanted)
    header, rows = format_thresholds(report)
    counts, _ = count_matches((doc_entities(gold), doc_entities(doc)) for gold, doc in decided)
    held_out = [counts.precision, counts.recall]
    return Precision(
        wanted=wanted, header=header, rows=[*map(list, rows)], unsure=report.unsure, held_out=held_out
    ), decided


def _set_thresholds(combiner: Any, parts: Sequence[Pairs], wanted: float) -> ThresholdReport:
    scores = ScoredEntities()
    for gold, doc in chain.from_iterable(parts):
        scores.add(gold, doc)
    return scores.set_thresholds(combiner, wanted)


def require_folds(precision: Optional[float], has_folds: bool) -> None:
    """Refuse a wanted precision if there is too little gold for folds."""
    if precision is not None and not has_folds:
        expected = "none, since there is too little gold to train a combination and to fit its thresholds"
        raise WeaknerError(Errors.WK005.format(setting="precision", value=precision, expected=expected))


def measure_tradeoff(pairs: Pairs) -> List[List[str]]:
    """Return the precision and recall of predictions by threshold; see `tradeoff_table`."""
    tradeoff = Tradeoff()
    for gold_doc, doc in pairs:
        gold = find_gold(gold_doc)
        if gold is not None:
            tradeoff.add(doc_entities(doc), [ent._.weakner_score for ent in doc.ents], gold)
    return tradeoff.rows()
