"""Every head on a GPU and on the CPU: does it train and predict there, how fast, and with how much memory.

    python benchmarks/gpu.py --data DIR --transformer FOLDER [--seconds 480] [--write]
    python benchmarks/gpu.py --devices cpu --sizes cnn --heads crf_ner --updates 1 --sentences 16

First every head runs through its tests on the GPU (`tests/heads/test_device.py`): training, prediction and storage
give there what they give on the CPU. Then each head is trained and predicts on each device in a process of its own, so
that memory is its own and a failure is one row; what would begin after `--seconds` is left out, and said. `--write`
keeps docs/evidence/gpu.md. Without `--data` sentences of random words are read. What a GPU has trained has to predict
the same on the CPU.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List

import spacy
import torch
from common import EVIDENCE, find
from prediction import predict
from spacy.language import Language
from thinc.api import Adam, prefer_gpu
from timing import random_words
from trained import BATCH, LABELS, RATES, Rows, pipeline, read, update

from spacy_weakner.files import write_text
from spacy_weakner.labeling.label import label
from spacy_weakner.runtime.devices import on_device

ROOT = Path(__file__).resolve().parent.parent
DEVICES = {"gpu": 0, "cpu": -1}
HEADS = ("crf_ner", "token_ner", "span_ner", "mrc_ner")
LABEL = "label"  # the stage, with a pipeline of the size as its source
WARM = 3  # updates before the clock starts
PAGE = """# GPU and CPU

`python benchmarks/gpu.py --data DIR --transformer MINILM_FOLDER --write`: words per second of updates (batches of
{batch} sentences) and of predictions (`label`: loading included); memory is the peak of a process of its own, on a GPU
that of the GPU. `same`: how many entities the trained pipeline finds on the CPU too, of all that it finds here or
there.

{matrix}{table}

{notes}{conditions}
"""


def main() -> None:
    """Run what there is time for, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--transformer", default="")
    parser.add_argument("--devices", default="gpu,cpu")
    parser.add_argument("--sizes", default="transformer,cnn", help="without --transformer: cnn")
    parser.add_argument("--heads", default=",".join([*HEADS, LABEL]))
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--sentences", type=int, default=1000, help="to predict")
    parser.add_argument("--seconds", type=float, default=480, help="when no other head is begun")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/gpu.md")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        child(json.loads(arguments.child))
        return
    if "gpu" in arguments.devices.split(",") and not prefer_gpu():
        raise SystemExit("Thinc finds no GPU here: give --devices cpu, or install the extra of your CUDA version.")
    started = time.monotonic()
    sizes = [size for size in arguments.sizes.split(",") if arguments.transformer or size != "transformer"]
    asked = [(size, head, device) for size in sizes for head in arguments.heads.split(",") for device in DEVICES]
    matrix = run_matrix(arguments.seconds) if "gpu" in arguments.devices.split(",") else ""
    rows: List[Dict[str, Any]] = []
    late: List[str] = []
    with TemporaryDirectory() as folder:
        sentences = Path(folder) / "sentences.json"
        write_text(sentences, json.dumps(make_rows(arguments)))
        ends = started + arguments.seconds
        for size, head, device in asked:
            if device not in arguments.devices.split(","):
                continue
            name = f"{head}, {size}, {device}"
            left = ends - time.monotonic()
            if left <= 0:
                late.append(name)
                continue
            told = {"head": head, "size": size, "device": device, "sentences": str(sentences)}
            told.update({"transformer": arguments.transformer, "updates": arguments.updates})
            rows.append({"name": name, **told, **run(told, left)})
            print(json.dumps({key: rows[-1][key] for key in ("name", *COLUMNS) if key in rows[-1]}), flush=True)
    page = PAGE.format(matrix=matrix, batch=BATCH, table=table(rows), notes=notes(rows, late), conditions=conditions())
    print(page)
    if arguments.write:
        write_text(EVIDENCE / "gpu.md", page)
    if any("failed" in row for row in rows):
        raise SystemExit(1)


def run_matrix(seconds: float) -> str:
    """RETURNS (str): How many of the heads' tests pass on the GPU, with the names of those that fail."""
    # All of them: by default, those with a Transformer are left out.
    options = ["-q", "-n", "0", "-m", "", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "tests/heads/test_device.py"]
    environment = {**os.environ, "WEAKNER_DEVICE": "gpu"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds / 2, check=False
        )
    except subprocess.TimeoutExpired:
        return "The tests of the heads took too long.\n\n"
    lines = done.stdout.strip().splitlines()
    print(done.stdout[-3000:], flush=True)
    failed = [line.split(" - ")[0].split("::")[-1] for line in lines if line.startswith("FAILED")]
    told = f" Failed: {', '.join(failed)}." if failed else ""
    return f"Tests of the heads on the GPU: {lines[-1] if lines else 'none'}.{told}\n\n"


def make_rows(arguments: argparse.Namespace) -> Dict[str, Rows]:
    """Sentences to train on, and to predict."""
    n = {"train": BATCH * (arguments.updates + WARM), "test": arguments.sentences}
    if arguments.data is not None:
        return {split: list(read(find(arguments.data / "bc5cdr", split)))[:size] for split, size in n.items()}
    made: Dict[str, Rows] = {}
    for split, size in n.items():
        texts = [random_words(seed, 10 + seed % 20) for seed in range(size)]
        made[split] = [(words, [(i % 7, i % 7 + 1 + i % 2, LABELS[i % 2])]) for i, words in enumerate(texts)]
    return made


def run(told: Dict[str, Any], seconds: float) -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): What one head costs on one device; "failed" if it could not be run."""
    command = [sys.executable, __file__, "--child", json.dumps(told)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": "it took too long"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    found: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# In the process of one head


def child(told: Dict[str, Any]) -> None:
    """Run a head, or a stage, and tell what it has cost."""
    warnings.filterwarnings("ignore")
    rows = json.loads(Path(told["sentences"]).read_text(encoding="utf-8"))
    train, test = ([(words, [tuple(e) for e in gold]) for words, gold in rows[split]] for split in ("train", "test"))
    gpu_id = DEVICES[told["device"]]
    with TemporaryDirectory() as folder:
        with on_device(gpu_id):
            if told["head"] == LABEL:
                found = run_label(told, train, test, gpu_id, Path(folder))
            else:
                found = run_head(told, train, test, Path(folder))
            found["memory"] = peak_memory(told["device"])
        if told["head"] != LABEL:
            with on_device(-1):
                found["same"] = same(spacy.load(Path(folder) / "trained"), test, found.pop("entities"))
    print(json.dumps(found))


def run_head(told: Dict[str, Any], train: Rows, test: Rows, folder: Path) -> Dict[str, Any]:
    """Train, predict and save."""
    size = told["size"]
    nlp, examples = pipeline(told["head"], size, told["transformer"], train)
    optimizer = Adam(RATES[size])
    update(nlp, examples, optimizer, WARM)
    synchronize(told["device"])
    started = time.perf_counter()
    n_words = update(nlp, examples[WARM * BATCH :], optimizer, told["updates"])
    synchronize(told["device"])
    trained = n_words / (time.perf_counter() - started)
    predict(nlp, test[:BATCH])()
    started = time.perf_counter()
    docs = predict(nlp, test)()
    predicted = sum(map(len, docs)) / (time.perf_counter() - started)
    nlp.to_disk(folder / "trained")
    return {"trained": trained, "predicted": predicted, "entities": entities(docs)}


def run_label(told: Dict[str, Any], train: Rows, test: Rows, gpu_id: int, folder: Path) -> Dict[str, Any]:
    """Label with a pipeline as the source; loading it is part of the time."""
    nlp, _ = pipeline("crf_ner", told["size"], told["transformer"], train[:BATCH])
    nlp.to_disk(folder / "source")
    text = folder / "text.jsonl"
    write_text(text, "".join(json.dumps({"tokens": words, "ents": None}) + "\n" for words, _ in test))
    started = time.perf_counter()
    label(text, folder / "labeled.spacy", pipeline=str(folder / "source"), source="model", gpu_id=gpu_id)
    return {"predicted": sum(len(words) for words, _ in test) / (time.perf_counter() - started)}


def entities(docs: List[Any]) -> List[List[Any]]:
    """RETURNS (List[List[Any]]): As JSON holds them."""
    return [[[ent.start, ent.end, ent.label_] for ent in doc.ents] for doc in docs]


def same(nlp: Language, test: Rows, expected: List[List[Any]]) -> str:
    """RETURNS (str): How many of the expected entities are found again, of all that are found here or were there."""
    pairs = list(zip(entities(predict(nlp, test)()), expected, strict=True))
    both = sum(entity in there for here, there in pairs for entity in here)
    return f"{both:,} of {sum(len(here) + len(there) for here, there in pairs) - both:,}"


def synchronize(device: str) -> None:
    """A GPU goes on while Python is told that it is done."""
    if device == "gpu":
        torch.cuda.synchronize()


def peak_memory(device: str) -> int:
    """RETURNS (int): In MB."""
    if device == "gpu":
        free, whole = torch.cuda.mem_get_info()
        # torch's own peak, and what CuPy and the context hold now.
        held = whole - free - torch.cuda.memory_reserved()
        return int((torch.cuda.max_memory_reserved() + held) / 2**20)
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


# The page

COLUMNS = {"trained": "updates, words/s", "predicted": "predictions, words/s", "memory": "MB", "same": "same"}


def table(rows: List[Dict[str, Any]]) -> str:
    """RETURNS (str): A row for each that ran."""
    lines = [f"| head | encoder | device | {' | '.join(COLUMNS.values())} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for row in rows:
        if "failed" not in row:
            values = [row.get(key, "") for key in COLUMNS]
            shown = [value if isinstance(value, str) else f"{value:,.0f}" for value in values]
            lines.append(f"| `{row['head']}` | {row['size']} | {row['device']} | {' | '.join(shown)} |")
    return "\n".join(lines)


def notes(rows: List[Dict[str, Any]], late: List[str]) -> str:
    """RETURNS (str): What failed, and what there was no time for."""
    lines = [f"Failed: {row['name']}: {row['failed']}\n" for row in rows if "failed" in row]
    return "\n".join([*lines, *([f"No time was left for: {'; '.join(late)}.\n"] if late else []), ""])


def conditions() -> str:
    """RETURNS (str): On what it was measured."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("spacy", "thinc", "torch"))
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    machine = f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, threads: {threads}"
    return f"Each once; {gpu}; {versions}; {machine}."


if __name__ == "__main__":
    main()
