"""The result of `fit`: the best candidate, the scores of all candidates, and what to do next."""

import json
from pathlib import Path
from types import MappingProxyType
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from pydantic import model_validator

from ..errors import Errors, WeaknerError
from ..evaluation.compare import CandidateScores, ranked
from ..evaluation.score_table import read_scores
from ..files import existing, parse_json, reading_made, write_text
from ..pipelines import RULE
from ..runtime.hashes import hash_path
from ..scores import Strict
from .mistakes import Mistake
from .overruled import Overruled
from .precision import Precision
from .rules import COMBINED, LIST_AND_HEAD, STUDENT, STUDENT_AND_LIST, ChosenBy, Facts, Rule, Settings

# Points of F1 by which a candidate must be better than the combination, and significantly so (best.md).
CLEARLY = 3.0
SELECTION = "selection.json"
_AGAIN = "weasel run fit . --force (or spacy weakner fit)"
PREVIOUS = "previous package"
ScoresByName = Mapping[str, CandidateScores]
NO_SCORES: ScoresByName = MappingProxyType({})
Point = Dict[str, float]
# What is said of a package with a Transformer, if there may be a student.
FASTER = (
    "With --prefer speed, a linear CRF that learns from the Transformer is packaged instead: on public data, it was 10 "
    "to 60 times as fast, and had up to 8 points of F1 less."
)


class Cost(Strict):
    """What a pipeline costs its user."""

    words_per_second: int  # on this machine
    megabytes: float


class TrainedCandidate(Strict):
    """A candidate with a pipeline; it has no scores if candidates were not compared."""

    name: str
    path: str  # in the file: relative to its folder
    why: str
    scores: Optional[CandidateScores] = None  # on dev or in cross-validation
    cost: Optional[Cost] = None  # of candidates between which `--prefer` decides
    predicted: Optional[str] = None  # its predictions on `Selection.corpus`, by pipelines that were not trained on it


class Selection(Strict):
    """The result of a project: the candidates in the order of the rules, and the best of them."""

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
    mistakes: List[Mistake] = []  # probable ones in the gold, the most probable first
    precision: Optional[Precision] = None  # thresholds of the combination, if a precision is wanted
    tradeoff: List[List[str]] = []  # precision and recall of the combination by threshold
    overruled: List[Overruled] = []  # terms that the best candidate rejects, those with the most matches first
    code: str = ""  # see `code_version`
    inputs: str = ""  # see `inputs.hash_inputs`
    # Hashes of the pipelines by name, so that this file changes with them; earlier versions wrote one of all.
    contents: Union[Dict[str, str], str] = {}
    sentences: str = RULE  # how the pipeline splits texts, as the corpora were split; see `add_sentences`
    abbreviations: str = ""
    reason: str = ""  # why the best was selected, if not for its scores; or what another preference would select
    corpus: Optional[str] = None  # dev, or the gold in the order of its folds, on which candidates were compared

    @model_validator(mode="after")
    def _is_complete(self) -> "Selection":
        if self.best not in [candidate.name for candidate in self.candidates]:
            raise ValueError("'best' is not one of the candidates")
        if any(point.keys() != {"sentences", "f1"} for point in self.curve):
            raise ValueError("each point of the curve needs 'sentences' and 'f1'")
        return self

    @property
    def selected(self) -> TrainedCandidate:
        """RETURNS (TrainedCandidate): The best candidate."""
        return next(candidate for candidate in self.candidates if candidate.name == self.best)

    def selected_contents(self) -> Tuple[Path, str]:
        """Return the folder of the best candidate and its hash. Raise an error if it is missing, or not what was
        selected."""
        path = existing(Path(self.selected.path), f"or train it again: {_AGAIN}")
        found = hash_path(path)
        if isinstance(self.contents, dict) and self.contents.get(self.best, found) != found:
            raise WeaknerError(Errors.WK697.format(path=path, again=_AGAIN))
        return path, found

    @property
    def costs(self) -> Dict[str, Tuple[str, str]]:
        """RETURNS (Dict[str, Tuple[str, str]]): Speed and size of the candidates as text; empty if none was
        measured."""
        costs = {candidate.name: candidate.cost for candidate in self.candidates}
        if not any(costs.values()):
            return {}
        return {
            name: (f"{cost.words_per_second:,}", f"{cost.megabytes:.0f}") if cost else ("-", "-")
            for name, cost in costs.items()
        }

    def ranked(self) -> Dict[str, CandidateScores]:
        """Return the scores of the compared candidates: the best first, then the others by F1."""
        scores = [candidate.scores for candidate in self.candidates if candidate.scores is not None]
        return {row.name: row for row in ranked(scores, self.best)}

    def save(self, path: Path) -> None:
        """Write the selection as JSON. Paths below the folder of the file are relative to it."""
        folder = path.parent.resolve()

        def place(path: str) -> str:
            target = Path(path).resolve()
            return target.relative_to(folder).as_posix() if folder in target.parents else str(target)

        data = self._placed(place).model_dump()
        write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Selection":
        """Read a selection that `save` has written."""
        path = existing(Path(path), "or create it with 'weasel run all' in the project, or 'spacy weakner fit'")
        if path.is_dir():
            raise WeaknerError(Errors.WK109.format(path=path))
        with reading_made(path, "fit"):
            found = cls.model_validate(parse_json(path.read_bytes()))
        return found._placed(lambda name: str(path.parent / name))

    def _placed(self, place: Callable[[str], str]) -> "Selection":
        """Return a copy with other paths."""
        candidates = [
            other.model_copy(
                update={"path": place(other.path), "predicted": other.predicted and place(other.predicted)}
            )
            for other in self.candidates
        ]
        return self.model_copy(update={"candidates": candidates, "corpus": self.corpus and place(self.corpus)})

    def headline(self, test: ScoresByName = NO_SCORES) -> str:
        """Return one or two sentences with the scores of the best candidate, on test if there are any."""
        if (on_test := test.get(self.best)) is not None:
            found = f"{on_test.text()} on test ({on_test.tp + on_test.fn:,} entities)"
        else:
            found = self._measured()
        reason = f" {self.reason}" if self.reason else ""
        if not found:
            return (
                f"'{self.best}' is the best guess: there is no gold to compare candidates on.{reason} With a hundred "
                "annotated sentences, you can measure how good it is, and improve it."
            )
        return f"'{self.best}': {found}.{reason}"

    def _measured(self) -> str:
        if self.selected.scores is None:
            return ""
        on_dev, on_gold = f"on {self.facts.dev:,} dev", f"in cross-validation of {self.facts.gold:,} gold"
        return f"{self.selected.scores.text()} {on_dev if self.chosen_by == 'dev' else on_gold} sentences"

    def remarks(self) -> List[str]:
        """Return further remarks and warnings, without the scores."""
        found = []
        if self.selected.scores is None:
            found += [f"'{other.name}': {other.path}." for other in self.candidates if other.name != self.best]
        found += filter(None, [self.explained()])
        if self.facts.f1 is not None and self.facts.sources > 1:
            found.append(
                f"The weak labels of all {self.facts.sources} sources together have F1 {self.facts.f1:.1f} on the "
                "gold; a new text does not have labels of all these sources."
            )
        found += self.precision.lines() if self.precision else []
        found += [f"'{rule.name}' was not trained: {rule.why}." for rule in self.left_out]
        return found + [f"Warning: {text}." for text in self.warnings]

    def explained(self) -> str:
        """Return why the combination, or a student, was selected; "" if neither was."""
        # Without a reason, a student was selected for its F1.
        if self.best in (STUDENT, STUDENT_AND_LIST) and self.selected.scores is not None and self.reason:
            return (
                f"'{self.best}' is selected unless another candidate without a Transformer is significantly, and by "
                f"more than {CLEARLY:g} points, better."
            )
        if (
            self.best != COMBINED
            or self.selected.scores is None
            or len(self.candidates) < (2 if self.facts.lists else 3)
        ):
            return ""
        parts = "the term lists and heads" if self.facts.lists else "the heads"
        why = f"unless another candidate is significantly, and by more than {CLEARLY:g} points, better"
        why = "since its thresholds give the wanted precision" if self.precision else why
        return f"'{COMBINED}' decides between the entities of {parts}. It is selected {why}."

    def lines(self) -> List[str]:
        """Return the whole selection as sentences."""
        return [self.headline(), *self._others(self.ranked()), *self.remarks()]

    def answer(self, test: ScoresByName = NO_SCORES) -> List[Tuple[str, str]]:
        """Return the scores of the best candidate, how far the next best is away from it, and what to do next, each
        with a heading."""
        others = self._others(test or self.ranked())
        certainty = f"{others[0][:-1]}{' on test' if test else ''}." if others else "No other candidate was compared."
        if not test and self.selected.scores is None:
            certainty = "No candidates were compared: there is no gold."
        progress = self._progress(test if PREVIOUS in test else self.ranked())
        certainty = " ".join([certainty, *(f"Warning: {text}." for text in self.warnings)])
        found = [("Selected", self.headline(test)), ("Best of the others", certainty)]
        if test and self.selected.scores is not None:
            found.insert(1, ("Selected by", f"{self._measured()}."))
        found += [("Compared with the last run", text) for text in progress]
        return found + [("Next step", text) for text in self.recommendations[:1]]

    def _progress(self, scores: ScoresByName) -> List[str]:
        """Return a sentence that compares the package with the previous one, if there is one."""
        row = scores.get(PREVIOUS)
        if row is None or row.difference is None or row.difference.baseline != self.best:
            return []
        on_gold = scores == self.ranked()
        corpus = "sentences that neither was trained on" if on_gold else "test"
        gain = row.difference.reversed(PREVIOUS)
        how = "is as good" if round(gain.f1, 1) == 0 else f"has {gain.text()}"
        limits = next((other.why for other in self.candidates if other.name == PREVIOUS), "") if on_gold else ""
        limits = f" {limits[0].upper()}{limits[1:]}." if limits else ""
        return [f"The previous package has F1 {row.f1:.1f} on {corpus}; the new one {how}.{limits}"]

    def _others(self, scores: ScoresByName) -> List[str]:
        found = []
        for row in ranked([row for row in scores.values() if row.name != PREVIOUS], self.best)[1:]:
            text = f"'{row.name}': {row.text()}"
            if (difference := row.difference) is not None and difference.baseline == self.best:
                text += ", equally good" if round(difference.f1, 1) == 0 else f"; {difference.text()}"
            found.append(f"{text}.")
        return found


def read_test_scores(path: Optional[Path]) -> Dict[str, CandidateScores]:
    """Read the scores on test by candidate that `evaluate` has written; empty if there are none."""
    if path is None or not Path(path).exists():
        return {}
    return {row.name: row.scores for row in read_scores(path) if row.scores is not None}


def choose_best(rows: Sequence[CandidateScores], combined: Optional[str] = None) -> str:
    """Select a candidate: the combination, unless another one is significantly better and by more than `CLEARLY`,
    since a few hundred sentences are too few to choose by F1 alone. Without a combination, select the candidate with
    the best F1, the first one of equals."""
    if combined is None or combined not in [row.name for row in rows]:
        return max(rows, key=lambda row: row.f1).name
    better = [row for row in rows if row.difference and row.difference.low > 0 and row.difference.f1 > CLEARLY]
    return max(better, key=lambda row: row.f1).name if better else combined


def choose_fast(rows: Sequence[CandidateScores], slow: Set[str], usual: Optional[str] = None) -> str:
    """Select one of the candidates without a Transformer, or of all if there are none: `usual`, unless another is
    clearly better (`choose_best`); without `usual`, the one with the best F1. `slow` are those with a Transformer."""
    single = [row for row in rows if row.name not in (COMBINED, LIST_AND_HEAD, PREVIOUS)]
    fast = [row for row in single if row.name not in slow] or single
    return choose_best(fast, usual)


def better_student(rows: Sequence[CandidateScores]) -> Optional[str]:
    """Return the student, alone or combined with lists, that has the better F1; None if there is none."""
    students = [row for row in rows if row.name in (STUDENT, STUDENT_AND_LIST)]
    return choose_best(students) if students else None


def gain_of_speed(rows: Sequence[CandidateScores]) -> str:
    """Return a sentence on what would be packaged for speed instead of the combination, with its F1 if a student was
    compared."""
    found = [row.difference for row in rows if row.name == STUDENT and row.difference]
    if not found:
        return FASTER
    return f"With --prefer speed, a student is packaged instead, without the Transformer: it has {found[0].text()}."


def cost_of_speed(rows: Sequence[CandidateScores], best: str) -> str:
    """Return a sentence on how much better the combination is than the selected candidate, or "" if unknown."""
    found = [row.difference for row in rows if row.name == COMBINED and row.difference]
    if best == COMBINED or not found:
        return ""
    return f"It was selected for its speed; the combination has {found[0].text()}."
