"""Where candidates are trained, and how: configs, corpora, settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

from ..errors import Errors, WeaknerError
from ..files import existing
from ..stages.runtime.training import BEST, LAST, Member, Training, config_differences, flat_config, train_all
from .layout import Corpora
from .rules import Settings

GOLD, MIXED = "crf_ner", "crf_ner.strong_weak"
NOISE_AWARE, FINETUNE = "needle.noise_aware", "needle.finetune"


@dataclass(frozen=True)
class Workshop:
    """What all trainings of a project have in common.

    corpora (Corpora): The corpora.
    models (Path): Folder for the pipelines.
    configs (Path): Folder of the configs, one file per recipe.
    settings (Settings): Steps and the like.
    size, lang, tokenizer: What the configs are for: see `fit`.
    seed (int): Seed of all trainings.
    processes (int): How many are trained at a time.
    gpu_id (int): -1 is the CPU.
    progress (bool): Show bars.
    """

    corpora: Corpora
    models: Path
    configs: Path
    settings: Settings
    size: str = "cnn"
    lang: str = "en"
    tokenizer: Optional[str] = None
    seed: int = 0
    processes: int = 1
    gpu_id: int = -1
    progress: bool = False

    def config(self, recipe: str) -> Path:
        """The config of a recipe.

        recipe (str): Its name.
        RETURNS (Path): The file.
        RAISES (WeaknerError): If there is none, or it is for another language, tokenizer or size of encoder.
        """
        path = existing(self.configs / f"{recipe}.cfg", f"make it with 'spacy weakner init config {recipe}'")
        differences = config_differences(path, lang=self.lang, tokenizer=self.tokenizer, size=self.size)
        if differences:
            raise WeaknerError(Errors.WK692.format(path=path, differences="; ".join(differences), recipe=recipe))
        return path

    def on_gold(self, gold: Path, dev: Path, output: Path) -> Training:
        """A training on gold alone.

        gold (Path): The gold.
        dev (Path): What is evaluated on.
        output (Path): Folder of the pipelines.
        RETURNS (Training): The training.
        """
        given = {"paths.train": gold, "paths.dev": dev}
        return self._training(GOLD, output, self.settings.gold_steps, given)

    def on_both(self, gold: Path, dev: Path, output: Path) -> Training:
        """A training on gold and weak labels; arguments as in `on_gold`."""
        given = {"paths.strong": gold, "paths.weak": self.corpora.weak, "paths.dev": dev}
        more = {
            "corpora.train.strong_share": self.settings.strong_share,
            "components.crf_ner.loss.negative_rate": self.settings.negative_rate,
        }
        return self._training(MIXED, output, self.settings.mixed_steps, given, more)

    def on_weak(self, output: Path, dev: Optional[Path] = None) -> Training:
        """A training on weak labels alone.

        output (Path): Folder of the pipelines.
        dev (Optional[Path]): Gold to choose a checkpoint by; None: nothing is known to evaluate on but the labels
            themselves.
        RETURNS (Training): The training.
        """
        given = {"paths.train": self.corpora.weak, "paths.dev": self.corpora.weak if dev is None else dev}
        more = {"components.crf_ner.loss.negative_rate": self.settings.negative_rate}
        return self._training(GOLD, output, self.settings.mixed_steps, given, more, once=dev is None)

    def stage(self, recipe: str, output: Path, steps: int, paths: Dict[str, Path]) -> Training:
        """A training of any recipe.

        recipe (str): Its name.
        output (Path): Folder of the pipelines.
        steps (int): Number of updates.
        paths (Dict[str, Path]): What its section `paths` is given.
        RETURNS (Training): The training.
        """
        return self._training(recipe, output, steps, {f"paths.{name}": path for name, path in paths.items()})

    def train(self, trainings: List[Training]) -> List[Member]:
        """Train several pipelines, some at a time; finished ones are skipped.

        trainings (List[Training]): The trainings.
        RETURNS (List[Member]): In the same order.
        """
        return train_all(trainings, processes=self.processes, gpu_id=self.gpu_id, progress=self.progress)

    def _training(
        self,
        recipe: str,
        output: Path,
        steps: int,
        paths: Dict[str, Path],
        more: Dict[str, Any] = {},  # noqa: B006
        *,
        once: bool = False,
    ) -> Training:
        overrides: Dict[str, Any] = {key: str(path) for key, path in paths.items()}
        overrides.update(more)
        overrides["training.max_steps"] = steps
        # All trainings take as long as was decided. (Evaluations also say how far one has come.)
        overrides["training.eval_frequency"] = steps if once else self.settings.frequency(steps)
        overrides["training.patience"] = 0
        overrides["system.seed"] = self.seed
        return Training(self.config(recipe), output, overrides)


def pipeline_of(training: Training, *, select: bool = True) -> Path:
    """The pipeline that a training leaves.

    training (Training): The training.
    select (bool): Whether a checkpoint was chosen.
    RETURNS (Path): Its folder.
    """
    return training.output / (BEST if select else LAST)


def words_per_update(config: Path) -> float:
    """How many words an update of a config takes in.

    config (Path): The config.
    RETURNS (float): Tokens.
    RAISES (WeaknerError): If its batches are not counted in words.
    """
    values = flat_config(config, {})
    size = values.get("training.batcher.size")
    kind = str(values.get("training.batcher.@batchers", ""))
    if not isinstance(size, (int, float)) or not ("by_words" in kind or "by_padded" in kind):
        raise WeaknerError(Errors.WK683.format(config=config, kind=kind or "none"))
    return float(size) * float(values.get("training.accumulate_gradient", 1))
