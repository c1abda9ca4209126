"""What was trained, how it compares, and which pipeline is the one to use."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ..evaluation.bootstrap import Difference
from ..evaluation.compare import Comparison
from ..files import existing, parse_json, write_text
from ..scores import Counts
from .layout import reading
from .rules import COMBINED, Facts, Rule, Settings

# Points of F1 by which a part must be better than the combination, beside being so by more than chance (best.md).
CLEARLY = 3.0


@dataclass
class Contender:
    """A candidate that there is a pipeline of.

    name (str): Its name.
    path (str): Its pipeline.
    why (str): Why it was made.
    scores (Optional[Dict[str, Any]]): On what the choice was made by, see `Comparison.to_json`; None if there
        was nothing.
    """

    name: str
    path: str
    why: str
    scores: Optional[Dict[str, Any]] = None


@dataclass
class Verdict:
    """The result of a project.

    winner (str): Name of the candidate to use.
    chosen_by (str): "dev", "cross-validation" or "nothing".
    contenders (List[Contender]): All that there is a pipeline of, in the order of the rules.
    left_out (List[Rule]): Those that were not trained, and why.
    facts (Facts): What was found.
    settings (Settings): What trainings were given.
    doubts (List[str]): What speaks against the scores of the winner.
    notes (List[str]): What was split, and how long was trained.
    curve (List[Dict[str, float]]): Points of the learning curve: gold sentences, and F1 of gold alone.
    advice (List[str]): What would help most next, the most helpful first.
    code (str): See `code_version`.
    reason (str): Why it is the winner where nothing could be compared; empty if there was no choice.
    """

    winner: str
    chosen_by: str
    contenders: List[Contender]
    left_out: List[Rule]
    facts: Facts
    settings: Settings
    doubts: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    curve: List[Dict[str, float]] = field(default_factory=list)
    advice: List[str] = field(default_factory=list)
    code: str = ""
    reason: str = ""

    @property
    def best(self) -> Contender:
        """RETURNS (Contender): The winner."""
        return next(contender for contender in self.contenders if contender.name == self.winner)

    def ranked(self) -> List[Contender]:
        """RETURNS (List[Contender]): Those that were compared: the winner, then the others, the best first."""
        known = [each for each in self.contenders if each.scores is not None]
        return sorted(known, key=lambda each: (each is not self.best, -(each.scores or {})["f1"]))

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        data = asdict(self)
        data["left_out"] = [rule._asdict() for rule in self.left_out]
        data["facts"], data["settings"] = self.facts._asdict(), self.settings._asdict()
        write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Verdict":
        """Read what `save` has written.

        path (Path): The file.
        RETURNS (Verdict): The verdict.
        RAISES (WeaknerError): If it is not there, or damaged.
        """
        path = existing(Path(path), "'spacy weakner fit' makes it")
        with reading(path, "fit"):
            data = parse_json(path.read_bytes())
            data["contenders"] = [Contender(**each) for each in data["contenders"]]
            data["left_out"] = [Rule(**each) for each in data["left_out"]]
            data["facts"], data["settings"] = Facts(**data["facts"]), Settings(**data["settings"])
            verdict = cls(**data)
            _check(verdict)
            return verdict

    def lines(self) -> List[str]:
        """Say which one it is, and why, in plain words.

        RETURNS (List[str]): Sentences.
        """
        best = self.best
        if best.scores is None:
            return [
                f"'{best.name}' is the pipeline to use. Nothing could be compared: there is no gold. "
                f"{f'{self.reason} ' if self.reason else ''}A hundred annotated sentences would tell how good it is, "
                "and make it better.",
                *(f"'{other.name}' is there too: {other.path}." for other in self.contenders if other is not best),
            ]
        on = {"dev": f"on {self.facts.dev} dev sentences", "cross-validation": "in cross-validation of the gold"}
        lines = [f"'{best.name}' is the one to use. It has {scores_text(best.scores)} {on[self.chosen_by]}."]
        if best.name == COMBINED and len(self.contenders) > 1:
            lines.append("It decides between lists and heads, which stand below with others.")
        for rival in self.ranked()[1:]:
            if rival.scores is not None:
                lines.append(f"'{rival.name}' has {scores_text(rival.scores)}{_certainty(rival.scores)}.")
        if self.facts.f1 is not None and self.facts.sources > 1:
            lines.append(
                f"The weak labels themselves, of {self.facts.sources} sources together, have F1 {self.facts.f1:.1f} on "
                "the gold; a new text has no answers of all of them."
            )
        lines += [f"'{rule.name}' was not trained: {rule.why}." for rule in self.left_out]
        lines += [f"Careful: {text}." for text in self.doubts]
        return lines

    def answer(self) -> List[Tuple[str, str]]:
        """Say in short which one to use, how sure that is, and what to do next.

        RETURNS (List[Tuple[str, str]]): Sentences, each with a word for what it answers.
        """
        best = self.lines()[0]
        rivals = self.ranked()[1:]
        if self.best.scores is None:
            sure = "Nothing was compared: there is no gold."
        elif not rivals:
            sure = "Nothing else was compared with it."
        else:
            rival = rivals[0]
            assert rival.scores is not None
            sure = f"The next one, '{rival.name}', has {scores_text(rival.scores)}{_certainty(rival.scores)}."
        sure = " ".join([sure, *(f"Careful: {text}." for text in self.doubts)])
        found = [("Use", best), ("How sure", sure)]
        return found + ([("Next", self.advice[0])] if self.advice else [])


def _check(verdict: Verdict) -> None:
    """Check the kinds of values, and that all can be said.

    verdict (Verdict): What was read.
    RAISES (ValueError): If a value is of another kind; (KeyError, StopIteration): if something is missing.
    """
    facts, texts = verdict.facts, [*verdict.doubts, *verdict.notes, *verdict.advice, verdict.code, verdict.reason]
    texts += [verdict.winner, facts.size, *(text for each in verdict.left_out for text in (each.name, each.why))]
    numbers: List[Any] = [facts.gold, facts.dev, facts.text, facts.gold_words, facts.text_words, facts.lists]
    numbers += [facts.sources, *verdict.settings]
    numbers += [point[key] for point in verdict.curve for key in ("sentences", "f1")]
    numbers += [number for number in (facts.precision, facts.recall, facts.f1) if number is not None]
    for each in verdict.contenders:
        texts += [each.name, each.path, each.why]
        if each.scores is not None:
            numbers += [each.scores[key] for key in ("f1", "p", "r", *Counts._fields)]
            interval, difference = each.scores.get("interval"), each.scores.get("difference")
            if interval is not None:
                numbers += [interval["low"], interval["high"]]
            if difference is not None:
                texts.append(difference["baseline"])
                numbers += [difference[key] for key in Difference._fields if key != "baseline"]
    if not all(isinstance(text, str) for text in texts) or not all(map(_is_number, numbers)):
        raise ValueError("a value is of another kind")
    verdict.lines()


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def scores_text(scores: Dict[str, Any]) -> str:
    """Scores in a few words.

    scores (Dict[str, Any]): As in `Contender`.
    RETURNS (str): For example "F1 79.4 (76.0 to 82.5), P 85.8, R 74.0".
    """
    bounds = interval_text(scores)
    return f"F1 {scores['f1']:.1f}{f' ({bounds})' if bounds else ''}, P {scores['p']:.1f}, R {scores['r']:.1f}"


def interval_text(scores: Dict[str, Any]) -> str:
    """RETURNS (str): The confidence interval of F1, for example "76.0 to 82.5"; empty if there is none."""
    interval = scores.get("interval")
    return f"{interval['low']:.1f} to {interval['high']:.1f}" if interval else ""


def choose(rows: List[Comparison], combined: Optional[str] = None) -> str:
    """The winner. That is what all others are parts of, unless one of them is better by more than chance, and by more
    than `CLEARLY`: a few hundred sentences cannot choose between candidates, and what contains them need not.

    rows (List[Comparison]): The scores, compared with those of the combination, in the order of the rules.
    combined (Optional[str]): The combination; if it is none of them, the best F1 wins, of equals the first.
    RETURNS (str): Name of the winner.
    """
    names = [row.name for row in rows]
    if combined is None or combined not in names:
        return max(rows, key=lambda row: row.counts.f1).name
    better = [row for row in rows if row.difference and row.difference.low > 0 and row.difference.f1 > CLEARLY]
    return max(better, key=lambda row: row.counts.f1).name if better else combined


def _certainty(scores: Dict[str, Any]) -> str:
    difference = scores.get("difference")
    if not difference:
        return ""
    if round(difference["f1"], 1) == 0:
        return ", as good"
    if difference["f1"] > 0:
        return f", {difference['f1']:.1f} more, which is less than such a choice can tell"
    sure = difference["high"] < 0
    return f", {-difference['f1']:.1f} less" + (
        "" if sure else ", which may be chance: the sentences are too few to tell"
    )
