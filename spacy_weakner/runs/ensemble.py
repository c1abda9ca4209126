"""Trains one config with several seeds (RoSTER); `relabel soft` averages what the pipelines predict."""

import json
from pathlib import Path
from typing import Any, List, Mapping, Optional

from ..errors import Errors, WeaknerError, check_range
from ..files import check_output, write_text
from ..runtime.lock import holding
from .config_values import corpus_of, flat_config
from .length import check_passes, updates_of
from .members import INDEX
from .training import LAST, Member
from .trainings import Training, check_trainings, train_all

SEEDS = ("system.seed", "training.seed")


@holding("output")
def ensemble(
    config: Path,
    output: Path,
    *,
    members: int = 5,
    passes: Optional[float] = None,
    processes: int = 1,
    overrides: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    progress: bool = False,
) -> List[Member]:
    """Train pipelines that differ by their seed alone.

    There need be no gold, so no checkpoint is chosen: the last one counts, and trainings do not end early. Where the
    config names no `paths.dev`, they are evaluated on the corpus itself, which says little; a high
    `training.eval_frequency` saves that time.

    config (Path): Config of the training.
    output (Path): Folder; it gets one folder `member-<n>` per pipeline. Finished ones are skipped.
    members (int): Number of pipelines.
    passes (Optional[float]): How often each of them reads the corpus `paths.train`: its updates follow from that, and
        it is evaluated once, at the end, unless `training.eval_frequency` is given. Labels at face value are
        over-fitted where a small corpus is read as often as a large one needs. None: as long as the config says.
    processes (int): How many are trained at a time. On the CPU they share its cores: OMP_NUM_THREADS says how many
        threads each has.
    overrides (Optional[Mapping[str, Any]]): Values of the config by dotted name.
    seed (int): Seed of the first one; the others count on from there.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Address of a Ray cluster that trains them, see `train_all`.
    progress (bool): Show how far it has come.
    RETURNS (List[Member]): The pipelines; each says whether it was finished already.
    RAISES (WeaknerError): For missing input and unusable settings, or if a training fails.
    """
    check_range("members", members, 1, None)
    check_trainings(processes, ray)
    values = dict(overrides or {})
    for key in SEEDS:
        if key in values:
            raise WeaknerError(Errors.WK431.format(key=key))
    if passes is not None:
        check_passes(passes, values)
    output, corpus = Path(output), corpus_of(config, values)
    check_output([corpus], [output])
    if not flat_config(config, values).get("paths.dev"):
        values["paths.dev"] = str(corpus)
    # Nor is the end of a training chosen by dev: all members learn for the same time.
    values = {"training.patience": 0, **values}
    if passes is not None:
        values.update(updates_of(config, corpus, passes, values))
    # Until all is done there are no members: those of two runs do not belong together.
    (output / INDEX).unlink(missing_ok=True)
    trained = train_all(
        [
            Training(config, output / f"member-{n}", {**values, **dict.fromkeys(SEEDS, seed + n)})
            for n in range(members)
        ],
        processes=processes,
        gpu_id=gpu_id,
        ray=ray,
        desc="ensemble",
        progress=progress,
    )
    names = [(member.output / LAST).relative_to(output).as_posix() for member in trained]
    write_text(output / INDEX, json.dumps(names, indent=2) + "\n")
    return trained
