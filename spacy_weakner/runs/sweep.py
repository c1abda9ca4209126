"""Trains one config with every combination of some settings, and keeps what is best on dev."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..errors import Errors, WeaknerError
from ..files import atomic_path, write_text
from ..runtime.hashes import hash_text
from ..runtime.lock import holding
from .config_values import flat_config
from .training import BEST, Member
from .trainings import Training, train_all

RESULTS = "sweep.json"
_LONGEST = 100  # letters of a folder's name


class Trial(NamedTuple):
    """One combination.

    settings (Dict[str, Any]): Its values.
    member (Member): What was trained with them.
    """

    settings: Dict[str, Any]
    member: Member


class SweepReport(NamedTuple):
    """What was found.

    trials (List[Trial]): All combinations, in the order of the grid.
    best (Trial): The one with the highest score on dev; of equal ones the first.
    model (Path): Copy of its pipeline.
    """

    trials: List[Trial]
    best: Trial
    model: Path


@holding("output")
def sweep(
    config: Path,
    output: Path,
    grid: Mapping[str, Sequence[Any]],
    *,
    overrides: Optional[Mapping[str, Any]] = None,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> SweepReport:
    """Train every combination of a grid, each in a process of its own; finished ones are skipped.

    config (Path): The config.
    output (Path): Folder: gets one folder per combination, the results as `sweep.json`, and a copy of the best pipeline
        as `model-best`.
    grid (Mapping[str, Sequence[Any]]): Values to try, by dotted name in the config.
    overrides (Optional[Mapping[str, Any]]): Values of the config that are the same for all.
    processes (int): How many are trained at a time, see `train_all`.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Address of a Ray cluster that trains them, see there.
    progress (bool): Show how far it has come.
    RETURNS (SweepReport): The results.
    RAISES (WeaknerError): If the grid is empty or names what the config does not have, the output holds other results,
        a training fails, or none was ever evaluated on dev.
    """
    output = Path(output)
    if not grid or not all(grid.values()):
        raise WeaknerError(Errors.WK005.format(setting="grid", value=dict(grid), expected="SETTING=VALUE,VALUE,..."))
    if (output / BEST).exists() and not (output / RESULTS).exists():
        raise WeaknerError(Errors.WK368.format(path=output / BEST))
    known = flat_config(config, {})
    for key in grid:
        if key not in known:
            raise WeaknerError(Errors.WK366.format(config=config, key=key))
    # A value that is named twice is one.
    combinations = []
    for values in itertools.product(*grid.values()):
        own = dict(zip(grid, values, strict=True))
        if own not in combinations:
            combinations.append(own)
    trainings = [Training(config, output / _name(own), {**(overrides or {}), **own}) for own in combinations]
    members = train_all(trainings, processes=processes, gpu_id=gpu_id, ray=ray, desc="sweep", progress=progress)
    trials = [Trial(settings, member) for settings, member in zip(combinations, members, strict=True)]
    scored = [trial for trial in trials if trial.member.score is not None]
    if not scored:
        raise WeaknerError(Errors.WK362.format(output=output))
    best = max(scored, key=lambda trial: trial.member.score or 0.0)
    rows = [{"settings": t.settings, "score": t.member.score, "best": t is best} for t in trials]
    with atomic_path(output / BEST) as temporary:
        shutil.copytree(best.member.output / BEST, temporary)
    write_text(output / RESULTS, json.dumps(rows, indent=2) + "\n")
    return SweepReport(trials, best, output / BEST)


def _name(settings: Mapping[str, Any]) -> str:
    # Last parts of the names are enough where they differ.
    short = {key: key.rsplit(".", 1)[-1] for key in settings}
    names = short if len(set(short.values())) == len(short) else {key: key for key in settings}
    text = ",".join(f"{names[key]}={value}" for key, value in settings.items())
    name = "".join(c if c.isalnum() or c in "=,._-" else "_" for c in text)
    # Different settings never share a folder.
    return name if name == text and len(name) <= _LONGEST else f"{name[:_LONGEST]}-{hash_text(text)[:8]}"
