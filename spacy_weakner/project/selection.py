"""The result of `fit`: which candidate is the best, the scores of all, and what to do next."""

import json
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from pydantic import model_validator

from ..evaluation.compare import CandidateScores
from ..files import existing, parse_json, reading_made, write_text
from ..scores import Strict
from .rules import COMBINED, ChosenBy, Facts, Rule, Settings

# Points of F1 by which a candidate must be better than the combination, beside being so by more than chance (best.md).
CLEARLY = 3.0
Point = Dict[str, float]


class TrainedCandidate(Strict):
    """A candidate with a pipeline; without scores if nothing was compared."""

    name: str
    path: str
    why: str
    scores: Optional[CandidateScores] = None  # on dev or in cross-validation


class Selection(Strict):
    """The result of a project: its candidates, in the order of the rules, and the best of them."""

    best: str
    chosen_by: ChosenBy
    candidates: List[TrainedCandidate]
    left_out: List[Rule] = []
    facts: Facts
    settings: Settings
    warnings: List[str] = []  # why the scores of the best may be too high
    notes: List[str] = []  # how the corpora were split, and how long candidates were trained
    curve: List[Point] = []  # learning curve: "sentences" of gold, and "f1" of gold alone
    recommendations: List[str] = []  # what would help most next, the most helpful first
    code: str = ""  # see `code_version`
    contents: str = ""  # hash of the pipelines, on which all depends that is made of them
    reason: str = ""  # why it was selected, where that is not by the scores

    @model_validator(mode="after")
    def _is_complete(self) -> "Selection":
        if self.best not in [candidate.name for candidate in self.candidates]:
            raise ValueError("the best is none of the candidates")
        if any(point.keys() != {"sentences", "f1"} for point in self.curve):
            raise ValueError("points need 'sentences' and 'f1'")
        return self

    @property
    def selected(self) -> TrainedCandidate:
        """The best candidate."""
        return next(candidate for candidate in self.candidates if candidate.name == self.best)

    def ranked(self) -> Dict[str, CandidateScores]:
        """Scores of the candidates that were compared: the best, then the others by F1."""
        scores = {candidate.name: candidate.scores for candidate in self.candidates if candidate.scores is not None}
        return dict(sorted(scores.items(), key=lambda item: (item[0] != self.best, -item[1].f1)))

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        write_text(path, json.dumps(self.model_dump(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Selection":
        """Read what `save` has written."""
        path = existing(Path(path), "'spacy weakner fit' makes it")
        with reading_made(path, "fit"):
            return cls.model_validate(parse_json(path.read_bytes()))

    def headline(self) -> str:
        """Which candidate is the best, in a sentence or two."""
        reason = f" {self.reason}" if self.reason else ""
        if self.selected.scores is None:
            return (
                f"'{self.best}' is the best guess. Nothing could be compared: there is no gold.{reason} A hundred "
                "annotated sentences would measure how good it is, and make it better."
            )
        corpus = f"on {self.facts.dev} dev sentences" if self.chosen_by == "dev" else "in cross-validation of the gold"
        return f"'{self.best}' is the best: {self.selected.scores.text()} {corpus}.{reason}"

    def remarks(self) -> List[str]:
        """What else there is to know, beside the scores."""
        found = []
        if self.selected.scores is None:
            found += [f"'{other.name}': {other.path}." for other in self.candidates if other.name != self.best]
        elif self.best == COMBINED and len(self.candidates) > 1:
            found.append(f"'{COMBINED}' decides between the entities of lists and heads.")
        if self.facts.f1 is not None and self.facts.sources > 1:
            found.append(
                f"The weak labels of all {self.facts.sources} sources together have F1 {self.facts.f1:.1f} on the "
                "gold; a new text does not have all of these sources."
            )
        found += [f"'{rule.name}' was not trained: {rule.why}." for rule in self.left_out]
        return found + [f"Warning: {text}." for text in self.warnings]

    def lines(self) -> List[str]:
        """All of it in sentences."""
        return [self.headline(), *self._others(), *self.remarks()]

    def answer(self) -> List[Tuple[str, str]]:
        """The best candidate, how certain that is, and what to do next, each with a heading."""
        certainty = "Nothing else was compared with it."
        if self.selected.scores is None:
            certainty = "Nothing was compared: there is no gold."
        elif others := self._others():
            certainty = f"The next best: {others[0]}"
        certainty = " ".join([certainty, *(f"Warning: {text}." for text in self.warnings)])
        found = [("Best", self.headline()), ("How certain", certainty)]
        return found + [("Next", text) for text in self.recommendations[:1]]

    def _others(self) -> List[str]:
        found = []
        for name, scores in [*self.ranked().items()][1:]:
            text = f"'{name}' has {scores.text()}"
            if (difference := scores.difference) is not None:
                chance = "" if difference.is_certain else ", which may be chance"
                text += ", as good" if round(difference.f1, 1) == 0 else f": {difference.text()}{chance}"
            found.append(f"{text}.")
        return found


def read_scores(path: Optional[Path]) -> Dict[str, CandidateScores]:
    """Scores on test by candidate, as `evaluate` has written them; empty if there are none."""
    if path is None or not Path(path).exists():
        return {}
    with reading_made(path, "evaluate"):
        scores = [CandidateScores.model_validate(row) for row in parse_json(Path(path).read_bytes())]
        return {row.name: row for row in scores}


def choose(rows: Sequence[CandidateScores], combined: Optional[str] = None) -> str:
    """Select a candidate: the combination of the others, unless one of them is better by more than chance and by more
    than `CLEARLY`. A few hundred sentences are too few to choose between candidates by F1 alone.
    Without combination the best F1 wins, of equal ones the first."""
    if combined is None or combined not in [row.name for row in rows]:
        return max(rows, key=lambda row: row.f1).name
    better = [row for row in rows if row.difference and row.difference.low > 0 and row.difference.f1 > CLEARLY]
    return max(better, key=lambda row: row.f1).name if better else combined


def cost_of_speed(rows: Sequence[CandidateScores], best: str) -> str:
    """What it costs to select a single head where the combination was measured, too."""
    found = [row.difference for row in rows if row.name == COMBINED and row.difference]
    if best == COMBINED or not found:
        return ""
    return f"It was selected for speed (--prefer speed); the combination has {found[0].text()}."
