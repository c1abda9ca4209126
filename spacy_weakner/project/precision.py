"""Thresholds of the combination for a wanted precision, fitted on gold that it was not trained on."""

from typing import Any, List, Sequence, Tuple

from spacy.tokens import Doc

from ..calibration.calibrate import DELTA, ScoredEntities, format_thresholds
from ..corpus.gold import find_gold
from ..corpus.weak import doc_entities
from ..evaluation.tables import Table, shorten
from ..evaluation.tradeoff import Tradeoff
from ..scores import Strict

# Gold, and predictions of a combiner that was not fitted on it.
Pairs = Sequence[Tuple[Doc, Doc]]


class Precision(Strict):
    """The result of the fit."""

    wanted: float
    header: List[str]
    rows: List[List[str]]
    unsure: List[str]  # labels whose precision is not guaranteed

    def lines(self) -> List[str]:
        """Return the result as sentences."""
        chance = f"with a probability of at least {100 * (1 - DELTA):g} % for each label"
        found = [f"Thresholds were fitted for a precision of {100 * self.wanted:g} %, {chance}."]
        if self.unsure:
            labels = ", ".join(map(shorten, self.unsure))
            found.append(f"It is not certain for these labels, which keep the best threshold there is: {labels}.")
        return found

    def table(self) -> Table:
        """Return the thresholds as a table."""
        title = f"Thresholds for a precision of {100 * self.wanted:g} %"
        return Table(title, ["Label", *self.header[1:]], [[shorten(row[0]), *row[1:]] for row in self.rows])


def fit_precision(combiner: Any, pairs: Pairs, wanted: float) -> Precision:
    """Fit thresholds, set them, and apply them to the predictions."""
    scores = ScoredEntities()
    for gold, doc in pairs:
        scores.add(gold, doc)
    report = scores.set_thresholds(combiner, wanted)
    for _, doc in pairs:
        kept = [
            ent
            for ent in doc.ents
            if ent._.weakner_score is None or ent._.weakner_score >= combiner.thresholds.get(ent.label_, 0.0)
        ]
        doc.set_ents(kept)
    header, rows = format_thresholds(report)
    return Precision(wanted=wanted, header=header, rows=[list(row) for row in rows], unsure=report.unsure)


def measure_tradeoff(pairs: Pairs) -> List[List[str]]:
    """Return the precision and recall of predictions by threshold; see `tradeoff_table`."""
    tradeoff = Tradeoff()
    for gold_doc, doc in pairs:
        gold = find_gold(gold_doc)
        if gold is not None:
            tradeoff.add(doc_entities(doc), [ent._.weakner_score for ent in doc.ents], gold)
    return tradeoff.rows()
