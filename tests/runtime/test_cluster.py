"""`label` on a Ray cluster: the same shards, whatever is lost on the way."""

import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from spacy_weakner.corpus.docbin import UNFINISHED
from spacy_weakner.errors import WeaknerError
from spacy_weakner.files import write_text
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.own_code import OWN_CODE, import_own_code
from spacy_weakner.runtime import cluster
from spacy_weakner.runtime.cluster import connected

from ..conftest import hide_torch
from ..util import contents

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")]
SIZE, N = 50, 1200


@pytest.fixture(scope="module", autouse=True)
def without_torch_in_all(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        hide_torch(tmp_path_factory.mktemp("site"), monkeypatch)
        yield


@pytest.fixture(scope="module")
def machine(without_torch_in_all):
    import ray

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def folder(tmp_path):
    words = ["alpha", "beta", "gamma", "delta"]
    texts = (f"{words[i % 4]} met {words[i % 3]} number{i}" for i in range(N))
    write_text(tmp_path / "in.txt", "".join(f"{text}\n" for text in texts))
    write_text(tmp_path / "terms.csv", "label,term\nA,alpha\nB,beta met\n")
    return tmp_path


def run(folder, out, **settings):
    settings = {"terms": folder / "terms.csv", "lang": "xx", "shard_size": SIZE, **settings}
    return label(folder / "in.txt", folder / out, **settings)


OWN = """
from spacy import registry, util


@registry.tokenizers("of_a_cluster.v1")
def own():
    return util.registry.tokenizers.get("spacy_weakner.WordTokenizer.v1")()
"""


def leftovers(folder):
    return [path for path in folder.rglob("*") if path.name.startswith(".") and path.name != UNFINISHED]


def ray_workers():
    """Processes that are making shards now."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::_run"):
            found.append(int(pid))
    return found


def test_a_cluster_gives_the_same_bytes(machine, folder):
    whole = run(folder, "one", workers=2)
    there = run(folder, "cluster", ray="auto")
    assert contents(folder / "one") == contents(folder / "cluster")
    assert there == whole and there.written == N // SIZE
    assert run(folder, "cluster", ray="auto").skipped == N // SIZE
    assert not leftovers(folder)


def test_other_stages(machine, folder):
    run(folder, "labeled")
    reports = [
        aggregate(folder / "labeled", folder / name, method="majority", **settings)
        for name, settings in (("one", {}), ("there", {"ray": "auto"}))
    ]
    assert reports[0] == reports[1] and reports[1].written == N // SIZE
    assert contents(folder / "one") == contents(folder / "there")
    assert not leftovers(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_gpus_that_are_not_there(machine, folder):
    with pytest.raises(WeaknerError, match=r"WK719.*no GPU"):
        run(folder, "out", ray="auto", gpu_id=1)
    with pytest.raises(WeaknerError, match=r"WK005.*gpu_id"):
        run(folder, "out", ray="auto", gpu_id=-5)
    assert not leftovers(folder)


@pytest.mark.cluster
def test_a_worker_that_is_killed_is_replaced(machine, folder):
    run(folder, "one")
    killed = []

    def kill():
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            for pid in ray_workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.02)

    thread = threading.Thread(target=kill)
    thread.start()
    run(folder, "out", ray="auto")
    thread.join()
    assert killed
    assert contents(folder / "one") == contents(folder / "out")
    assert not leftovers(folder)


@pytest.mark.parametrize(
    "field, other, message",
    [
        ("python", "2.7", "a different Python: 2.7 instead of 3.*spaCy"),
        ("code", "0", "a different version of spacy_weakner: 0 instead of"),
        ("nonce", "", "a different output folder: a folder with other contents"),
    ],
)
def test_machines_must_be_alike(machine, folder, monkeypatch, field, other, message):
    here = os.getpid()

    def look(*places, real=cluster.look):
        return real(*places) if os.getpid() == here else real(*places)._replace(**{field: other})

    monkeypatch.setattr(cluster, "look", look)
    with pytest.raises(WeaknerError, match=f"WK722.*{message}"):
        run(folder, "out", ray="auto")
    assert not leftovers(folder)


def test_handlers_of_signals_are_kept(machine, tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with connected("auto", tmp_path):
        pass
    assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]


def test_settings(folder, monkeypatch):
    with pytest.raises(WeaknerError, match="WK312"):
        run(folder, "out.spacy", ray="auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(WeaknerError, match=r"WK350.*spacy_weakner\[ray\]"):
        run(folder, "out", ray="auto")
    assert not leftovers(folder)


# A cluster of several machines, as processes of its own; it would not go together with that of the others.

LOSING = """
import sys, threading, time
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from spacy_weakner.labeling.label import label

folder = Path(sys.argv[1])
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False)

def lose():
    while len(list((folder / "out").glob("*.spacy"))) < 2:
        time.sleep(0.02)
    cluster.remove_node(nodes[0], allow_graceful=False)

thread = threading.Thread(target=lose)
thread.start()
label(folder / "in.txt", folder / "out", terms=folder / "terms.csv", lang="xx", shard_size=50, ray="auto")
thread.join()
print("one was lost")
"""


@pytest.mark.cluster
def test_a_machine_that_is_lost(folder):
    run(folder, "one")
    done = subprocess.run([sys.executable, "-c", LOSING, str(folder)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "one was lost" in done.stdout
    # What the lost machine was writing may stay behind until the next run, which makes nothing.
    assert run(folder, "out").skipped == N // SIZE
    assert contents(folder / "one") == contents(folder / "out")


@pytest.mark.cluster
def test_a_driver_that_is_killed_goes_on_where_it_was(folder):
    run(folder, "one")
    command = [sys.executable, "-m", "spacy_weakner", "label", "in.txt", "out", "--terms", "terms.csv"]
    command += ["--lang", "xx", "--shard-size", "20", "--ray", "auto"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list((folder / "out").glob("*.spacy")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    time.sleep(3)  # until what it has started has noticed
    report = run(folder, "out", shard_size=20)
    assert report.docs == N
    assert not leftovers(folder)
    whole = run(folder, "again", shard_size=20)
    assert contents(folder / "again") == contents(folder / "out") and whole.docs == N


def test_code_of_ones_own(machine, folder, monkeypatch):
    write_text(folder / "own.py", OWN)
    monkeypatch.setenv(OWN_CODE, str(folder / "own.py"))
    import_own_code()
    report = run(folder, "own", tokenizer="of_a_cluster.v1", ray="local")
    assert report.docs == N and len([*(folder / "own").glob("*.spacy")]) == N // SIZE
