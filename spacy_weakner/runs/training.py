"""Trains pipelines with `spacy train` in separate processes, on this machine or on a cluster, one or several at a time.
Each process trains several pipelines, since the imports take longer than training a linear CRF. Finished pipelines are
not trained again."""

import json
import os
import re
import shutil
import sys
import time
import traceback
import warnings
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from uuid import uuid4

from spacy.util import load_config

from ..code_version import code_version
from ..errors import Errors, WeaknerError, check_range, require
from ..files import parse_json
from ..progress import Progress
from ..runtime.cluster import connected
from ..runtime.devices import device_name, on_device
from ..runtime.hashes import hash_settings
from ..runtime.lock import locked
from ..runtime.pool import ProcessPool, environment, processes
from ..runtime.receipts import Receipt
from ..scratch import DISK_ERRORS, disk_error, resolved, scratch_folder, wanted
from .config import check_overrides, flat_config, resolved_config
from .inputs import Inputs, names_input

BEST, LAST = "model-best", "model-last"
RECEIPT, LOG = "trained.json", "train.log"
_TAIL = 4  # lines of the log shown in an error
# A row of the table of `spacy train`: epoch, step, losses and scores.
_ROW = re.compile(r"^ *\d+ +(\d+) +\d", re.MULTILINE)
_WARNING = re.compile(r"\[WK9\d\d\] .+")


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
    warnings: Tuple[str, ...] = ()  # of this package, from its log


def train_all(
    trainings: Sequence[Training],
    *,
    processes: int = 1,
    gpu_id: int = -1,
    ray: Optional[str] = None,
    desc: str = "train",
    progress: bool = False,
) -> List[Trained]:
    """Train several pipelines. If one fails, or this process is interrupted, all trainings are stopped.

    trainings (Sequence[Training]): The trainings, each with a separate folder.
    processes (int): Number of concurrent trainings. On the CPU they share its cores, unless OMP_NUM_THREADS sets the
        threads of each.
    gpu_id (int): -1 is the CPU.
    ray (Optional[str]): Or the address of a Ray cluster, see `cluster.connected`. Each training gets as many cores as
        the smallest machine has, or, with a `gpu_id`, a GPU. All machines must see config, inputs and outputs under the
        same paths.
    desc (str): Name of the progress bar.
    progress (bool): Show progress.
    RETURNS (List[Trained]): The results, in the same order.
    RAISES (WeaknerError): For invalid settings, a config that does not exist, a folder with other contents, and if a
        training fails.
    """
    check_trainings(processes, ray, gpu_id)
    for training in trainings:
        check_overrides(training.config, training.overrides)
    # Normalized as other processes read them, so that a training finished here counts as finished there.
    trainings = [t._replace(overrides=json.loads(json.dumps(dict(t.overrides), default=str))) for t in trainings]
    with ExitStack() as stack:
        # Held in this process, since locks and temporary folders of a lost process or machine would remain.
        inputs = Inputs()
        jobs = [_LockedTraining(training, stack, inputs) for training in trainings]
        pending = [job for job in jobs if job.trained is None]
        bar = stack.enter_context(Progress[None](total=len(jobs), desc=desc, unit="training", enabled=progress))

        def show_progress() -> None:
            bar.update(sum(job.share_done() for job in jobs) - bar.done)

        if pending:
            pool = stack.enter_context(_pool(min(processes, len(pending)), gpu_id, ray, pending[0].work.parent))
            run = partial(_run, gpu_id if ray is None else min(gpu_id, 0))
            names = [f"the training of {job.output}" for job in pending]
            for i, (made, cost) in pool.each(run, [job.training for job in pending], names, show_progress):
                pending[i].finish(made, cost)
        show_progress()
    return [job.trained for job in jobs if job.trained is not None]


def check_trainings(processes: int, ray: Optional[str], gpu_id: int) -> None:
    """Check these settings of `train_all` before anything is written."""
    check_range("processes", processes, 1, None)
    check_range("gpu_id", gpu_id, -1, None)
    if ray is not None:
        if processes > 1:
            raise WeaknerError(Errors.WK331.format(setting="processes", where="without 'ray'", instead=""))
        require("ray", extra="ray")
    else:
        with on_device(gpu_id):  # refuses a GPU that cannot be used
            pass


def _pool(n: int, gpu_id: int, ray: Optional[str], folder: Path) -> ContextManager[ProcessPool]:
    if ray is not None:
        return connected(ray, folder, gpus=int(gpu_id >= 0), many_cores=True)
    return processes(n, threads=max(1, (os.cpu_count() or 1) // n) if n > 1 else None)


class _LockedTraining:
    """A training whose folder is locked until the stack is closed. If a receipt shows that it was trained from the same
    inputs, it has its result; else it has a folder to write to until it has ended."""

    trained: Optional[Trained] = None

    def __init__(self, training: Training, stack: ExitStack, inputs: Inputs) -> None:
        config, output, overrides = training
        self.output = output = Path(output)
        stack.enter_context(locked(output))
        values = flat_config(config, overrides)
        self.made_from = _made_from(values, resolved_config(config, overrides), inputs)
        self._steps = values.get("training.max_steps")
        receipt = Receipt.read(output / RECEIPT)
        if receipt is not None and not receipt.differences({"made_from": self.made_from}) and (output / LAST).exists():
            messages = tuple(receipt.report.get("warnings", ()))
            self.trained = Trained(output, receipt.report.get("score"), True, self.made_from, messages)
            return
        if output.exists() and any(output.iterdir()) and not (output / LOG).exists():
            raise WeaknerError(Errors.WK300.format(path=output))
        self._corpora = inputs.of_paths(values)
        output.mkdir(parents=True, exist_ok=True)
        # A training of a killed run may still be writing, but not to this folder.
        self.work = stack.enter_context(scratch_folder(output)) / resolved(output).name
        self.work.mkdir()
        self.training = Training(config, self.work, overrides)
        (output / LOG).unlink(missing_ok=True)  # an earlier training may still write to that one
        (self.work / LOG).touch()
        with suppress(OSError):  # not every file system has links; the log is moved at the end
            os.link(self.work / LOG, output / LOG)  # so that it can be read while it is written
        stack.callback(self._keep_log)

    def share_done(self) -> float:
        if self.trained is not None:
            return 1.0
        steps: Any = self._steps
        return min(1.0, _steps_done(self.work / LOG) / steps) if isinstance(steps, int) and steps > 0 else 0.0

    def finish(self, made: str, cost: Dict[str, Any]) -> None:
        """Move the pipelines in the subfolder `made` of the work folder to the output, replacing an earlier result."""
        (self.output / RECEIPT).unlink(missing_ok=True)
        for name in (BEST, LAST):
            shutil.rmtree(self.output / name, ignore_errors=True)
            if (self.work / made / name).exists():
                os.rename(self.work / made / name, self.output / name)
        log = (self.work / LOG).read_bytes().replace(os.fsencode(self.work / made), os.fsencode(self.output))
        (self.work / LOG).write_bytes(log)
        self._keep_log()
        score = _dev_score(self.output / BEST)
        messages = tuple(dict.fromkeys(_WARNING.findall(log.decode(errors="replace"))))
        report = {"score": score, "warnings": messages, "corpora": self._corpora, **cost}
        Receipt({"made_from": self.made_from}, report=report).write(self.output / RECEIPT)
        self.trained = Trained(self.output, score, False, self.made_from, messages)

    def _keep_log(self) -> None:
        if (self.work / LOG).exists():
            os.replace(self.work / LOG, self.output / LOG)


def _steps_done(log: Path) -> int:
    """Return the number of steps before the last evaluation in the log of `spacy train`."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    _, found, table = text.rpartition("\n---")
    rows = _ROW.findall(table) if found else []
    return int(rows[-1]) if rows else 0


def _made_from(values: Mapping[str, Any], resolved_values: Mapping[str, Any], inputs: Inputs) -> str:
    """Return a hash of a config with its overrides, and of the contents of the files in it. Names of Transformers that
    are not folders are hashed as names."""
    every = [*values.items(), *resolved_values.items()]
    single = [(key, item) for key, value in every for item in (value if isinstance(value, list) else [value])]
    contents = {path: inputs.hash(Path(path)) for path in {value for key, value in single if names_input(key, value)}}
    settings = {k: repr(v) for k, v in values.items()}
    return hash_settings({"values": settings, "contents": contents, "code": code_version()})


def _dev_score(model: Path) -> Optional[float]:
    """Return the score on dev, weighted as in `spacy train`."""
    if not model.exists():
        return None
    scores = parse_json((model / "meta.json").read_bytes()).get("performance", {})
    weights = load_config(model / "config.cfg", interpolate=True)["training"]["score_weights"]
    return float(sum((scores.get(name) or 0.0) * weight for name, weight in weights.items() if weight))


# In the process that trains


def _run(gpu_id: int, training: Training) -> Tuple[str, Dict[str, Any]]:
    """Run `spacy train` in this process, with its output redirected to the log. Return the name of the subfolder with
    the result (a lost machine may still write to another one), and what the training took."""
    config, output, overrides = training
    start = time.process_time()
    made, log = uuid4().hex, output / LOG
    try:
        with _printing_to(log):
            code = _spacy_train(config, output / made, overrides, gpu_id)
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        raise disk_error(output, error) from error
    if code:
        tail = " | ".join(log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_TAIL:])
        shown = wanted(output)
        raise WeaknerError(Errors.WK360.format(output=shown, code=code, log=shown / LOG, tail=tail))
    return made, {"cpu_seconds": round(time.process_time() - start, 1), "device": device_name(gpu_id)}


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Redirect everything that this process prints, including native code, to a log."""
    before = [os.dup(number) for number in (1, 2)]
    file_ = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        for number in (1, 2):
            os.dup2(file_, number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # the disk may be full
                stream.flush()
        for number, shown in zip((1, 2), before, strict=True):
            os.dup2(shown, number)
            os.close(shown)
        os.close(file_)


def _spacy_train(config: Path, output: Path, overrides: Mapping[str, Any], gpu_id: int) -> int:
    """Train and return the exit code."""
    import wasabi
    from spacy.cli.train import train

    wasabi.msg.show_color = False
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    if "torch" in sys.modules:
        import torch

        # As in a new process: an earlier training may have changed it.
        torch.set_float32_matmul_precision("highest")
    try:
        # As in a new process: warnings of an earlier training are shown again.
        with environment(ANSI_COLORS_DISABLED="1"), warnings.catch_warnings():  # of wasabi
            train(config, output, use_gpu=gpu_id, overrides=dict(overrides))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except WeaknerError as error:
        sys.stderr.write(f"{error}\n")
        raise
    except Exception as error:  # of many kinds: the log shows it, if the disk is not full
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise
        traceback.print_exc()
        return 1
    return 0
