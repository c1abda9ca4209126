"""What all trainings of a project have in common, and the trainings themselves."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..corpus.language import CorpusLanguage
from ..errors import Errors, WeaknerError
from ..files import existing
from ..runs.config import config_differences
from ..runs.training import BEST, LAST, Trained, Training, train_all
from ..training.augmenting import CaseCopies
from .layout import Corpora
from .rules import LINEAR, LINEAR_STATIC, LINEAR_TEXTS, LINEARS, Settings, linear_beside

# Recipes: a head on gold (or weak labels) alone, and one with the matches of the lists as features.
ALONE, WITH_LISTS = "crf_ner", "best.gold"
# Iterations of L-BFGS on thousands of sentences of text, after which F1 does not change any more.
TEXT_ITERATIONS = 50
# Half as many sentences of weakly labeled text are repeated in other case as of gold: with as many of
# them the head lost 2.6 points of F1 on text as it is (CoNLL-2003, dev).
TEXT_COPIES = 0.5


@dataclass(frozen=True)
class TrainingContext:
    """What all trainings of a project have in common.

    models (Path): Folder for the pipelines.
    configs (Path): Folder of the configs, `<size>/<recipe>.cfg` each.
    lists (Tuple[str, ...]): Sources whose matches are features of heads.
    case_lists (Tuple[Path, ...]): Pipelines of the lists that look up their matches in copies of gold in other case.
    vectors (Optional[Path]): Word vectors of the text, for linear heads.
    For the other fields see `fit`.
    """

    corpora: Corpora
    models: Path
    configs: Path
    settings: Settings
    language: CorpusLanguage
    size: str = LINEAR
    seed: int = 0
    processes: int = 1
    gpu_id: int = -1
    progress: bool = False
    lists: Tuple[str, ...] = ()
    lower_case: float = 0.0
    upper_case: float = 0.0
    case_lists: Tuple[Path, ...] = ()
    vectors: Optional[Path] = None

    def config(self, recipe: str, size: str) -> Path:
        """The config of a recipe, checked for language, tokenizer and size."""
        path = self.configs / config_name(recipe, size)
        file_ = shlex.quote(str(path))
        options = f"--lang {self.language.lang} --tokenizer {self.language.tokenizer} --size {size}"
        existing(path, f"make it with 'spacy weakner init config {recipe} {file_} {options}'")
        differences = config_differences(path, **self.language._asdict(), size=size)
        if differences:
            raise WeaknerError(
                Errors.WK692.format(path=path, file=file_, differences="; ".join(differences), recipe=recipe)
            )
        return path

    def on_gold(self, gold: Path, dev: Path, output: Path) -> Training:
        """A linear CRF on gold alone."""
        return self._training(
            ALONE,
            linear_beside(self.size),
            output,
            {"paths.train": str(gold), "paths.dev": str(dev), **self._case_copies()},
        )

    def with_lists(self, gold: Path, dev: Path, output: Path, *, size: str) -> Training:
        """A head on gold with the matches of the term lists as features; both corpora are labeled by the lists."""
        keys = ("components.crf_ner.model.source_features.sources", "corpora.train.sources", "corpora.dev.sources")
        sources = {key: list(self.lists) for key in keys}
        return self._training(
            WITH_LISTS,
            size,
            output,
            {"paths.train": str(gold), "paths.dev": str(dev), **sources, **self._case_copies(self.case_lists)},
            self.settings.gold_steps,
        )

    def on_weak(self, output: Path, dev: Optional[Path] = None) -> Training:
        """A head on the weak labels of the text alone; without dev it is evaluated once, on these labels."""
        weak = self.corpora.weak
        overrides: Dict[str, Any] = {"paths.train": str(weak), "paths.dev": str(dev or weak)}
        overrides.update(self._case_copies(share=TEXT_COPIES))
        overrides["components.crf_ner.loss.negative_rate"] = self.settings.negative_rate
        if self.size in LINEARS:
            overrides["corpora.train.limit"] = LINEAR_TEXTS
            overrides["initialize.after_init.max_iterations"] = TEXT_ITERATIONS
        return self._training(ALONE, self.size, output, overrides, self.settings.text_steps, once=dev is None)

    def train(self, trainings: Sequence[Training]) -> List[Trained]:
        """Train, several at a time; finished trainings are skipped."""
        return train_all(
            trainings, processes=self.processes, gpu_id=self.gpu_id, desc="fit 1/3: train", progress=self.progress
        )

    @property
    def case_copies(self) -> CaseCopies:
        """Makes copies of gold in other case, with the matches of the lists."""
        return CaseCopies(self.lower_case, self.upper_case, self.case_lists)

    def _case_copies(self, lists: Sequence[Path] = (), share: float = 1.0) -> Dict[str, Any]:
        if not self.lower_case and not self.upper_case:
            return {}
        shares = {"lower": share * self.lower_case, "upper": share * self.upper_case}
        settings = {"@augmenters": "spacy_weakner.CaseCopies.v1", **shares, "lists": [str(path) for path in lists]}
        return {"corpora.train.augmenter": settings}

    def _training(
        self, recipe: str, size: str, output: Path, overrides: Dict[str, Any], steps: int = 0, *, once: bool = False
    ) -> Training:
        overrides = {**overrides, "training.patience": 0, "system.seed": self.seed}
        if size not in LINEARS:  # which train until they converge
            overrides["training.max_steps"] = steps
            # Evaluations also tell how far a training has come.
            overrides["training.eval_frequency"] = steps if once else self.settings.frequency(steps)
        if size == LINEAR and self.vectors is not None:
            overrides["initialize.vectors"] = str(self.vectors)
        if size == LINEAR_STATIC:
            overrides["paths.pieces"] = str(self.corpora.pieces)
        return Training(self.config(recipe, size), output, overrides)


def config_name(recipe: str, size: str) -> str:
    """Path of a recipe's config in the folder of configs."""
    return f"{size}/{recipe}.cfg"


def pipeline_of(training: Training, *, select: bool) -> Path:
    """The pipeline that a training leaves: its best checkpoint, or its last."""
    return training.output / (BEST if select else LAST)
