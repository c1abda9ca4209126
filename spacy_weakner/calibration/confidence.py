"""Estimates, on gold that models were not trained on, the reliability of the models' scores and of weak sources
(NEEDLE)."""

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus.docbin import read_docs
from ..corpus.entities import trim_whitespace
from ..corpus.gold import find_gold
from ..corpus.overlaps import highest_ranked
from ..corpus.tags import IntTags
from ..corpus.weak import group_entities, weak_group, weak_sources
from ..errors import Errors, WeaknerError, check_choice
from ..needle.binning import histogram, isotonic
from ..needle.completion import RULES, apply_rule
from ..needle.confidence import SCORES, UNITS, Calibration, score_per_word
from ..progress import Progress
from ..runtime.devices import on_device
from ..runtime.predictions import TagPredictor
from ..scores import count_matches
from ..ty import BoolMask, Entity

METHODS = ("histogram", "isotonic")
BATCH_SIZE = 256
# Maximum number of bins of the histogram, and minimum number of sentences in each.
_BINS, _PER_BIN = 50, 10


class ConfidenceReport(NamedTuple):
    """The calibration, and its data."""

    calibration: Calibration  # from scores to probabilities
    sentences: int  # sentences used for calibration
    left_out: int  # sentences without tokens, or without complete gold
    accuracy: float  # share of the sentences or tokens (by `unit`) that the models got right


def calibrate_confidence(
    folds: Sequence[Tuple[Union[str, Path], Path]],
    *,
    component: Optional[str] = None,
    score: str = "viterbi",
    unit: str = "sentence",
    method: str = "histogram",
    gpu_id: int = -1,
    progress: bool = False,
) -> ConfidenceReport:
    """Estimate the probability that a model's best tag sequence is right by its score (Jiang et al. 2021, Appendix A).

    The sentences must be ones that the model was not trained on. If there is little gold, give several models, each
    with the part of the gold that it was not trained on (see `train_folds`): all sentences are then used together.
    These models are trained on less gold than the final one, so the probabilities tend to be too low; and Viterbi
    scores of different models differ in scale, while log-probabilities do not.

    folds (Sequence[Tuple[Union[str, Path], Path]]): Pipelines, each with a corpus of gold that it was not trained on,
        in `doc.ents` or in the span group "gold". If the corpus has labels of weak sources, they show which rule of
        `complete` makes the best labels. Of overlapping entities of several sources, the one that most sources propose
        is used, however `aggregate` combines sources.
    component (Optional[str]): Name of the component; None: the last one that scores tag sequences.
    score (str): "viterbi" or "log_probability", each per word.
    unit (str): "sentence": the share of sentences whose tags are all right (the paper); "token": the share of right
        tokens in a sentence, averaged over sentences.
    method (str): "histogram" (the paper) or "isotonic".
    gpu_id (int): GPU for the predictions; -1 is the CPU.
    progress (bool): Show progress.
    RETURNS (ConfidenceReport): The calibration.
    RAISES (WeaknerError): For missing input, invalid settings, no complete gold, or non-finite scores.
    """
    for setting, value, choices in (("score", score, SCORES), ("unit", unit, UNITS), ("method", method, METHODS)):
        check_choice(setting, value, choices)
    if not folds:
        raise WeaknerError(Errors.WK005.format(setting="folds", value="()", expected="at least one MODEL=CORPUS"))
    counts = _RuleCounts(score, unit)
    with on_device(gpu_id):
        for model, corpus in folds:
            predictor = TagPredictor(model, component)
            docs = read_docs(Path(corpus), predictor.nlp.vocab)
            for batch in minibatch(Progress(docs, desc="calibrate", unit="doc", enabled=progress), BATCH_SIZE):
                counts.add(batch, predictor)
    if not counts.scores:
        path, cure = ", ".join(str(corpus) for _, corpus in folds), "Give held-out gold"
        raise WeaknerError(Errors.WK407.format(path=path, what="sentence with complete gold", cure=cure))
    scores, hits = numpy.asarray(counts.scores), numpy.asarray(counts.hits)
    steps = isotonic(scores, hits) if method == "isotonic" else histogram(scores, hits, _BINS, _PER_BIN)
    calibration = Calibration(score, unit, steps, counts.rules, counts.given)
    return ConfidenceReport(calibration, len(scores), counts.left_out, float(numpy.mean(hits)))


class _RuleCounts:
    """Scores of models on gold, and the results of models and rules."""

    def __init__(self, score: str, unit: str) -> None:
        self.score = score
        self.unit = unit
        self.scores: List[float] = []
        self.hits: List[float] = []
        self._given: List[float] = []
        self.left_out = 0
        self._pairs: Dict[str, List[Tuple[List[Entity], List[Entity]]]] = {rule: [] for rule in RULES}

    @property
    def rules(self) -> Dict[str, float]:
        """F1 of the labels made by each rule; empty if no source has labeled any sentence."""
        if not self._given:
            return {}
        return {rule: count_matches(pairs)[0].f1 for rule, pairs in self._pairs.items()}

    @property
    def given(self) -> Optional[float]:
        """The probability that unchanged weak labels are right."""
        return float(numpy.mean(self._given)) if self._given else None

    def add(self, docs: List[Doc], predictor: TagPredictor) -> None:
        pairs = [(doc, find_gold(doc)) for doc in docs]
        usable = [(doc, gold) for doc, gold in pairs if len(doc) and gold is not None and not gold.missing]
        self.left_out += len(docs) - len(usable)
        for (doc, gold), path in zip(usable, predictor.paths([doc for doc, _ in usable]), strict=True):
            weak = {source: group_entities(doc, weak_group(source)) for source in weak_sources(doc)}
            scheme = predictor.scheme([*gold.entities, *chain.from_iterable(weak.values())])
            tags = scheme.encode(sorted(gold.entities), numpy.ones(len(doc), dtype=bool))
            value = score_per_word(path, self.score)
            predicted = scheme.tag_ids(path.tags)
            if weak:  # otherwise no source has labeled it
                together = highest_ranked(Counter(chain.from_iterable(weak.values())))
                given: IntTags = scheme.encode(together, numpy.ones(len(doc), dtype=bool))
                self._given.append(self._share(given == tags))
                for rule, made in self._pairs.items():
                    found = trim_whitespace(doc, scheme.decode(apply_rule(given, predicted, rule).tolist()))
                    made.append((sorted(gold.entities), found))
            self.scores.append(value)
            self.hits.append(self._share(predicted == tags))

    def _share(self, same: BoolMask) -> float:
        return float(same.all() if self.unit == "sentence" else same.mean())
