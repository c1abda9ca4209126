"""Processes that end with the one that has started them; trainings that are killed."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue

import pytest
import spacy.cli

from spacy_weakner.runs import trainer, training
from spacy_weakner.runs.training import train_one
from spacy_weakner.scratch import wanted

SLEEPER = """
import os, time
def main(tell, requests):
    os.write(1, f"to the log {os.getpid()}\\n".encode())
    time.sleep(60)
"""
PARENT = """
import os, sys, time
from pathlib import Path
from spacy_weakner.runtime.child import start
start("sleeper", Path("log"), os.environ)
while not Path("log").read_text():
    time.sleep(0.01)
print(Path("log").read_text().split()[-1], flush=True)
time.sleep(60)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ends(pid, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks into /proc")
def test_a_process_ends_with_its_parent_however_that_ends(here):
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    assert ends(child)


def test_a_full_disk_ends_a_training_with_one_line(monkeypatch, tmp_path):
    told, requests = [], SimpleQueue()

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spacy.cli, "setup_cli", full)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(os, "_exit", sys.exit)
    monkeypatch.setattr(os, "dup2", lambda one, other: None)  # of this process
    (tmp_path / "member-0").mkdir()
    (tmp_path / "member-0" / "log").touch()
    requests.put(json.dumps({"arguments": [], "log": str(tmp_path / "member-0" / "log")}))
    with pytest.raises(SystemExit):
        trainer.main(told.append, requests)
    (error,) = told
    assert "WK785" in str(error) and "member-0 could not be written: No space left" in str(error)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_a_killed_run_still_writes_never_reaches_a_member(tmp_path, monkeypatch):
    config = tmp_path / "c.cfg"
    config.write_text("[training]\nmax_steps = 1\n")
    late = []

    def fake(config, output, overrides, gpu_id, trainers):
        assert output != tmp_path / "out" / "a" and wanted(output) == tmp_path / "out" / "a"
        (output / "model-last").mkdir()
        (output / "model-last" / "weights").write_text("half")
        if os.getpid() != pytest_process:
            (tmp_path / "late").write_text(str(output))
            os.kill(os.getpid(), signal.SIGKILL)
        late.append(Path((tmp_path / "late").read_text()))
        (output / "model-last" / "weights").write_text("whole")

    pytest_process = os.getpid()
    monkeypatch.setattr(training, "_run", fake)
    child = os.fork()
    if not child:
        train_one(config, tmp_path / "out" / "a", {})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (tmp_path / "out" / "a" / "model-last").exists()
    assert not train_one(config, tmp_path / "out" / "a", {}).skipped
    # The folder that a training of the killed run may still write to is gone, and was never that of the member.
    assert not late[0].exists() and late[0] != tmp_path / "out" / "a"
    assert train_one(config, tmp_path / "out" / "a", {}).skipped
    assert (tmp_path / "out" / "a" / "model-last" / "weights").read_text() == "whole"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a"]
