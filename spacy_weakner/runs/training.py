"""Trains pipelines with `spacy train` in processes of their own: one, or several at a time on this machine or on a
cluster. What is finished is not trained again."""

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from spacy.util import load_config

from ..code_version import code_of, names_in
from ..errors import Errors, WeaknerError, check_range, require
from ..files import existing, parse_json
from ..pipelines import config_text
from ..progress import Progress
from ..runtime.cluster import connected
from ..runtime.hashes import hash_path, hash_settings
from ..runtime.lock import locked
from ..runtime.receipts import Receipt
from ..scratch import remove_leftovers, scratch_folder
from .config import flat_config, resolved_config
from .trainer import Trainers

BEST, LAST = "model-best", "model-last"
RECEIPT, LOG = "trained.json", "train.log"
_WATCH_SECONDS = 2.0
# A row of the table of `spacy train`: epoch, step, losses and scores.
_ROW = re.compile(r"^ *\d+ +(\d+) +\d", re.MULTILINE)


class Training(NamedTuple):
    """A training to run."""

    config: Path
    output: Path  # folder for `model-best` and `model-last`
    overrides: Mapping[str, Any]


class Trained(NamedTuple):
    """The result of a training."""

    output: Path  # folder with `model-best` and `model-last`
    score: Optional[float]  # score of `model-best` on dev; None if it was never evaluated
    skipped: bool
    made_from: str  # hash of its config, settings and files


def train_all(
    trainings: Sequence[Training],
    *,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    desc: str = "train",
    progress: bool = False,
) -> List[Trained]:
    """Train several pipelines. If one fails, or this process is interrupted, no training goes on.

    trainings (Sequence[Training]): What to train, each with a folder of its own.
    processes (int): How many are trained at a time. On the CPU they share its cores, unless OMP_NUM_THREADS sets the
        threads of each.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Or the address of a Ray cluster, see `cluster.connected`: each training has as many cores as
        its smallest machine, or, with a `gpu_id`, a GPU. All machines must see config, inputs and outputs under the
        same paths.
    desc (str): Name of the progress bar.
    progress (bool): Show progress.
    RETURNS (List[Trained]): In the same order.
    RAISES (WeaknerError): For unusable settings, a config that does not exist, a folder that holds something else, and
        if a training fails.
    """
    check_trainings(processes, ray)
    # As other processes read them, so that what is finished here is finished there.
    trainings = [t._replace(overrides=json.loads(json.dumps(dict(t.overrides), default=str))) for t in trainings]
    if ray is not None:
        return _train_on_cluster(trainings, ray, gpu_id, desc, progress)
    at_a_time = min(processes, len(trainings))
    threads = max(1, (os.cpu_count() or 1) // at_a_time) if at_a_time > 1 else None
    bar = Progress[None](total=len(trainings), desc=desc, unit="training", enabled=progress)
    # Each thread only waits for a process.
    with bar, Trainers(threads) as trainers, ThreadPoolExecutor(processes) as pool:
        futures = [
            pool.submit(train_one, *training, gpu_id=gpu_id, trainers=trainers, on_progress=bar.part(str(n)))
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
    """Check these settings of `train_all` before anything is written."""
    check_range("processes", processes, 1, None)
    if ray is not None:
        if processes > 1:
            raise WeaknerError(Errors.WK331.format(setting="processes", where="without 'ray'", instead=""))
        require("ray", extra="ray")


def train_one(
    config: Path,
    output: Path,
    overrides: Mapping[str, Any],
    *,
    gpu_id: int = -1,
    trainers: Optional[Trainers] = None,
    on_progress: Callable[[float], None] = lambda share: None,
    lock: bool = True,
) -> Trained:
    """Train a pipeline, unless a receipt shows that it was trained from the same inputs. The output of `spacy train`
    goes to `train.log`; the training writes to a folder of its own until it has ended, and ends when this process does.
    """
    output = Path(output)
    existing(Path(config))
    with locked(output) if lock else nullcontext():
        made_from = _made_from(config, overrides)
        receipt = Receipt.read(output / RECEIPT)
        if receipt is not None and not receipt.differences({"made_from": made_from}) and (output / LAST).exists():
            on_progress(1.0)
            return Trained(output, receipt.report.get("score"), True, made_from)
        if output.exists() and any(output.iterdir()) and not (output / LOG).exists():
            raise WeaknerError(Errors.WK300.format(path=output))
        # What an interrupted or earlier training has left is no result of this one.
        (output / RECEIPT).unlink(missing_ok=True)
        for name in (BEST, LAST):
            if (output / name).exists():
                shutil.rmtree(output / name)
        output.mkdir(parents=True, exist_ok=True)
        # A training of a run that was killed may still write; not here.
        with scratch_folder(output) as scratch:
            work = scratch / output.resolve().name
            work.mkdir()
            _show_log(output / LOG, work / LOG)
            try:
                steps = flat_config(config, overrides).get("training.max_steps")
                started = Trainers() if trainers is None else nullcontext(trainers)
                with _watched(work / LOG, steps, on_progress), started as running:
                    _run(config, work, overrides, gpu_id, running)
            finally:
                os.replace(work / LOG, output / LOG)
            for name in (BEST, LAST):
                if (work / name).exists():
                    os.rename(work / name, output / name)
        on_progress(1.0)
        score = _dev_score(output / BEST)
        Receipt({"made_from": made_from}, report={"score": score}).write(output / RECEIPT)
        return Trained(output, score, False, made_from)


def _show_log(shown: Path, log: Path) -> None:
    """Make a log that can be read in the output while it is written."""
    shown.unlink(missing_ok=True)  # an earlier training may still write to that one
    log.touch()
    with suppress(OSError):  # not every file system has links; the log is moved in the end
        os.link(log, shown)


def _run(config: Path, output: Path, overrides: Mapping[str, Any], gpu_id: int, trainers: Trainers) -> None:
    arguments = [str(config), "--output", str(output), "--gpu-id", str(gpu_id)]
    for key, value in overrides.items():
        arguments += [f"--{key}", value if isinstance(value, str) else json.dumps(value)]
    trainers.train(arguments, output, output / LOG)


@contextmanager
def _watched(log: Path, steps: Any, on_progress: Callable[[float], None]) -> Iterator[None]:
    """Report the progress of a training while it runs."""
    if not isinstance(steps, int) or steps < 1:
        yield
        return
    done = Event()

    def watch() -> None:
        while not done.wait(_WATCH_SECONDS):
            on_progress(min(1.0, _steps_done(log) / steps))

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _steps_done(log: Path) -> int:
    """Steps before the last evaluation in what `spacy train` has printed so far."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    _, found, table = text.rpartition("\n---")
    rows = _ROW.findall(table) if found else []
    return int(rows[-1]) if rows else 0


def _made_from(config: Path, overrides: Mapping[str, Any]) -> str:
    """Hash of the config with its overrides, and of the contents of the files that they name. Names of Transformers
    that are no folder stand for themselves."""
    values = flat_config(config, overrides)
    every = [*values.items(), *resolved_config(config, overrides).items()]
    single = [(key, item) for key, value in every for item in (value if isinstance(value, list) else [value])]
    contents = {path: hash_path(Path(path)) for path in {value for key, value in single if _names_input(key, value)}}
    settings = {k: repr(v) for k, v in values.items()}
    # Components and functions that the config names, and components that it takes from other pipelines.
    sourced = (name for path in contents for name in names_in(config_text(path)))
    code = code_of([__name__], [*(value for _, value in every), *sourced])
    return hash_settings({"values": settings, "contents": contents, "code": code})


def _names_input(key: str, value: object) -> bool:
    """True if a value is the path of something that a training reads: anything in [paths] and of corpora; elsewhere
    files, and folders of models. A value such as "/" does not walk the disk."""
    if not isinstance(value, str) or not value or not os.path.exists(value) or os.path.ismount(value):
        return False
    if key.startswith("paths.") or key.endswith(".path") or os.path.isfile(value):
        return True
    return any(os.path.isfile(os.path.join(value, name)) for name in ("config.json", "config.cfg"))


def _dev_score(model: Path) -> Optional[float]:
    """The score on dev, as `spacy train` weighs the scores of a pipeline."""
    if not model.exists():
        return None
    scores = parse_json((model / "meta.json").read_bytes()).get("performance", {})
    weights = load_config(model / "config.cfg", interpolate=True)["training"]["score_weights"]
    return float(sum((scores.get(name) or 0.0) * weight for name, weight in weights.items() if weight))


# On a cluster


def _train_on_cluster(trainings: Sequence[Training], ray: str, gpu_id: int, desc: str, progress: bool) -> List[Trained]:
    for training in trainings:
        existing(Path(training.config))
    results: Dict[int, Trained] = {}
    with ExitStack() as stack:
        # Here, since a lock outlives the machine that is lost with it, as do temporary folders.
        for training in trainings:
            stack.enter_context(locked(training.output))
            stack.callback(remove_leftovers, training.output)
        folder = stack.enter_context(scratch_folder(trainings[0].output))
        cluster = stack.enter_context(connected(ray, folder, gpus=int(gpu_id >= 0), many_cores=True))
        bar = stack.enter_context(Progress[None](total=len(trainings), desc=desc, unit="training", enabled=progress))
        names = [f"the training of {training.output}" for training in trainings]
        for n, result in cluster.each(partial(_train_there, min(gpu_id, 0)), trainings, names):
            results[n] = result
            bar.update()
    return [results[n] for n in range(len(trainings))]


def _train_there(gpu_id: int, training: Training) -> Trained:
    return train_one(*training, gpu_id=gpu_id, lock=False)
