"""Trains one pipeline, for as many passes over its corpus as are wanted."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from .config_values import corpus_of
from .length import check_passes, updates_of
from .training import Member
from .trainings import Training, train_all


def train(
    config: Path,
    output: Path,
    *,
    passes: Optional[float] = None,
    overrides: Optional[Mapping[str, Any]] = None,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> Member:
    """Train a pipeline as `spacy train` does, in a process of its own. A finished one is not trained again, and one
    that is interrupted leaves nothing.

    config (Path): Config of the training.
    output (Path): Folder for `model-best` and `model-last`.
    passes (Optional[float]): How often it reads the corpus `paths.train`: its updates follow from that, and it is
        evaluated once, at the end, unless `training.eval_frequency` is given. None: as long as the config says.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Address of a Ray cluster that trains it, see `train_all`.
    progress (bool): Show how far it has come.
    RETURNS (Member): The result.
    RAISES (WeaknerError): For missing input and unusable settings, and if the training fails.
    """
    values: Dict[str, Any] = dict(overrides or {})
    if passes is not None:
        check_passes(passes, values)
        values.update(updates_of(config, corpus_of(config, values), passes, values))
    (member,) = train_all([Training(Path(config), Path(output), values)], gpu_id=gpu_id, ray=ray, progress=progress)
    return member
