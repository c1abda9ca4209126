"""Probabilities of a head alone that mean what they say."""

import math
from pathlib import Path
from typing import Iterable, List, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ...calibration.calibrate import make_complete
from ...calibration.fitting import find_temperature
from ...corpus.docbin import read_docs
from .assembling import predict_docs


class Judged(NamedTuple):
    """What a pipeline finds in gold that it has not seen.

    nlp (Language): The pipeline.
    gold (List[Doc]): The gold.
    found (List[Doc]): The same sentences, as the pipeline leaves them.
    """

    nlp: Language
    gold: List[Doc]
    found: List[Doc]


def judge(nlp: Language, gold: Path) -> Judged:
    """Let a pipeline find what is in gold.

    nlp (Language): The pipeline.
    gold (Path): The gold, with what weak sources say of it.
    RETURNS (Judged): What it finds.
    """
    docs = list(read_docs(gold, nlp.vocab))
    return Judged(nlp, docs, predict_docs(nlp, docs))


def calibrate(nlp: Language, name: str, judged: Iterable[Judged]) -> None:
    """Give a head the temperature under which gold that it, or its likes, have not seen is most likely (Guo et al.
    2017), and which is log-normal around 1 without any. What it finds stays the same.

    nlp (Language): Its pipeline.
    name (str): Its name in all pipelines.
    judged (Iterable[Judged]): The gold, each part with a pipeline that was not trained on it.
    """
    parts = []
    for asked, gold, found in judged:
        head = asked.get_pipe(name)
        known = set(head.labels)  # type: ignore[attr-defined]
        examples: List[Example] = [
            Example(own, doc)
            for own, doc in zip(found, gold, strict=True)
            if make_complete(doc) and known.issuperset(ent.label_ for ent in doc.ents)
        ]
        if examples:
            parts.append((len(examples), head.held_out_loss(examples)))  # type: ignore[attr-defined]

    def loss(temperature: float) -> float:
        # Where everything is right, no temperature would be low enough: it is taken for about 1 until gold says more.
        return sum(n * mean(temperature) for n, mean in parts) + 0.5 * math.log(temperature) ** 2

    if parts:
        nlp.get_pipe(name).set_temperature(find_temperature(loss))  # type: ignore[attr-defined]
