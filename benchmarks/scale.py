"""What a hundred million sentences cost: measured rates of one core, a calculation, and a simulation of the scheduler.

    OMP_NUM_THREADS=1 python benchmarks/scale.py --data DIR --transformer FOLDER --measure
    python benchmarks/scale.py --render

`--measure` takes CPU seconds, bytes and peak memory of `label`, `aggregate` and `complete` on sentences of PubMed, each
in a process of its own, and keeps them in docs/evidence/scale.jsonl; the page docs/evidence/scale.md is calculated from
that. The pipelines that complete are initialized and not trained, which makes no difference to their speed.
"""

import argparse
import heapq
import json
import math
import random
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, NamedTuple, Optional

import spacy
from common import EVIDENCE, ROOT, find
from labeling import make_terms
from spacy.tokens import Span
from spacy.training import Example

from spacy_weakner.configs import render_config
from spacy_weakner.corpus.docbin import stream_docs, write_docs
from spacy_weakner.corpus.jsonl import read_rows
from spacy_weakner.files import folder_size, write_text
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.relabel.complete import complete

SENTENCES = 100_000_000
SHARD = 5000  # sentences
CORES = 16
PARTS_PER_CORE = 4
# Seconds until a process has loaded spaCy and a pipeline, and until a lost machine is noticed.
START, NOTICED = 8.0, 30.0
UPDATES, WORDS_PER_UPDATE = 20_000, 2000
ENCODERS = ("linear", "cnn", "transformer")
NAMES = {"linear": "complete, linear CRF", "cnn": "complete, CNN", "transformer": "complete, MiniLM"}
RATES = EVIDENCE / "scale.jsonl"


class Rate(NamedTuple):
    """What a stage costs.

    stage (str): The stage.
    n (int): Sentences.
    words (int): Their words.
    seconds (float): CPU seconds of one process; of start and loading, too.
    start (float): Those of the same stage on almost nothing.
    bytes (int): Size of what it wrote.
    memory (int): Its peak, in MB.
    """

    stage: str
    n: int
    words: int
    seconds: float
    start: float
    bytes: int
    memory: int

    @property
    def core_seconds(self) -> float:
        """RETURNS (float): Per sentence."""
        return (self.seconds - self.start) / self.n


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--transformer", type=Path)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(json.loads(arguments.child))
        return
    if arguments.measure:
        measure(arguments.data, arguments.transformer, arguments.sentences)
    rates = [Rate(**json.loads(line)) for line in RATES.read_text(encoding="utf-8").splitlines()]
    write_text(EVIDENCE / "scale.md", page(rates))


# Rates of one core


def measure(data: Path, transformer: Optional[Path], n: int) -> None:
    """Run every stage on few and on many sentences."""
    rows: List[str] = []
    with TemporaryDirectory() as place:
        folder = Path(place)
        texts = [" ".join(row["tokens"]) for _, row in read_rows(find(data / "pubmed", "unlabeled"))]
        # What takes little time is measured on more, so that loading and compiling do not hide it.
        for name, size in (("few", 100), ("some", n), ("many", 8 * n)):
            write_text(folder / f"{name}.txt", "".join(f"{text}\n" for text in islice(cycle(texts), size)))
        terms = make_terms(data, "46 thousand", folder)
        for encoder in ENCODERS:
            if encoder != "transformer" or transformer is not None:
                make_pipeline(encoder, transformer, folder)
        # Two sources, so that there is something to combine.
        sources = f'[sources.a]\nterms = "{terms}"\n\n[sources.b]\nterms = "{terms}"\nattr = "ORTH"\n'
        write_text(folder / "sources.cfg", sources)
        stages = [("label", "{}.txt", {}), ("aggregate", "{}-label", {"method": "majority"})]
        stages += [("complete", "{}-aggregate", {"model": e}) for e in ENCODERS if (folder / e).exists()]
        for stage, source, settings in stages:
            largest = "some" if stage == "complete" else "many"
            names = dict.fromkeys(("few", "some", largest))
            told = {name: run(stage, folder, source, name, settings) for name in names}
            output = folder / f"{largest}-{stage}{settings.get('model', '')}"
            docs = list(stream_docs(output))
            size = folder_size(output)
            few, many = told["few"], told[largest]
            name = NAMES[settings["model"]] if stage == "complete" else stage
            words = sum(map(len, docs))
            rate = Rate(name, len(docs), words, many["seconds"], few["seconds"], size, many["memory"])
            rows.append(json.dumps(rate._asdict()))
            print(rows[-1], flush=True)
    write_text(RATES, "".join(f"{row}\n" for row in rows))


def run(stage: str, folder: Path, source: str, name: str, settings: Dict[str, Any]) -> Dict[str, Any]:
    """Run a stage in a process of its own."""
    told = {"stage": stage, "folder": str(folder), "source": source.format(name), "name": name, "settings": settings}
    command = [sys.executable, __file__, "--child", json.dumps(told)]
    result: Dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def child(told: Dict[str, Any]) -> None:
    """Run a stage, and tell what it has cost."""
    folder, settings = Path(told["folder"]), told["settings"]
    source, output = folder / told["source"], folder / f"{told['name']}-{told['stage']}{settings.get('model', '')}"
    if told["stage"] == "label":
        label(source, output, sources=folder / "sources.cfg", sentences="none")
    elif told["stage"] == "aggregate":
        aggregate(source, output, **settings)
    else:
        complete(source, output, folder / settings["model"])
    # What `resource` says counts the parent, too.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    memory = next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"seconds": time.process_time(), "memory": memory}))


def make_pipeline(encoder: str, transformer: Optional[Path], folder: Path) -> None:
    """A pipeline with four labels that knows nothing."""
    named: Dict[str, Any] = {"transformer": str(transformer)} if encoder == "transformer" else {}
    paths = {"paths.train": str(folder / "few.spacy"), "paths.dev": str(folder / "few.spacy")}
    config = spacy.util.load_config_from_str(render_config("crf_ner", size=encoder, **named), paths, True)
    nlp = spacy.util.load_model_from_config(config, auto_fill=True)
    doc = nlp.make_doc("a b c d")
    doc.ents = [Span(doc, i, i + 1, label=name) for i, name in enumerate("ABCD")]
    write_docs(folder / "few.spacy", [doc])
    nlp.initialize(lambda: [Example(nlp.make_doc(doc.text), doc)])
    nlp.to_disk(folder / encoder)


# The scheduler


class Cluster(NamedTuple):
    """Machines.

    nodes (int): How many.
    cores (int): Of each.
    """

    nodes: int
    cores: int = CORES


def makespan(cluster: Cluster, n_shards: int, seconds: float, lost: Dict[int, float]) -> float:
    """Simulate a stage: parts of shards go to free cores, one after the other; what a lost machine has not finished
    of its parts is given out again, shard by shard finished work is kept.

    cluster (Cluster): The machines.
    n_shards (int): Shards in all.
    seconds (float): Of one shard.
    lost (Dict[int, float]): When which machine is lost.
    RETURNS (float): Seconds until all is done.
    """
    n_parts = max(2, cluster.nodes * cluster.cores * PARTS_PER_CORE)
    waiting = [n_shards // n_parts + (i < n_shards % n_parts) for i in range(n_parts)]
    waiting = [n for n in waiting if n][::-1]
    # Times at which cores become free, with the machine they belong to; and parts that come back later.
    free = [(0.0, node) for node in range(cluster.nodes) for _ in range(cluster.cores)]
    heapq.heapify(free)
    returned: List[tuple[float, int]] = []
    end = 0.0
    while waiting or returned:
        if not waiting:
            when, shards = heapq.heappop(returned)
            waiting.append(shards)
            free = [(max(at, when), node) for at, node in free]
            heapq.heapify(free)
        if not free:
            return math.inf
        at, node = heapq.heappop(free)
        if lost.get(node, math.inf) <= at:
            continue
        shards = waiting.pop()
        done = at + START + shards * seconds
        if lost.get(node, math.inf) < done:
            finished = max(0, int((lost[node] - at - START) // seconds))
            heapq.heappush(returned, (lost[node] + NOTICED, shards - finished))
            continue
        end = max(end, done)
        heapq.heappush(free, (done, node))
    return end


def with_losses(cluster: Cluster, n_shards: int, seconds: float, share: float) -> List[float]:
    """Makespans where each machine is lost with some chance, at any time of the run.

    share (float): That chance.
    RETURNS (List[float]): Of 200 draws, sorted.
    """
    draw = random.Random(0)
    usual = makespan(cluster, n_shards, seconds, {})
    result = []
    for _ in range(200):
        lost = {node: draw.uniform(0, usual) for node in range(cluster.nodes) if draw.random() < share}
        result.append(makespan(cluster, n_shards, seconds, lost))
    return sorted(result)


# The page


def page(rates: List[Rate]) -> str:
    """RETURNS (str): Markdown."""
    n_shards = SENTENCES // SHARD
    rows = header("stage", "words/s per core", "sentences/s per core", "bytes per sentence", "MB per process")
    for rate in rates:
        per_second = 1 / rate.core_seconds
        cells = [rate.stage, f"{per_second * rate.words / rate.n:,.0f}", f"{per_second:,.0f}"]
        rows.append(f"| {' | '.join([*cells, f'{rate.bytes / rate.n:,.0f}', f'{rate.memory:,}'])} |")
    losing = ("16, each lost with a chance of 1 %: mean", "95th percentile")
    hours = header("stage", "1 core", "1 machine", "16 machines", *losing, "disk")
    for rate in rates:
        seconds = rate.core_seconds * SHARD
        times = [makespan(Cluster(nodes), n_shards, seconds, {}) for nodes in (1, 16)]
        losses = with_losses(Cluster(16), n_shards, seconds, 0.01)
        shown = [n_shards * seconds, *times, mean(losses), losses[int(0.95 * len(losses))]]
        cells = [rate.stage, *map(duration, shown)]
        hours.append(f"| {' | '.join([*cells, f'{SENTENCES * rate.bytes / rate.n / 1e9:,.0f} GB'])} |")
    few = with_losses(Cluster(16), n_shards, rates[0].core_seconds * SHARD, 0.25)
    usual = makespan(Cluster(16), n_shards, rates[0].core_seconds * SHARD, {})
    return TEMPLATE.format(
        n=f"{SENTENCES:,}",
        measured=f"{rates[0].n:,}",
        length=f"{rates[0].words / rates[0].n:.0f}",
        rates="\n".join(rows),
        hours="\n".join(hours),
        shard=SHARD,
        cores=CORES,
        parts=PARTS_PER_CORE,
        start=int(START),
        noticed=int(NOTICED),
        quarter=f"{mean(few) / usual:.2f}",
        passes=f"{UPDATES * WORDS_PER_UPDATE / rates[0].words * rates[0].n / SENTENCES:.3f}",
        updates=f"{UPDATES:,}",
        words=f"{WORDS_PER_UPDATE:,}",
    )


def duration(seconds: float) -> str:
    """RETURNS (str): In hours, or minutes."""
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def header(*names: str) -> List[str]:
    """RETURNS (List[str]): The first two lines of a table."""
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


TEMPLATE = (ROOT / "docs" / "evidence" / "scale.template.md").read_text(encoding="utf-8")

if __name__ == "__main__":
    main()
