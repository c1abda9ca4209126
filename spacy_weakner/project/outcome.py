"""The outcome of a comparison of candidates, from which `fit` makes the selection."""

from pathlib import Path
from types import MappingProxyType
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..evaluation.compare import CandidateScores
from .mistakes import Mistake
from .overruled import Overruled
from .precision import Precision
from .recommendations import Curve
from .rules import Rule
from .selection import Cost


class Outcome(NamedTuple):
    """The candidates, the best of them, and what the comparison has found; see `Selection`."""

    pipelines: Dict[str, Path]
    best: str
    rows: Sequence[CandidateScores] = ()
    reason: str = ""
    rules: Sequence[Rule] = ()
    curve: Curve = Curve([])
    costs: Mapping[str, Cost] = MappingProxyType({})
    corpus: Optional[Path] = None
    predicted: Mapping[str, Path] = MappingProxyType({})
    mistakes: Sequence[Mistake] = ()
    overruled: Sequence[Overruled] = ()
    precision: Optional[Precision] = None
    tradeoff: Sequence[List[str]] = ()
