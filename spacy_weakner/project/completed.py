"""NEEDLE as one candidate: its stages, from the pipeline that was trained on the gold alone (Jiang et al. 2021)."""

from pathlib import Path

from ..stages.calibrate import calibrate
from ..stages.complete import complete
from ..stages.crossfit import crossfit, read_folds
from .folds import FOLDS
from .rules import CERTAIN_PRECISION, Facts
from .workshop import FINETUNE, GOLD, NOISE_AWARE, Workshop, pipeline_of


def train_needle(workshop: Workshop, initial: Path, facts: Facts) -> Path:
    """Complete the weak labels, train aware of their noise, and fine-tune on gold.

    workshop (Workshop): Where it is trained.
    initial (Path): The pipeline that was trained on the gold alone.
    facts (Facts): What was found.
    RETURNS (Path): The pipeline.
    """
    corpora, folder, settings = workshop.corpora, workshop.models / "needle", workshop.settings
    held_out = {
        "training.max_steps": settings.gold_steps,
        "training.eval_frequency": settings.gold_steps,
        "system.seed": workshop.seed,
    }
    crossfit(
        workshop.config(GOLD),
        corpora.gold_labelled,
        folder / "folds",
        folds=FOLDS,
        overrides=held_out,
        seed=workshop.seed,
        processes=workshop.processes,
        gpu_id=workshop.gpu_id,
        progress=workshop.progress,
    )
    calibration = folder / "calibration.json"
    pairs = read_folds(folder / "folds")
    calibrate(calibration, pairs, score="log_probability", method="isotonic", gpu_id=workshop.gpu_id)
    # Labels that are often wrong are trusted as far as they were right on gold.
    doubtful = facts.precision is not None and facts.precision < CERTAIN_PRECISION
    complete(
        corpora.weak,
        folder / "completed",
        initial,
        calibration=calibration,
        estimate_accuracy=doubtful,
        gpu_id=workshop.gpu_id,
        progress=workshop.progress,
    )
    paths = {"strong": corpora.gold, "weak": folder / "completed", "dev": corpora.dev, "initial": initial}
    aware = workshop.stage(NOISE_AWARE, folder / "noise-aware", settings.mixed_steps, paths)
    workshop.train([aware])
    paths = {"train": corpora.gold, "dev": corpora.dev, "initial": pipeline_of(aware, select=False)}
    tuned = workshop.stage(FINETUNE, folder / "finetuned", settings.gold_steps, paths)
    workshop.train([tuned])
    return pipeline_of(tuned)
