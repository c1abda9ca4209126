"""Trains a pipeline with `spacy train`, in a process of its own; one that is finished is not trained again."""

import json
import os
import re
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional

from spacy.util import load_config

from ..code_version import code_version
from ..errors import Errors, WeaknerError
from ..files import existing, parse_json
from ..runtime.hashes import hash_path, hash_settings
from ..runtime.lock import locked
from ..runtime.receipts import Receipt
from ..scratch import scratch_folder
from .config_values import flat_config, resolved_config
from .trainer import Trainers

BEST, LAST = "model-best", "model-last"
RECEIPT, LOG = "trained.json", "train.log"
_WATCH_SECONDS = 2.0
# A row of the table of `spacy train`: epoch, step, losses and scores.
_ROW = re.compile(r"^ *\d+ +(\d+) +\d", re.MULTILINE)


class Member(NamedTuple):
    """A pipeline that was trained.

    output (Path): Folder that holds `model-best` and `model-last`.
    score (Optional[float]): What `spacy train` chose `model-best` by, on the dev corpus; None if it never evaluated.
    skipped (bool): Whether it was finished already.
    made_from (str): Hash of its config, settings and files.
    """

    output: Path
    score: Optional[float]
    skipped: bool
    made_from: str


def train_member(
    config: Path,
    output: Path,
    overrides: Mapping[str, Any],
    *,
    gpu_id: int = -1,
    trainers: Optional[Trainers] = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Member:
    """Train a pipeline.

    What `spacy train` prints goes to `train.log` in the output folder. A receipt beside it says what the pipeline was
    made from; if that fits, nothing is done. The training writes to a folder of its own until it has ended, and ends
    when this process does.

    config (Path): The config.
    output (Path): Folder for the pipelines.
    overrides (Mapping[str, Any]): Values of the config by dotted name.
    gpu_id (int): -1 is the CPU.
    trainers (Optional[Trainers]): Processes that train; None: a new one.
    on_progress (Callable[[float], None]): Told, by another thread, what share of `training.max_steps` is done, as
        far as the log says, which has a row per evaluation.
    RETURNS (Member): The result.
    RAISES (WeaknerError): If there is no such config, the training fails, or the folder holds something else.
    RAISES (CancelledError): If it was stopped.
    """
    output = Path(output)
    existing(Path(config))
    with locked(output):
        return train_held(config, output, overrides, gpu_id=gpu_id, trainers=trainers, on_progress=on_progress)


def train_held(
    config: Path,
    output: Path,
    overrides: Mapping[str, Any],
    *,
    gpu_id: int = -1,
    trainers: Optional[Trainers] = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Member:
    """As `train_member`, where the output is held already, perhaps by a process on another machine.

    config, output, overrides, gpu_id, trainers, on_progress: See there.
    RETURNS (Member): The result.
    RAISES: As there.
    """
    made_from = _made_from(config, overrides)
    receipt = Receipt.read(output / RECEIPT)
    if receipt is not None and not receipt.differences({"made_from": made_from}) and (output / LAST).exists():
        on_progress(1.0)
        return Member(output, receipt.report.get("score"), True, made_from)
    if output.exists() and any(output.iterdir()) and not (output / LOG).exists():
        raise WeaknerError(Errors.WK300.format(path=output))
    # What an interrupted or earlier training has left is no result of this one.
    (output / RECEIPT).unlink(missing_ok=True)
    for name in (BEST, LAST):
        if (output / name).exists():
            shutil.rmtree(output / name)
    output.mkdir(parents=True, exist_ok=True)
    # Whoever else may still write, as the training of a run that was killed: nobody does so here.
    with scratch_folder(output) as scratch:
        work = scratch / output.resolve().name
        work.mkdir()
        _show_log(output / LOG, work / LOG)
        try:
            with _watched(work / LOG, flat_config(config, overrides).get("training.max_steps"), on_progress):
                if trainers is None:
                    with Trainers() as trainers:
                        _run(config, work, overrides, gpu_id, trainers)
                else:
                    _run(config, work, overrides, gpu_id, trainers)
        finally:
            os.replace(work / LOG, output / LOG)
        for name in (BEST, LAST):
            if (work / name).exists():
                os.rename(work / name, output / name)
    on_progress(1.0)
    score = _dev_score(output / BEST)
    Receipt({"made_from": made_from}, report={"score": score}).write(output / RECEIPT)
    return Member(output, score, False, made_from)


def _show_log(shown: Path, log: Path) -> None:
    """Make a log that can be read in the output, too, while it is written."""
    shown.unlink(missing_ok=True)  # an earlier training may still write to that one
    log.touch()
    with suppress(OSError):  # not every file system has links; it is there in the end
        os.link(log, shown)


def _run(config: Path, output: Path, overrides: Mapping[str, Any], gpu_id: int, trainers: Trainers) -> None:
    arguments = [str(config), "--output", str(output), "--gpu-id", str(gpu_id)]
    for key, value in overrides.items():
        arguments += [f"--{key}", value if isinstance(value, str) else json.dumps(value)]
    trainers.train(arguments, output, output / LOG)


@contextmanager
def _watched(log: Path, steps: Any, on_progress: Callable[[float], None]) -> Iterator[None]:
    """Tell how far a training has come while it runs."""
    if not isinstance(steps, int) or steps < 1:
        yield
        return
    done = Event()

    def watch() -> None:
        while not done.wait(_WATCH_SECONDS):
            on_progress(min(1.0, steps_done(log) / steps))

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def steps_done(log: Path) -> int:
    """How many steps a training has made.

    log (Path): What `spacy train` has printed so far.
    RETURNS (int): The steps before its last evaluation; 0 if there was none.
    """
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    _, found, table = text.rpartition("\n---")
    rows = _ROW.findall(table) if found else []
    return int(rows[-1]) if rows else 0


def _made_from(config: Path, overrides: Mapping[str, Any]) -> str:
    # The config and its overrides, and the contents of the files that they name. Names of Transformers that are no
    # folder stand for themselves.
    values = flat_config(config, overrides)
    every = [*values.items(), *resolved_config(config, overrides).items()]
    contents = {path: hash_path(Path(path)) for path in {value for key, value in every if _names_input(key, value)}}
    settings = {k: repr(v) for k, v in values.items()}
    return hash_settings({"values": settings, "contents": contents, "code": code_version()})


def _names_input(key: str, value: object) -> bool:
    """Whether a value of the config is the path of something that a training reads: anything in [paths] and of corpora;
    elsewhere files, and folders of models. A value such as "/" does not walk the disk."""
    if not isinstance(value, str) or not value or not os.path.exists(value) or os.path.ismount(value):
        return False
    if key.startswith("paths.") or key.endswith(".path") or os.path.isfile(value):
        return True
    return any(os.path.isfile(os.path.join(value, name)) for name in ("config.json", "config.cfg"))


def _dev_score(model: Path) -> Optional[float]:
    # As `spacy train` weighs the scores of a pipeline.
    if not model.exists():
        return None
    scores = parse_json((model / "meta.json").read_bytes()).get("performance", {})
    weights = load_config(model / "config.cfg", interpolate=True)["training"]["score_weights"]
    return float(sum((scores.get(name) or 0.0) * weight for name, weight in weights.items() if weight))
