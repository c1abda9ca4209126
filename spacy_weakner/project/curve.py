"""What more gold would bring: gold alone, trained on parts of the gold."""

from itertools import accumulate
from math import log2
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import read_docs, write_docs
from ..evaluation.compare import compare
from ..runs.groups import group_docs, without_copies
from ..runs.training import Training
from .workshop import Workshop, pipeline_of

PARTS = (0.25, 0.5)
# Smaller parts say nothing.
MIN_PART = 10
# Parts are made of sentences where a document is a larger share than this, and left out where they are off by more.
ROUGH = 0.125
# Of the gain of a doubling so far, what the next one brings about.
SHRINK = 0.6
Point = Dict[str, float]


class Part(NamedTuple):
    """A part of the gold.

    sentences (int): How many.
    training (Training): On them.
    evaluated_on (Path): Other gold.
    select (bool): Whether a checkpoint was chosen by it.
    """

    sentences: int
    training: Training
    evaluated_on: Path
    select: bool


def make_parts(workshop: Workshop, dev: Optional[Path], seed: int) -> List[Part]:
    """Trainings on a quarter and on half of the gold, each part holding the smaller one.

    workshop (Workshop): Where they are trained.
    dev (Optional[Path]): What is evaluated on; None: the gold outside the part.
    seed (int): Seed of the parts, which are made by document where identifiers tell, and do not depend on the order.
    RETURNS (List[Part]): The parts; fewer where they would be too small, or say nothing for lack of entities.
    """
    docs = list(read_docs(workshop.corpora.gold, Vocab()))
    groups = group_docs(docs, f"curve {seed}")
    if max(map(len, groups)) > ROUGH * len(docs):
        groups = group_docs(docs, f"curve {seed}", least=len(docs) + 1)
    folder = workshop.models / "curve"
    made: List[Part] = []
    for share in PARTS:
        own, rest = _cut(groups, round(share * len(docs)))
        n, smaller = len(own), made[-1].sentences if made else 0
        if n < MIN_PART or n == smaller or abs(n - share * len(docs)) > ROUGH * len(docs):
            continue
        if not any(doc.ents for doc in own):
            continue
        if dev is None and not any(doc.ents for doc in rest):
            continue
        gold, others = folder / f"gold-{n}.spacy", folder / f"rest-{n}.spacy"
        write_docs(gold, own)
        if dev is None:
            write_docs(others, rest)
        # Without dev no checkpoint is chosen, so that the points of the curve are alike.
        evaluated = gold if dev is None else dev
        training = workshop.on_gold(gold, evaluated, folder / f"model-{n}")
        made.append(Part(n, training, others if dev is None else dev, dev is not None))
    return made


def _cut(groups: Sequence[List[Doc]], n: int) -> Tuple[List[Doc], List[Doc]]:
    """About n sentences of the first groups, and the others, without copies of them."""
    sizes = [0, *accumulate(map(len, groups))]
    end = min(range(len(sizes)), key=lambda i: abs(sizes[i] - n))
    own = [doc for group in groups[:end] for doc in group]
    return own, without_copies([doc for group in groups[end:] for doc in group], own)


def measure(parts: List[Part], whole: Optional[Tuple[int, float]], gpu_id: int = -1) -> List[Point]:
    """Score the pipelines of the parts.

    parts (List[Part]): The parts, trained.
    whole (Optional[Tuple[int, float]]): Sentences and F1 of all gold.
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    RETURNS (List[Point]): "sentences" and "f1", growing.
    """
    points = []
    for part in parts:
        pipeline = pipeline_of(part.training, select=part.select)
        (row,) = compare(part.evaluated_on, {"part": pipeline}, bootstrap=0, gpu_id=gpu_id)
        points.append({"sentences": float(part.sentences), "f1": round(row.counts.f1, 2)})
    if whole is not None:
        points.append({"sentences": float(whole[0]), "f1": round(whole[1], 2)})
    return points


def next_gain(points: List[Point]) -> Optional[float]:
    """What twice as much gold may bring: points lie on a line over the doublings as far as can be told from so few, and
    gains shrink.

    points (List[Point]): The curve; the last point is all gold.
    RETURNS (Optional[float]): Points of F1; None if the curve has too few points.
    """
    if len(points) < 3:
        return None
    slope = numpy.polyfit([log2(point["sentences"]) for point in points], [point["f1"] for point in points], 1)[0]
    return SHRINK * max(0.0, float(slope))
