"""Whether another checkout does the same: for a rewrite of the inside that is to change no result.

    git worktree add ../before COMMIT
    python benchmarks/same.py ../before [--only stages|heads] [--folder DIR]

Runs the code of both checkouts on the demo corpus, each command in a process of its own, on one thread of the CPU and
without network. `stages`: the commands of a workflow, whose `.spacy` files must be equal byte by byte; what needs a
trained pipeline uses one that the other checkout has trained. `heads`: 50 updates of every head (`heads.py`) on what
the other's stages have written; weights and predictions must be equal. The exit code is 1 if they are not.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List

import numpy
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
HEADS = ROOT / "benchmarks" / "heads.py"
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
# Made by the other checkout, in a folder "shared" beside those that the stages run in.
SHARED = """
-m spacy_weakner init config crf_ner,token_ner configs
-m spacy_weakner prepare corpus --gold gold.jsonl --dev dev.jsonl --test test.jsonl --text text.jsonl
-m spacy train configs/crf_ner.cfg --output model --training.max_steps 50 --training.eval_frequency 50 \
    --paths.train corpus/annotated/gold.spacy --paths.dev corpus/annotated/dev.spacy
"""
MODEL = "../shared/model/model-last"
_FOLDS = f"--folds {MODEL}=gold-many.spacy"
STAGES = """
prepare corpus --gold ../shared/gold.jsonl --dev ../shared/dev.jsonl --test ../shared/test.jsonl \
    --text ../shared/text.jsonl
label corpus/text labeled --terms ../shared/terms.csv --exclude corpus/annotated
label ../shared/text.jsonl many --sources ../shared/sources.cfg --shard-size 1000
label ../shared/text.jsonl many-workers --sources ../shared/sources.cfg --shard-size 1000 --workers 2
label corpus/annotated/gold.spacy gold-many.spacy --sources ../shared/sources.cfg
aggregate labeled weak --unmatched missing
aggregate labeled weak-complete --unmatched outside
aggregate many agreement --policy agreement
aggregate many majority --method majority --soft
aggregate many weighted --method weighted --soft --gold gold-many.spacy
aggregate many label-model --method label_model
"""
COMPLETE = f"""
relabel complete weak completed {MODEL} {_FOLDS} --score log_probability --method isotonic --soft
relabel complete weak completed-all {MODEL} --rule all --broken repair {_FOLDS} --unit token --soft
relabel complete agreement completed-many {MODEL} --broken repair {_FOLDS} --unit token
"""
LAST = """
train ../shared/configs/token_ner.cfg members --members 2 --training.max_steps 20 --training.eval_frequency 20 \
    --paths.train weak-complete --paths.dev corpus/annotated/dev.spacy
relabel soften weak-complete ensemble members
"""
SOURCES = """
[sources.gazetteer]
terms = "terms.csv"
reliability = 0.8

[sources.strict]
terms = "terms.csv"
ambiguity = "first"
min_length = 5
stop = ["tin"]

[sources.answers]
file = "answers.jsonl"
min_score = 0.1
reliability = 0.6

[sources.model]
pipeline = "model/model-last"
"""


def main() -> None:
    """Run what is asked for with both checkouts, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--only", choices=["stages", "heads"])
    parser.add_argument("--folder", type=Path, help="folder for all files, to keep them (default: a temporary one)")
    arguments = parser.parse_args()
    other = arguments.other.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        for name in ("shared", "before", "after"):
            (folder / name).mkdir(parents=True)
        for checkout in (other, ROOT):
            write_entry_points(checkout)
        make_shared(other, folder / "shared")
        same = []
        run_stages(other, folder / "before")
        if arguments.only != "heads":
            run_stages(ROOT, folder / "after")
            same.append(compare_files(folder / "before", folder / "after"))
        if arguments.only != "stages":
            for checkout, name in ((other, "before"), (ROOT, "after")):
                run(checkout, folder / "before", [str(HEADS), ".", f"../{name}.npz"], tell=True)
            same.append(compare_heads(folder / "before.npz", folder / "after.npz"))
    sys.exit(not all(same))


def write_entry_points(checkout: Path) -> None:
    """Let Python find what the checkout registers: its egg-info, which git ignores, is made where it is out of date."""
    written, declared = checkout / "spacy_weakner.egg-info" / "entry_points.txt", checkout / "setup.cfg"
    if not written.exists() or written.stat().st_mtime < declared.stat().st_mtime:
        run(checkout, checkout, ["-c", "import setuptools; setuptools.setup()", "-q", "egg_info"])


def make_shared(checkout: Path, folder: Path) -> None:
    """Make what both checkouts read: the demo corpus, weak sources, configs and a trained pipeline."""
    run(checkout, folder, [str(ROOT / "assets" / "demo" / "make_corpus.py"), ".", "--train", "2000"])
    draw = random.Random(0)
    with (folder / "answers.jsonl").open("w", encoding="utf-8") as file_:
        for line in (folder / "text-gold.jsonl").read_text(encoding="utf-8").splitlines()[::2]:
            row = json.loads(line)
            ents = [[*ent, round(draw.random(), 3)] for ent in row["ents"]]
            file_.write(json.dumps({"tokens": row["tokens"], "ents": ents}) + "\n")
    (folder / "sources.cfg").write_text(SOURCES, encoding="utf-8")
    for line in SHARED.strip().splitlines():
        run(checkout, folder, shlex.split(line))


def run_stages(checkout: Path, folder: Path) -> None:
    """Run all stages with the code of a checkout."""
    for line in (STAGES + COMPLETE + LAST).split("\n"):
        if line:
            run(checkout, folder, ["-m", "spacy_weakner", *shlex.split(line)])


def run(checkout: Path, folder: Path, arguments: List[str], tell: bool = False) -> None:
    """Run Python with the code of a checkout.

    checkout (Path): The checkout.
    folder (Path): Where to run.
    arguments (List[str]): Those of Python.
    tell (bool): Whether to show what it prints; else one line says what was run.
    """
    started = time.perf_counter()
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(checkout)}
    command = [sys.executable, *arguments]
    output = None if tell else subprocess.PIPE
    done = subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True)
    shown = " ".join(arguments).removeprefix("-m spacy_weakner ")
    print(f"{time.perf_counter() - started:7.1f} s  {folder.name}: {shown[:100]}", flush=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout or ''}\n{checkout}: failed in {folder}: {shown}")


def compare_files(before: Path, after: Path) -> bool:
    """Compare all `.spacy` files byte by byte.

    before (Path): A folder.
    after (Path): Another.
    RETURNS (bool): Whether they hold the same.
    """
    names = sorted({path.relative_to(root) for root in (before, after) for path in root.rglob("*.spacy")})
    differ = [name for name in names if contents(before / name) != contents(after / name)]
    print(f"{len(names) - len(differ)} of {len(names)} .spacy files are equal")
    for name in differ:
        print(f"  differs: {name}")
    return bool(names) and not differ


def contents(path: Path) -> bytes:
    """RETURNS (bytes): Those of the file; none where there is no file."""
    return path.read_bytes() if path.exists() else b""


def compare_heads(before: Path, after: Path) -> bool:
    """Compare what `heads.py` has written, and print for each head how large the largest differences are.

    before (Path): A file of arrays.
    after (Path): Another.
    RETURNS (bool): Whether all weights and predictions are equal. (The losses may differ in the last bit.)
    """
    old, new = dict(numpy.load(before)), dict(numpy.load(after))
    heads = list(dict.fromkeys(key.partition("/")[0] for key in old))
    n_equal = 0
    for head in heads:
        losses, weights, predictions = (
            largest_difference(old, new, f"{head}/{kind}") for kind in ("losses", "weights", "predictions")
        )
        n_equal += weights == predictions == 0
        told = "equal" if predictions == 0 else "other"
        print(f"  {head}: losses {losses:.2g}, weights {weights:.2g}, predictions {told}")
    print(f"{n_equal} of {len(heads)} heads have equal weights and predictions")
    return n_equal == len(heads)


def largest_difference(before: Dict[str, NDArray], after: Dict[str, NDArray], prefix: str) -> float:
    """RETURNS (float): Of the arrays whose keys begin so; infinite if these have other names or shapes."""
    old, new = ({key: a for key, a in arrays.items() if key.startswith(prefix)} for arrays in (before, after))
    if {key: a.shape for key, a in old.items()} != {key: a.shape for key, a in new.items()}:
        return float("inf")
    return max(
        (float(abs(a.astype("f8") - new[key].astype("f8")).max(initial=0)) for key, a in old.items()), default=0.0
    )


if __name__ == "__main__":
    main()
