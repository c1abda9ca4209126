"""What is packaged where nothing can be compared: the list, and a head that has learned from it."""

from pathlib import Path
from typing import Mapping

from ...files import atomic_path
from ...gazetteer_ruler.entities import SHORTER
from .assembling import HEAD, add_lists, assemble

# Of what is less probable, too little is right. Chosen on public data, as the rule is (best.md).
THRESHOLD = 0.6
ON_PUBLIC_DATA = (
    "With eight term lists on public data, with a linear CRF, the longest of what the list matches and what the head "
    "is sure of had 2.4 points of F1 more than the list on average (0.4 to 5.9)."
)


def list_and_head(lists: Mapping[str, Path], head: Path, output: Path) -> Path:
    """Write a pipeline that finds what term lists match and what a head is sure of; where they overlap, the longest.

    lists (Mapping[str, Path]): Pipelines of term lists, by source.
    head (Path): Pipeline of a head that was trained on their labels.
    output (Path): Folder of the pipeline.
    RETURNS (Path): The folder.
    """
    nlp = assemble({}, {HEAD: head}, decides=True, threshold=THRESHOLD)
    add_lists(nlp, lists, annotate_ents=True, overwrite=SHORTER)
    with atomic_path(output) as temporary:
        nlp.to_disk(temporary)
    return output
