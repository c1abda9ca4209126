"""The result of `fit`: which candidate is the best, the scores of all, and what to do next."""

import json
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from pydantic import field_validator, model_validator

from ..evaluation.bootstrap import Difference
from ..evaluation.compare import CandidateScores, Comparison
from ..files import existing, parse_json, write_text
from ..scores import Strict
from .layout import reading
from .rules import COMBINED, Facts, Rule, Settings

# Points of F1 by which a candidate must be better than the combination, beside being so by more than chance (best.md).
CLEARLY = 3.0
Point = Dict[str, float]


class TrainedCandidate(Strict):
    """A candidate with a pipeline.

    name (str): Its name.
    path (str): Its pipeline.
    why (str): Why it was made.
    scores (Optional[CandidateScores]): On dev or in cross-validation; None: nothing was compared.
    """

    name: str
    path: str
    why: str
    scores: Optional[CandidateScores] = None


class Selection(Strict):
    """The result of a project.

    best (str): Name of the selected candidate.
    chosen_by (str): "dev", "cross-validation" or "nothing".
    candidates (List[TrainedCandidate]): All that have a pipeline, in the order of the rules.
    left_out (List[Rule]): Those that were not trained, and why.
    facts (Facts): What the project has.
    settings (Settings): Settings of the trainings.
    warnings (List[str]): Why the scores of the best may be too high.
    notes (List[str]): How the corpora were split, and how long candidates were trained.
    curve (List[Point]): Learning curve: "sentences" of gold, and "f1" of gold alone.
    recommendations (List[str]): What would help most next, the most helpful first.
    code (str): See `code_version`.
    reason (str): Why it was selected, where that is not by the scores; else empty.
    """

    best: str
    chosen_by: str
    candidates: List[TrainedCandidate]
    left_out: List[Rule] = []
    facts: Facts
    settings: Settings
    warnings: List[str] = []
    notes: List[str] = []
    curve: List[Point] = []
    recommendations: List[str] = []
    code: str = ""
    reason: str = ""

    @field_validator("chosen_by")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in ("dev", "cross-validation", "nothing"):
            raise ValueError("unknown")
        return value

    @model_validator(mode="after")
    def _is_complete(self) -> "Selection":
        if self.best not in [each.name for each in self.candidates]:
            raise ValueError("the best is none of the candidates")
        if any(point.keys() != {"sentences", "f1"} for point in self.curve):
            raise ValueError("points need 'sentences' and 'f1'")
        return self

    @property
    def selected(self) -> TrainedCandidate:
        """The best candidate."""
        return next(each for each in self.candidates if each.name == self.best)

    def ranked(self) -> List[TrainedCandidate]:
        """Candidates that were compared: the best, then the others by F1."""
        compared = [each for each in self.candidates if each.scores is not None]
        return sorted(compared, key=lambda each: (each.name != self.best, -each.scores.f1 if each.scores else 0.0))

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        write_text(path, json.dumps(self.model_dump(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Selection":
        """Read what `save` has written.

        path (Path): The file.
        RETURNS (Selection): The selection.
        RAISES (WeaknerError): If it is missing or damaged.
        """
        path = existing(Path(path), "'spacy weakner fit' makes it")
        with reading(path, "fit"):
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
        compared = [_compared(each.name, each.scores) for each in self.ranked()[1:] if each.scores]
        return [self.headline(), *compared, *self.remarks()]

    def answer(self) -> List[Tuple[str, str]]:
        """The best candidate, how certain that is, and what to do next, each with a heading."""
        others = self.ranked()[1:]
        if self.selected.scores is None:
            certainty = "Nothing was compared: there is no gold."
        elif not others or others[0].scores is None:
            certainty = "Nothing else was compared with it."
        else:
            certainty = f"The next best: {_compared(others[0].name, others[0].scores)}"
        certainty = " ".join([certainty, *(f"Warning: {text}." for text in self.warnings)])
        found = [("Best", self.headline()), ("How certain", certainty)]
        return found + ([("Next", self.recommendations[0])] if self.recommendations else [])


def read_scores(path: Optional[Path]) -> Dict[str, CandidateScores]:
    """Scores on test by candidate, as `evaluate` has written them; empty if there are none.

    RAISES (WeaknerError): If the file is damaged.
    """
    if path is None or not Path(path).exists():
        return {}
    with reading(path, "evaluate"):
        rows: List[Any] = parse_json(Path(path).read_bytes())
        scores = [CandidateScores.model_validate(row) for row in rows]
        return {row.name: row for row in scores}


def choose(rows: Sequence[Comparison], combined: Optional[str] = None) -> str:
    """Select a candidate: the combination of the others, unless one of them is better by more than chance and by more
    than `CLEARLY`. A few hundred sentences are too few to choose between candidates by F1 alone.
    Without combination the best F1 wins, of equal ones the first."""
    if combined is None or combined not in [row.name for row in rows]:
        return max(rows, key=lambda row: row.counts.f1).name
    better = [row for row in rows if row.difference and row.difference.low > 0 and row.difference.f1 > CLEARLY]
    return max(better, key=lambda row: row.counts.f1).name if better else combined


def cost_of_speed(rows: Sequence[Comparison], best: str) -> str:
    """What it costs to select a single head where the combination was measured, too."""
    found = [row.difference for row in rows if row.name == COMBINED and row.difference]
    if best == COMBINED or not found:
        return ""
    return f"It was selected for speed (--prefer speed); the combination has {found[0].text()}."


def _compared(name: str, scores: CandidateScores) -> str:
    return f"'{name}' has {scores.text()}{_difference(scores.difference)}."


def _difference(difference: Optional[Difference]) -> str:
    if difference is None:
        return ""
    if round(difference.f1, 1) == 0:
        return ", as good"
    return f": {difference.text()}" + ("" if difference.is_certain else ", which may be chance")
