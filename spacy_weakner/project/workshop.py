"""Where candidates are trained, and how: configs, corpora, settings."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ..errors import Errors, WeaknerError
from ..files import existing
from ..runs.config import config_differences
from ..runs.training import BEST, LAST, Trained, Training, train_all
from .layout import Corpora
from .rules import LINEAR, LINEAR_STATIC, LINEAR_TEXTS, LINEARS, Settings, linear_beside

GOLD, VOTES = "crf_ner", "best.gold"
# Of L-BFGS on thousands of sentences; by then F1 does not change any more.
TEXT_ITERATIONS = 50


@dataclass(frozen=True)
class Workshop:
    """What all trainings of a project have in common.

    corpora (Corpora): The corpora.
    models (Path): Folder for the pipelines.
    configs (Path): Folder of the configs, by size and recipe.
    settings (Settings): Steps and the like.
    size, lang, tokenizer: What the configs are for: see `fit`.
    seed (int): Seed of all trainings.
    processes (int): How many are trained at a time.
    gpu_id (int): -1 is the CPU.
    progress (bool): Show bars.
    lists (Tuple[str, ...]): Sources whose labels heads read beside the words.
    """

    corpora: Corpora
    models: Path
    configs: Path
    settings: Settings
    size: str = LINEAR
    lang: str = "en"
    tokenizer: Optional[str] = None
    seed: int = 0
    processes: int = 1
    gpu_id: int = -1
    progress: bool = False
    lists: Tuple[str, ...] = ()

    def config(self, recipe: str, size: str) -> Path:
        """The config of a recipe.

        recipe (str): Its name.
        size (str): Size of the encoder.
        RETURNS (Path): The file.
        RAISES (WeaknerError): If there is none, or it is for another language, tokenizer or size of encoder.
        """
        path = self.configs / config_name(recipe, size)
        file_ = shlex.quote(str(path))
        existing(path, f"make it with 'spacy weakner init config {recipe} {file_} --lang {self.lang} --size {size}'")
        differences = config_differences(path, lang=self.lang, tokenizer=self.tokenizer, size=size)
        if differences:
            raise WeaknerError(
                Errors.WK692.format(path=path, file=file_, differences="; ".join(differences), recipe=recipe)
            )
        return path

    def on_gold(self, gold: Path, dev: Path, output: Path) -> Training:
        """A training of a linear CRF on gold alone: what the gold is worth by itself.

        gold (Path): The gold.
        dev (Path): What is evaluated on.
        output (Path): Folder of the pipelines.
        RETURNS (Training): The training.
        """
        return self._training(GOLD, linear_beside(self.size), output, 0, {"paths.train": gold, "paths.dev": dev})

    def with_lists(self, gold: Path, dev: Path, output: Path, *, size: str) -> Training:
        """A training on gold of a head that reads what the term lists say beside the words.

        gold, dev (Path): As in `on_gold`, labelled by the lists.
        output (Path): Folder of the pipelines.
        size (str): Size of the encoder.
        RETURNS (Training): The training.
        """
        given = {"paths.train": gold, "paths.dev": dev}
        steps = 0 if size in LINEARS else self.settings.gold_steps
        return self._training(VOTES, size, output, steps, given, self._votes())

    def on_weak(self, output: Path, dev: Optional[Path] = None) -> Training:
        """A training on weak labels alone.

        output (Path): Folder of the pipelines.
        dev (Optional[Path]): Gold to choose a checkpoint by; None: nothing is known to evaluate on but the labels
            themselves.
        RETURNS (Training): The training.
        """
        given = {"paths.train": self.corpora.weak, "paths.dev": self.corpora.weak if dev is None else dev}
        more: Dict[str, Any] = {"components.crf_ner.loss.negative_rate": self.settings.negative_rate}
        if self.size in LINEARS:
            more["corpora.train.limit"] = LINEAR_TEXTS
        return self._training(GOLD, self.size, output, self.settings.text_steps, given, more, once=dev is None)

    def _votes(self) -> Dict[str, Any]:
        keys = ("components.crf_ner.model.votes.sources", "corpora.train.sources", "corpora.dev.sources")
        return {key: list(self.lists) for key in keys}

    def train(self, trainings: List[Training]) -> List[Trained]:
        """Train several pipelines, some at a time; finished ones are skipped.

        trainings (List[Training]): The trainings.
        RETURNS (List[Trained]): In the same order.
        """
        return train_all(trainings, processes=self.processes, gpu_id=self.gpu_id, desc="fit", progress=self.progress)

    def _training(
        self,
        recipe: str,
        size: str,
        output: Path,
        steps: int,
        paths: Dict[str, Path],
        more: Dict[str, Any] = {},  # noqa: B006
        *,
        once: bool = False,
    ) -> Training:
        overrides: Dict[str, Any] = {key: str(path) for key, path in paths.items()}
        overrides.update(more)
        if size in LINEARS:
            # Trained until it converges or, on text, nearly.
            if steps:
                overrides["initialize.after_init.max_iterations"] = TEXT_ITERATIONS
        else:
            overrides["training.max_steps"] = steps
            # All trainings take as long as was decided. (Evaluations also say how far one has come.)
            overrides["training.eval_frequency"] = steps if once else self.settings.frequency(steps)
        if size == LINEAR_STATIC:
            overrides["paths.pieces"] = str(self.corpora.pieces)
        overrides["training.patience"] = 0
        overrides["system.seed"] = self.seed
        return Training(self.config(recipe, size), output, overrides)


def config_name(recipe: str, size: str) -> str:
    """Where the config of a recipe stands in the folder of configs.

    recipe (str): The recipe.
    size (str): Size of the encoder.
    RETURNS (str): A relative path.
    """
    return f"{size}/{recipe}.cfg"


def pipeline_of(training: Training, *, select: bool = True) -> Path:
    """The pipeline that a training leaves.

    training (Training): The training.
    select (bool): Whether a checkpoint was chosen.
    RETURNS (Path): Its folder.
    """
    return training.output / (BEST if select else LAST)
