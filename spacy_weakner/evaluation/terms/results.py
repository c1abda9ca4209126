"""Results of the analysis of weak labels on gold."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...scores import Counts, as_json
from ..bootstrap import Interval


class LabelWarning(NamedTuple):
    """A warning: what was measured, what it means, what to do."""

    # "precision", "recall", "nothing", "never_given", "never_right", "combination", "unanswered", "known" or "gold"
    kind: str
    text: str


class IntervalScores(NamedTuple):
    """Scores with a confidence interval."""

    counts: Counts
    interval: Interval  # of F1, from a bootstrap over sentences
    docs: int  # number of scored Docs

    def to_json(self) -> Dict[str, Any]:
        return {**as_json(self.counts), "interval": as_json(self.interval), "docs": self.docs}


class WorstTerm(NamedTuple):
    """A phrase that a source often labels wrongly: how often it is wrong and right, and examples of wrong matches."""

    term: str
    label: str
    source: str
    wrong: int
    right: int
    examples: Tuple[str, ...]


class TermAnalysis(NamedTuple):
    """The scores of weak labels, and the terms that are most often wrong."""

    method: str
    policy: Optional[str]  # of the method "union"
    docs: int  # Docs with gold
    unlabeled: int  # Docs with gold that no source has labeled; they are not scored
    tokens: int
    entities: int
    scores: IntervalScores  # the labels as `aggregate` would write them
    per_label: Dict[str, IntervalScores]
    per_source: Dict[str, IntervalScores]  # each source alone, on the documents that it has labeled
    per_source_label: Dict[str, Dict[str, Counts]]  # the same per label
    unanswered: Tuple[str, ...]  # sources without any answer on this gold
    worst_terms: List[WorstTerm]
    warnings: List[LabelWarning]

    def to_json(self) -> Dict[str, Any]:
        """Return the result as JSON."""
        result: Dict[str, Any] = {**as_json(self), "scores": self.scores.to_json()}
        for key in ("per_label", "per_source"):
            result[key] = {name: scores.to_json() for name, scores in getattr(self, key).items()}
        return result
