"""Kills or interrupts commands at random moments, runs them again, and compares what they have made with that of an
undisturbed run: the same files with the same bytes, and nothing else.

    python -m tools.fuzz.kills --n 200 --seed 0 [--stages label fit-package] [--folder kept/]

Each command runs in a process that is forked from this one, which has imported everything.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from typer.main import get_command

from spacy_weakner.cli._util import INTERRUPTED
from spacy_weakner.cli.app import app
from spacy_weakner.corpus.docbin import UNFINISHED
from spacy_weakner.runs import training
from tests.command_line import PoolHere, train_here

from .stages import STAGES, Stage, make_inputs

# What only says how long something took.
_TIMES = ("train.log", "project.lock")
_VARYING = {"speed", "seconds", "cpu_seconds", "ents_per_sec", "words_per_second"}
_PATIENCE = 300.0  # seconds
_ORPHANS = 30.0  # processes that have only just begun, on a machine that has much to do


class Killer:
    """Runs trials."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kills: Counter[str] = Counter()
        self._expected: Dict[str, Dict[str, str]] = {}
        self._seconds: Dict[str, float] = {}
        (folder / "in").mkdir(parents=True)
        make_inputs(folder / "in")
        self._inputs = contents(folder / "in")

    def trial(self, name: str, seed: str) -> Optional[str]:
        """Kill a stage once or several times, let it end, and say what is wrong, if anything is."""
        stage, draw, work = STAGES[name], random.Random(f"{name} {seed}"), self.folder / "work"
        if name not in self._expected:
            self._fresh(stage, work)
            begin = time.monotonic()
            code = self._wait(self._start(stage, work), _PATIENCE)
            self._seconds[name] = time.monotonic() - begin
            if code != 0:
                return f"undisturbed it ended with {code}: {self._log()}"
            self._expected[name] = contents(work)
        self._fresh(stage, work)
        for _ in range(draw.choice((1, 1, 2, 3))):
            pid = self._start(stage, work)
            time.sleep(draw.uniform(0, 1.05) * self._seconds[name])
            # What has a folder of its own in /proc, as seen before its parent goes.
            group = _descendants(pid)
            if stage.alone:
                os.kill(pid, draw.choice((signal.SIGKILL, signal.SIGTERM)))
            else:
                try:
                    os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:  # it has no group of its own yet
                    os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            self.kills[name] += code in (-signal.SIGKILL, -signal.SIGTERM, INTERRUPTED)
            deadline = time.monotonic() + _ORPHANS
            while any(map(_is_alive, group)):
                if time.monotonic() > deadline:
                    return f"processes outlive their parent: {group}"
                time.sleep(0.02)
            hidden = [path.name for path in work.rglob(".*") if path.name != UNFINISHED]
            if code == INTERRUPTED and hidden:
                return f"an interrupted run leaves behind: {hidden}"
        code = self._wait(self._start(stage, work), _PATIENCE)
        if code != 0:
            return f"the next run ended with {code}: {self._log()}"
        difference = compare(self._expected[name], contents(work))
        if contents(self.folder / "in") != self._inputs:
            difference = "the inputs have changed"
        return difference or None

    def _fresh(self, stage: Any, work: Path) -> None:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        stage.before(work)

    def _start(self, stage: Any, work: Path) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            os.setsid()
            os.chdir(work)
            with (self.folder / "log").open("w") as log, redirect_stdout(log), redirect_stderr(log):
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                code = run(stage)
        except BaseException as error:
            with (self.folder / "log").open("a") as log:
                log.write(f"\n{type(error).__name__}: {error}")
        finally:
            os._exit(code)

    def _wait(self, pid: int, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.killpg(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _log(self) -> str:
        return " | ".join((self.folder / "log").read_text(errors="replace").strip().splitlines()[-4:])


def run(stage: Stage) -> int:
    """Run the commands of a stage in this process."""
    if stage.trains:
        training.processes = lambda n, **_: nullcontext(PoolHere())
        training._run = partial(_train, _Trainer())
    for arguments in stage.commands:
        if callable(arguments):
            arguments()
            continue
        sys.argv = ["weakner", *arguments]
        code = get_command(app)(arguments, standalone_mode=False)
        if code:
            return int(code)
    return 0


def _train(trainer: Any, gpu_id: int, job: Any) -> Tuple[str, Dict[str, Any]]:
    trainer(*job, gpu_id)
    return "", {}


class _Trainer:
    """Trains in processes that need not import anything: they are forked by another process, which has no threads."""

    def __init__(self) -> None:
        own, other = socket.socketpair()
        if not os.fork():
            own.close()
            self._serve(other)
        other.close()
        self._lines = own.makefile("rw")

    def __call__(self, config: Path, output: Path, overrides: Any, gpu_id: int) -> None:
        self._lines.write(json.dumps([str(config), str(output), dict(overrides), gpu_id]) + "\n")
        self._lines.flush()
        if self._lines.readline().strip() != "0":
            raise RuntimeError("a training has failed")

    def _serve(self, connection: socket.socket) -> None:
        lines = connection.makefile("rw")
        while line := lines.readline():
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    config, output, overrides, gpu_id = json.loads(line)
                    train_here(config, Path(output), overrides, gpu_id)
                    code = 0
                finally:
                    os._exit(code)
            lines.write(f"{os.waitpid(pid, 0)[1]}\n")
            lines.flush()
        os._exit(0)


def contents(folder: Path) -> Dict[str, str]:
    """What a folder holds: hashes of its files by name, folders as "", without what differs from run to run."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            found[f"{name}/"] = ""
        elif path.name in _TIMES:
            found[name] = "varies"
        else:
            found[name] = hashlib.sha256(_steady(path)).hexdigest()
    return found


def compare(expected: Dict[str, str], found: Dict[str, str]) -> str:
    """What differs, in words; "" if nothing does."""
    left = sorted(found.keys() - expected.keys())
    gone = sorted(expected.keys() - found.keys())
    other = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    parts = (("left behind", left), ("missing", gone), ("different", other))
    return "; ".join(f"{what}: {', '.join(names[:5])}" for what, names in parts if names)


def _steady(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".whl":
        return b"a zip with the time in it"
    if path.suffix != ".json":
        return data
    return json.dumps(_without_times(json.loads(data)), sort_keys=True).encode()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(own) for key, own in value.items() if key not in _VARYING}
    return [_without_times(own) for own in value] if isinstance(value, list) else value


def _stat(pid: int) -> List[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _is_alive(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] != "Z"


def _descendants(pid: int) -> List[int]:
    parents = {int(entry): _stat(int(entry)) for entry in os.listdir("/proc") if entry.isdigit()}
    found, pending = [], [pid]
    while pending:
        parent = pending.pop()
        children = [own for own, fields in parents.items() if fields and int(fields[1]) == parent]
        found += children
        pending += children
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", nargs="*", default=[])
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as own:
        return kill(options.folder or Path(own), options.n, options.seed, options.stages)


def kill(folder: Path, n: int, seed: int, names: List[str]) -> int:
    """Kill n times, all stages in turn."""
    shutil.rmtree(folder, ignore_errors=True)
    killer, findings, number = Killer(folder), 0, 0
    while sum(killer.kills.values()) < n:
        for name in names or STAGES:
            finding = killer.trial(name, f"{seed} {number}")
            if finding is not None:
                findings += 1
                print(f"FOUND {name}, seed '{seed} {number}': {finding}", flush=True)
            if sum(killer.kills.values()) >= n:
                break
        number += 1
        print(f"{sum(killer.kills.values())} kills, {findings} findings", flush=True)
    print(json.dumps(dict(killer.kills), indent=2))
    return findings


if __name__ == "__main__":
    sys.exit(int(main() > 0))
