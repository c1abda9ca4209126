"""Trains pipelines with `spacy train`, each in a process of its own; one that is finished is not trained again."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from spacy.util import load_config
from thinc.api import Config

from ...code_version import code_version
from ...errors import Errors, WeaknerError, check_range
from ...files import existing, parse_json
from ...progress import Progress
from .hashes import hash_path, hash_settings
from .receipts import Receipt

BEST, LAST = "model-best", "model-last"
RECEIPT, LOG = "trained.json", "train.log"
_TAIL = 4  # lines of the log that an error shows
_POLL_SECONDS = 0.2
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
    check: Optional[Callable[[Member], None]] = None,
    desc: str = "train",
    progress: bool = False,
) -> List[Member]:
    """Train several pipelines. If one fails, or this process is interrupted, no training goes on.

    trainings (Sequence[Training]): What to train, each with a folder of its own.
    processes (int): How many are trained at a time. On the CPU they share its cores, unless OMP_NUM_THREADS says how
        many threads each has.
    gpu_id (int): -1 is the CPU.
    check (Optional[Callable[[Member], None]]): Called with each that was trained as soon as it is: what is of no use is
        better noticed before the others are trained.
    desc (str): What progress is shown as.
    progress (bool): Show how far it has come.
    RETURNS (List[Member]): In the same order.
    RAISES (WeaknerError): For what `train_member` raises.
    """
    check_range("processes", processes, 1, None)
    stop = Event()
    at_a_time = min(processes, len(trainings))
    threads = max(1, (os.cpu_count() or 1) // at_a_time) if at_a_time > 1 else None
    bar = Progress[None](total=len(trainings), desc=desc, unit="training", enabled=progress)
    # Each thread only waits for a process.
    with bar, ThreadPoolExecutor(processes) as pool:
        futures = [
            pool.submit(
                train_member, *training, gpu_id=gpu_id, stop=stop, threads=threads, on_progress=bar.part(str(n))
            )
            for n, training in enumerate(trainings)
        ]
        try:
            for future in as_completed(futures):
                member = future.result()
                if check is not None and not member.skipped:
                    check(member)
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def train_member(
    config: Path,
    output: Path,
    overrides: Mapping[str, Any],
    *,
    gpu_id: int = -1,
    stop: Optional[Event] = None,
    threads: Optional[int] = None,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Member:
    """Train a pipeline.

    What `spacy train` prints goes to `train.log` in the output folder. A receipt beside it says what the pipeline was
    made from; if that fits, nothing is done.

    config (Path): The config.
    output (Path): Folder for the pipelines.
    overrides (Mapping[str, Any]): Values of the config by dotted name.
    gpu_id (int): -1 is the CPU.
    stop (Optional[Event]): Once it is set, by another thread, the training ends without a result.
    threads (Optional[int]): Threads of the training, where OMP_NUM_THREADS says nothing.
    on_progress (Callable[[float], None]): Told, by another thread, what share of `training.max_steps` is done, as
        far as the log says, which has a row per evaluation.
    RETURNS (Member): The result.
    RAISES (WeaknerError): If there is no such config, the training fails, or the folder holds something else.
    RAISES (CancelledError): If it was stopped.
    """
    config, output = existing(Path(config)), Path(output)
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
    with _watched(output / LOG, flat_config(config, overrides).get("training.max_steps"), on_progress):
        _run(config, output, overrides, gpu_id, stop, threads)
    on_progress(1.0)
    score = _dev_score(output / BEST)
    Receipt({"made_from": made_from}, report={"score": score}).write(output / RECEIPT)
    return Member(output, score, False, made_from)


def _run(
    config: Path,
    output: Path,
    overrides: Mapping[str, Any],
    gpu_id: int,
    stop: Optional[Event],
    threads: Optional[int],
) -> None:
    command = [sys.executable, "-m", "spacy", "train", str(config), "--output", str(output), "--gpu-id", str(gpu_id)]
    for key, value in overrides.items():
        command += [f"--{key}", value if isinstance(value, str) else json.dumps(value)]
    environment = dict(os.environ)
    if threads is not None:
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    log = output / LOG
    with log.open("w", encoding="utf-8") as file_:
        process = subprocess.Popen(
            command, stdout=file_, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
        )
        try:
            code = _wait(process, stop)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code != 0:
        tail = " | ".join(log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_TAIL:])
        raise WeaknerError(Errors.WK360.format(output=output, code=code, log=log, tail=tail))


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


def _wait(process: "subprocess.Popen[bytes]", stop: Optional[Event]) -> int:
    # Ctrl-C is raised in the main thread alone: another one has to be told.
    while True:
        try:
            return process.wait(None if stop is None else _POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if stop is not None and stop.is_set():
                raise CancelledError from None


def _made_from(config: Path, overrides: Mapping[str, Any]) -> str:
    # The config and its overrides, and the contents of the files that they name. Names of Transformers that are no
    # folder stand for themselves.
    values = flat_config(config, overrides)
    contents = {
        key: hash_path(Path(value))
        for key, value in values.items()
        if isinstance(value, str) and (os.sep in value or key.startswith("paths.")) and value and os.path.exists(value)
    }
    settings = {k: repr(v) for k, v in values.items()}
    return hash_settings({"values": settings, "contents": contents, "code": code_version()})


def config_differences(
    config: Path, *, lang: str, tokenizer: Optional[str] = None, size: Optional[str] = None
) -> List[str]:
    """Compare a config with settings that corpora were made with: a pipeline that splits texts otherwise than its
    training corpus finds less than it has learned.

    config (Path): The config.
    lang (str): Code of the language.
    tokenizer (Optional[str]): Name of the tokenizer; None: that of the language.
    size (Optional[str]): Size of the encoder; None: any.
    RETURNS (List[str]): What differs, in words; empty if nothing does.
    """
    values = flat_config(config, {})
    found = []
    if values.get("nlp.lang") != lang:
        found.append(f"its language is '{values.get('nlp.lang')}', and not '{lang}'")
    own = values.get("nlp.tokenizer.@tokenizers")
    if tokenizer is not None and own != tokenizer:
        found.append(f"its tokenizer is '{own}', and not '{tokenizer}'")
    names = [str(value) for key, value in values.items() if key.endswith("@architectures")]
    transformer = any("Transformer" in name or "QueryContext" in name for name in names)
    if size is not None and transformer != (size in ("transformer", "gpu")):
        found.append(f"its encoder is {'a' if transformer else 'no'} Transformer, and the size is '{size}'")
    return found


def flat_config(config: Path, overrides: Mapping[str, Any]) -> Dict[str, Any]:
    """Read a config; variables in it stay as they are.

    config (Path): The config.
    overrides (Mapping[str, Any]): Values by dotted name.
    RETURNS (Dict[str, Any]): Its values by dotted name; sections stand for themselves too, as empty dictionaries.
    RAISES (WeaknerError): If it cannot be read with these overrides.
    """
    try:
        return _flat(load_config(existing(Path(config)), overrides=dict(overrides), interpolate=False))
    except (WeaknerError, OSError):
        raise
    except Exception as error:  # of many kinds: what spaCy and the parser say to a damaged config
        reason = " ".join(str(error).split())
        raise WeaknerError(Errors.WK365.format(config=config, reason=reason)) from error


def _flat(config: Config) -> Dict[str, Any]:
    flat: Dict[str, Any] = {}
    pending: List[Tuple[str, Any]] = list(config.items())
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            flat[key] = {}
            pending.extend((f"{key}.{name}", own) for name, own in value.items())
        else:
            flat[key] = value
    return flat


def _dev_score(model: Path) -> Optional[float]:
    # As `spacy train` weighs the scores of a pipeline.
    if not model.exists():
        return None
    scores = parse_json((model / "meta.json").read_bytes()).get("performance", {})
    weights = load_config(model / "config.cfg", interpolate=True)["training"]["score_weights"]
    return float(sum((scores.get(name) or 0.0) * weight for name, weight in weights.items() if weight))
