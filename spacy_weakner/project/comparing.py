"""The comparison of candidates on one corpus: dev, or the folds of the gold, each predicted by what did not see it."""

import time
from itertools import compress, islice
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..corpus.docbin import bare_copy, read_docs, write_docs
from ..evaluation.candidates import Candidate, Predictions
from ..evaluation.compare import SAMPLES, CandidateScores, compare
from ..files import folder_size
from ..pipelines import load_pipeline
from ..progress import Progress
from ..runs.groups import FoldFiles
from .assembling import last_steps
from .combine import Combination, CombinedFold, Predicted, TrainedHead, save_alone, with_candidates
from .context import TrainingContext
from .folds import all_folds
from .precision import Pairs, Precision, fit_precision, measure_tradeoff
from .rules import COMBINED, FOLDS
from .selection import PREVIOUS, Cost, better_student, choose_fast

# Number of sentences on which the speed of a candidate is measured.
_MEASURED = 500


class Comparison:
    """Candidates, and what they predict.

    context (TrainingContext): The settings of the project.
    sources (Mapping[str, Path]): Pipelines of the term lists, by source.
    folds (Sequence[FoldFiles]): The folds of the gold; with dev, perhaps none.
    dev (Optional[Path]): The corpus on which candidates are compared; None: the folds.
    """

    def __init__(
        self, context: TrainingContext, sources: Mapping[str, Path], folds: Sequence[FoldFiles], dev: Optional[Path]
    ) -> None:
        self.context = context
        self.sources = sources
        self.folds = folds
        self.dev = dev
        self.corpus = dev or all_folds(context.models / "folds")
        self.pipelines: Dict[str, Path] = {}
        self.scored: Dict[str, List[Predicted]] = {}  # by head: on the corpus
        self.judged: List[Tuple[Doc, Doc]] = []  # the gold, and what the combination of the other folds decides
        self.precision: Optional[Precision] = None  # of the combination, if one is wanted
        self.tradeoff: List[List[str]] = []
        self._on_folds: Dict[str, List[Predicted]] = {}
        self.predicted: Dict[str, Path] = {}

    def add(self, name: str, pipeline: Path, docs: Optional[Iterable[Doc]] = None) -> None:
        """Add a candidate with its predictions. If none are given, predict with `pipeline`, which used no gold."""
        self.pipelines[name] = pipeline
        self.predicted[name] = self.context.models / "folds" / f"predicted-{len(self.pipelines)}.spacy"
        found = (doc for _, doc in Predictions(Candidate(name, pipeline), self.corpus)) if docs is None else docs
        write_docs(self.predicted[name], found)

    def add_head(self, head: TrainedHead) -> None:
        """Predict the folds and dev with a head, each once, and add it as a candidate."""
        paths = zip(head.folds, self.folds, strict=False)
        cases = self.context.cases if head.is_combined else None
        language = self.context.language
        held_out = [head.predict(path, fold.held_out, language, cases) for path, fold in paths]
        scored = held_out if self.dev is None else [head.predict(head.whole, self.dev, language)]
        alone = save_alone(head, self.sources, scored, self.context.models / f"{head.name}-alone", language)
        finish = last_steps(self.sources if head.reads_lists else {}, self.sources)
        self.add(head.title, alone, [finish(doc.copy()) for part in scored for doc in part.docs])
        # Drop the pipelines, whose models may be large.
        self._on_folds[head.name] = [part._replace(nlp=None) for part in held_out]
        self.scored[head.name] = [part._replace(nlp=None) for part in scored]

    def combine(self, heads: Sequence[TrainedHead]) -> Combination:
        """Combine lists and heads that were added. The folds must exist."""
        folds = [
            with_candidates(heads, [self._on_folds[head.name][n] for head in heads]) for n in range(len(self.folds))
        ]
        return Combination(self.sources, heads, folds, self.context.language)

    def add_combination(self, combination: Combination, name: str = COMBINED) -> None:
        """Add a combination as a candidate."""
        heads, folds = combination.heads, combination.folds
        steps = Progress(range(len(folds)), desc="fit 4/4: combine", unit="fold", enabled=self.context.progress)
        decided = [doc for n in steps for doc in combination.decide_fold(n)]
        pairs = judged = list(zip((doc for fold in folds for doc in fold.docs), decided, strict=True))
        if self.dev is not None:
            gold = with_candidates(heads, [self.scored[head.name][0] for head in heads]).docs
            pairs = list(zip(gold, combination.decide(gold), strict=True))
        if name == COMBINED:
            if self.context.precision is not None:
                pairs = self._fit_precision(combination, pairs, self.context.precision)
            self.judged, self.tradeoff = judged, measure_tradeoff(pairs)
        self.add(name, combination.save(self.context.folder_of(name)), [doc for _, doc in pairs])

    def _fit_precision(self, combination: Combination, pairs: Pairs, wanted: float) -> List[Tuple[Doc, Doc]]:
        """Fit the thresholds of a combination, and return its predictions under thresholds fitted on other gold."""
        combiner = combination.combiner()
        part_of = [n for n, fold in enumerate(combination.folds) for _ in fold.docs]
        if self.dev is not None:
            part_of = CombinedFold([gold for gold, _ in pairs]).deal(FOLDS)
        parts = [[pair for pair, its in zip(pairs, part_of, strict=True) if its == n] for n in range(max(part_of) + 1)]

        def decide(n: int, thresholds: Mapping[str, float]) -> List[Doc]:
            if self.dev is None:
                return combination.decide_fold(n, thresholds)
            return combination.decide([gold for gold, _ in parts[n]], combiner)

        self.precision, decided = fit_precision(combiner, parts, wanted, decide)
        # In the order of the corpus.
        found = {n: iter(decided[sum(map(len, parts[:n])) :]) for n in range(len(parts))}
        return [next(found[n]) for n in part_of]

    def score(self, baseline: Optional[str]) -> List[CandidateScores]:
        """Score all candidates, and their differences from the baseline; None: from the best."""
        return compare(self.corpus, self.predicted, bootstrap=SAMPLES, baseline=baseline, seed=self.context.seed)

    def select_fast(self, slow: Set[str]) -> Tuple[str, List[CandidateScores]]:
        """Select a candidate for speed: of the candidates without a Transformer, the better student, unless another is
        clearly better; without a student, the one with the best F1. `slow` are those with a Transformer. Return also
        the scores of all, with their differences from it."""
        rows = self.score(None)
        usual = better_student(rows)
        if usual is not None:
            rows = self.score(usual)
        best = choose_fast(rows, slow, usual)
        return best, rows if best == usual else self.score(best)

    def score_previous(self, pipeline: Path, docs: Sequence[Optional[Doc]], best: str) -> List[CandidateScores]:
        """Add the previous package with its predictions; None: a sentence is left out. Score it, and its difference
        from the best candidate on the same sentences."""
        vocab, known = Vocab(), [doc for doc in docs if doc is not None]
        kept = [doc is not None for doc in docs]
        if all(kept):
            self.add(PREVIOUS, pipeline, known)
        self.pipelines[PREVIOUS] = pipeline
        gold, new = (list(compress(read_docs(path, vocab), kept)) for path in (self.corpus, self.predicted[best]))
        found = {best: new, PREVIOUS: known}
        rows = compare(gold, found, bootstrap=SAMPLES, baseline=best, seed=self.context.seed)
        return [row for row in rows if row.name == PREVIOUS]

    def cost(self, name: str) -> Cost:
        """Measure a candidate's speed, on some sentences of the corpus, and its size."""
        path = self.pipelines[name]
        nlp = load_pipeline(path)
        docs = [bare_copy(doc, nlp.vocab) for doc in islice(read_docs(self.corpus, Vocab()), _MEASURED)]
        nlp(docs[0].copy())  # the first call also loads
        start = time.perf_counter()
        words = sum(map(len, nlp.pipe(docs)))
        speed = words / (time.perf_counter() - start)
        return Cost(words_per_second=round(speed), megabytes=round(folder_size(path) / 1e6, 1))
