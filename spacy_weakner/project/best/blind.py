"""What is packaged where nothing can be compared: the list, and a head that has learned from it."""

from pathlib import Path
from typing import Mapping

from ...files import atomic_path
from ...gazetteer_ruler.entities import SHORTER
from .assembling import HEAD, add_lists, assemble

# Of what is less probable, too little is right. Chosen on public data, as the rule is (best.md).
THRESHOLD = 0.6
ON_PUBLIC_DATA = (
    "On the test sets of eight public data sets that the rule was not chosen on, the longest of what the list matches "
    "and what a head is sure of had 3.8 points of F1 more than the list on average (-0.2 to +9.7)."
)


def list_and_head(lists: Mapping[str, Path], head: Path, output: Path) -> Path:
    """Write a pipeline that finds what term lists match and what a head is sure of; where they overlap, the longest.
    Entities get no scores: without gold the head's probabilities are wrong by 0.24 to 0.68 on average.

    lists (Mapping[str, Path]): Pipelines of term lists, by source.
    head (Path): Pipeline of a head that was trained on their labels.
    output (Path): Folder of the pipeline.
    RETURNS (Path): The folder.
    """
    nlp = assemble({}, {HEAD: head}, decides=True, threshold=THRESHOLD, scores=False)
    add_lists(nlp, lists, annotate_ents=True, overwrite=SHORTER)
    with atomic_path(output) as temporary:
        nlp.to_disk(temporary)
    return output
