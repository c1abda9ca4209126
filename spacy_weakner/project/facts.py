"""The facts about a project, read from its corpora and from what `analyze` has measured."""

from typing import List, Optional

from ..corpus.docbin import corpus_files, read_bin
from ..files import parse_json, reading_made
from ..scores import Strict
from .layout import Corpora, has_docs
from .prepare import Preparation
from .rules import Facts


class LabelAnalysis(Strict):
    """The scores of weak labels on gold that `fit` uses; see `Facts`."""

    precision: Optional[float]
    recall: Optional[float]
    f1: Optional[float]
    sources: int
    warnings: List[str]  # why the scores of a list may be too high


def find_facts(
    corpora: Corpora, prepared: Preparation, analysis: Optional[LabelAnalysis], lists: int, size: str
) -> Facts:
    """Return what the project has. Without gold there is no analysis of the labels."""
    sizes = prepared.model_dump(exclude={"test", "notes"})
    scores = analysis.model_dump(include={"precision", "recall", "f1", "sources"}) if analysis else {}
    # Weak labels of an earlier text do not count.
    weak = bool(prepared.text) and has_docs(corpora.weak)
    if weak:  # count the text without the sentences of the gold
        sizes["text"] = sum(len(read_bin(path)) for path in corpus_files(corpora.weak))
    return Facts(size=size, lists=lists, weak=weak, **sizes, **scores)


def read_analysis(corpora: Corpora) -> Optional[LabelAnalysis]:
    """Read the output of `analyze --worst-terms`, or return None if there is none."""
    if not corpora.labels.exists():
        return None
    with reading_made(corpora.labels, "analyze --worst-terms"):
        found = parse_json(corpora.labels.read_bytes())
        scores = found["scores"]
        # If no source has labeled the gold, the quality of the labels is unknown.
        known = scores.get("docs") != 0
        return LabelAnalysis(
            precision=scores.get("p") if known else None,
            recall=scores.get("r") if known else None,
            f1=scores["f1"] if known else None,
            sources=len(found.get("per_source", {})),
            warnings=[warning["text"] for warning in found.get("warnings", []) if warning["kind"] == "known"],
        )
