"""The result of tuning laid out for reading."""

import json
import shlex
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from .proposal import Proposal

if TYPE_CHECKING:
    from .tuning import Scores, Tuning

_MAX_OPTIONS = 20
Table = Tuple[List[str], List[Tuple[str, ...]]]


def score_table(tuning: "Tuning") -> Table:
    """RETURNS (Table): Header and cells: all labels together, each label, and each source alone if there are several,
    with 95 % intervals."""
    rows = [_score_row("all", tuning.scores)]
    rows += [_score_row(label, scores) for label, scores in tuning.per_label.items()]
    if len(tuning.per_source) > 1:
        rows += [_score_row(f"source {name}", scores) for name, scores in tuning.per_source.items()]
    return ["", "P", "95 %", "R", "95 %", "F1", "95 %", "right", "wrong", "missed"], rows


def term_table(tuning: "Tuning") -> Table:
    """RETURNS (Table): Header and cells: the worst terms."""
    rows: List[Tuple[str, ...]] = [
        (t.term, t.label, t.source, str(t.wrong), str(t.right), _shortened(t.examples[0])) for t in tuning.worst_terms
    ]
    return ["term", "label", "source", "wrong", "right", "for example"], rows


def proposal_table(proposal: Proposal) -> Table:
    """RETURNS (Table): Header and cells: a term list before and after."""
    rows = []
    for name, counts in (("before", proposal.before), ("after", proposal.after)):
        shares = (f"{value:.1f}" for value in (counts.precision, counts.recall, counts.f1))
        rows.append((name, *shares, str(counts.tp), str(counts.fp), str(counts.fn)))
    return ["", "P", "R", "F1", "right", "wrong", "missed"], rows


def as_options(proposal: Proposal) -> Optional[str]:
    """RETURNS (Optional[str]): The settings as options of `label`; None if that has no such option (for labels), or
    there are too many stop terms for a command line."""
    if proposal.labels is not None or len(proposal.stop) > _MAX_OPTIONS:
        return None
    options = [f"--stop {shlex.quote(term)}" for term in proposal.stop]
    if proposal.min_length is not None:
        options.append(f"--min-length {proposal.min_length}")
    if proposal.ambiguity is not None:
        options.append(f"--ambiguity {proposal.ambiguity}")
    return " ".join(options)


def as_config(proposal: Proposal) -> str:
    """RETURNS (str): The settings as a section of a sources file."""
    settings: Dict[str, Any] = {
        "labels": None if proposal.labels is None else {label: label for label in proposal.labels},
        "stop": list(proposal.stop) or None,
        "min_length": proposal.min_length,
        "ambiguity": proposal.ambiguity,
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items() if value is not None]
    return "\n".join([f"[sources.{proposal.source}]", *lines])


def _score_row(name: str, scores: "Scores") -> Tuple[str, ...]:
    counts = scores.counts
    cells = []
    for key, value in (("p", counts.precision), ("r", counts.recall), ("f1", counts.f1)):
        cells += [f"{value:.1f}", scores.intervals[key].text()]
    return (name, *cells, str(counts.tp), str(counts.fp), str(counts.fn))


def _shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
