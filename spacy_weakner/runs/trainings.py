"""Trains several pipelines: on this machine, as many at a time as are wanted, or on a cluster."""

import json
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from ..errors import Errors, WeaknerError, check_range
from ..files import existing
from ..progress import Progress
from ..runtime.cluster import Work, connected, load_ray
from ..runtime.lock import locked
from ..scratch import remove_leftovers, scratch_folder
from .trainer import Trainers
from .training import Member, train_held, train_member


class Training(NamedTuple):
    """What `train_all` is to do.

    config (Path): The config.
    output (Path): Folder for the pipelines.
    overrides (Mapping[str, Any]): Values of the config by dotted name.
    """

    config: Path
    output: Path
    overrides: Mapping[str, Any]


def train_all(
    trainings: Sequence[Training],
    *,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    desc: str = "train",
    progress: bool = False,
) -> List[Member]:
    """Train several pipelines. If one fails, or this process is interrupted, no training goes on.

    trainings (Sequence[Training]): What to train, each with a folder of its own.
    processes (int): How many are trained at a time. On the CPU they share its cores, unless OMP_NUM_THREADS says how
        many threads each has.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Or the address of a Ray cluster, see `cluster.connected`: each has as many cores as its
        smallest machine, or, with a `gpu_id`, a GPU. They must see the config, all that it names, and the output under
        the same paths.
    desc (str): What progress is shown as.
    progress (bool): Show how far it has come.
    RETURNS (List[Member]): In the same order.
    RAISES (WeaknerError): For what `train_member` raises.
    """
    check_trainings(processes, ray)
    # As others read them, so that what is finished here is finished there.
    trainings = [t._replace(overrides=json.loads(json.dumps(dict(t.overrides), default=str))) for t in trainings]
    if ray is not None:
        return _train_on_cluster(trainings, ray, gpu_id, desc, progress)
    at_a_time = min(processes, len(trainings))
    threads = max(1, (os.cpu_count() or 1) // at_a_time) if at_a_time > 1 else None
    bar = Progress[None](total=len(trainings), desc=desc, unit="training", enabled=progress)
    # Each thread only waits for a process.
    with bar, Trainers(threads) as trainers, ThreadPoolExecutor(processes) as pool:
        futures = [
            pool.submit(train_member, *training, gpu_id=gpu_id, trainers=trainers, on_progress=bar.part(str(n)))
            for n, training in enumerate(trainings)
        ]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            trainers.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def check_trainings(processes: int, ray: Optional[str]) -> None:
    """Check who is to train, before anything is written.

    processes, ray: See `train_all`.
    RAISES (WeaknerError): If both are given, or Ray is not installed.
    """
    check_range("processes", processes, 1, None)
    if ray is not None:
        if processes > 1:
            raise WeaknerError(Errors.WK711)
        load_ray()


def _train_on_cluster(
    trainings: Sequence[Training],
    ray: str,
    gpu_id: int,
    desc: str,
    progress: bool,
) -> List[Member]:
    members: Dict[int, Member] = {}
    works = []
    for config, output, overrides in trainings:
        existing(Path(config))
        task = {"config": str(config), "output": str(output), "overrides": overrides, "gpu_id": min(gpu_id, 0)}
        works.append(Work(json.dumps(task), f"the training of {output}"))
    with ExitStack() as stack:
        # Here, since a lock outlives the machine that is lost with it, as do temporary folders.
        for training in trainings:
            stack.enter_context(locked(training.output))
            stack.callback(remove_leftovers, training.output)
        folder = stack.enter_context(scratch_folder(trainings[0].output))
        cluster = stack.enter_context(connected(ray, gpus=int(gpu_id >= 0)))
        cluster.take_many_cores()
        done = cluster.each(train_there, works, folder, desc=desc, unit="training", progress=progress)
        stack.callback(done.close)
        for n, row in done:
            members[n] = Member(Path(row["output"]), row["score"], row["skipped"], row["made_from"])
    return [members[n] for n in range(len(trainings))]


def train_there(text: str) -> Dict[str, Any]:
    """Train a pipeline on a machine of a cluster.

    text (str): What `train_all` has to say, as JSON.
    RETURNS (Dict[str, Any]): A `Member`.
    RAISES (WeaknerError): As `train_member`.
    """
    task = json.loads(text)
    member = train_held(Path(task["config"]), Path(task["output"]), task["overrides"], gpu_id=task["gpu_id"])
    return {**member._asdict(), "output": str(member.output)}
