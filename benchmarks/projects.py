"""From a stranger's files to a packaged pipeline: what `init project` and `weasel run all` make of them.

    python benchmarks/projects.py --data DIR --gold 100 --seeds 0

Files are made as users have them: gold sentences of train, the other train sentences as text without gold, a term list,
and for CoNLL-2003 the answers of a language model. Neither dev nor test is given: the project chooses by
cross-validation. What it packaged, and what it compared, is then scored on the data set's test.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

from common import EVIDENCE, ROOT, Evidence, Run, find, table

from spacy_weakner.files import read_lines, write_text
from spacy_weakner.project.new import init_project
from spacy_weakner.project.verdict import Verdict
from spacy_weakner.quality.compare import compare
from spacy_weakner.stages.convert import convert

TOKENIZER = "spacy_weakner.WordTokenizer.v1"
# Term lists that were not made from the gold. That of OA-Mine is: it is made anew from other titles.
DATASETS = {"bc5cdr": "gazetteer", "conll03": "gazetteer", "oa-mine": None}
ANSWERS = {"conll03": "train-chatgpt"}
TEXTS = 4000
METHODS = ["match", "gold alone", "weak and gold", "NEEDLE", "packaged"]
Rows = List[Dict[str, Any]]


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--gold", default="100")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "projects")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / "projects.jsonl")
    if not arguments.render:
        for dataset in arguments.datasets.split(","):
            for gold in map(int, arguments.gold.split(",")):
                for seed in map(int, arguments.seeds.split(",")):
                    run(arguments.data / dataset, dataset, gold, seed, arguments.work, evidence)
    write_text(EVIDENCE / "projects.md", page(evidence.rows()))


def run(data: Path, dataset: str, n_gold: int, seed: int, work: Path, evidence: Evidence) -> None:
    """One project, if its row is missing."""
    this = Run("projects", dataset, "cnn", "quick", "packaged", seed, n_gold, TEXTS)
    if any({**this._asdict(), "weak": row["weak"]}.items() <= row.items() for row in evidence.rows()):
        return
    folder = work / dataset / f"{n_gold}-{seed}"
    files, weak = make_files(data, dataset, n_gold, seed, folder / "files")
    project = folder / "project"
    if not project.exists():
        init_project(project, tokenizer=TOKENIZER, **files)  # type: ignore[arg-type]
    started, cpu = time.perf_counter(), cpu_seconds()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "log.txt").open("w", encoding="utf-8") as log:
        command = [sys.executable, "-m", "weasel", "run", "all", str(project)]
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT, env=environment)
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    verdict = Verdict.load(project / "training" / "verdict.json")
    test = folder / "test.spacy"
    convert(find(data, "test"), test, tokenizer=TOKENIZER, overwrite=True)
    rows = compare(test, {each.name: project / each.path for each in verdict.contenders}, bootstrap=0)
    for row in rows:
        method = "match" if row.name == "term list" else row.name
        add(evidence, this._replace(method=method, weak=weak), row, 0.0, 0.0)
    best = next(row for row in rows if row.name == verdict.winner)
    chosen = {"chosen": verdict.winner, "chosen_f1": {each.name: each.f1 for each in verdict.contenders}}
    add(evidence, this._replace(weak=weak), best, seconds, cpu, **chosen)


def add(evidence: Evidence, run: Run, row: Any, seconds: float, cpu: float, **more: Any) -> None:
    """Append a row, with the CPU seconds of the whole project."""
    evidence.add(run, row.counts, seconds, row.words_per_second or 0.0)
    lines = evidence.path.read_text(encoding="utf-8").splitlines()
    lines[-1] = json.dumps({**json.loads(lines[-1]), "cpu_seconds": round(cpu), **more})
    write_text(evidence.path, "\n".join(lines) + "\n")


def make_files(data: Path, dataset: str, n_gold: int, seed: int, folder: Path) -> Tuple[Dict[str, Path], int]:
    """The files that a user has, and how many texts there are."""
    rows: Rows = [json.loads(line) for line in read_lines(find(data, ANSWERS.get(dataset, "train")))]
    random.Random(seed).shuffle(rows)
    gold, others = rows[:n_gold], rows[n_gold : n_gold + TEXTS]
    files = {"gold": folder / "gold.jsonl", "text": folder / "text.jsonl"}
    write_rows(files["gold"], [{key: row[key] for key in ("id", "tokens", "ents")} for row in gold])
    write_rows(files["text"], [{key: row[key] for key in ("id", "tokens")} for row in others])
    if dataset in ANSWERS:
        files["answers"] = folder / "answers.jsonl"
        answered = [{"id": row["id"], "tokens": row["tokens"], "ents": row["weak_ents"]} for row in gold + others]
        write_rows(files["answers"], answered)
    files["terms"] = folder / "terms.jsonl"
    if DATASETS[dataset] is not None:
        lines = read_lines(find(data, str(DATASETS[dataset])))
        write_text(files["terms"], "\n".join(lines) + "\n")
    else:
        # Phrases of half of the other titles, as somebody may have written them down.
        seen = {(label, " ".join(r["tokens"][a:b])) for r in others[: len(others) // 2] for a, b, label in r["ents"]}
        write_rows(files["terms"], [{"label": label, "term": term} for label, term in sorted(seen)])
    return files, len(others)


def write_rows(path: Path, rows: Rows) -> None:
    """Write JSONL."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def cpu_seconds() -> float:
    """RETURNS (float): CPU time of all processes that were started here and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def page(rows: Rows) -> str:
    """Fill the page."""
    text = (EVIDENCE / "projects.template.md").read_text(encoding="utf-8")
    packaged = [row for row in rows if row["method"] == "packaged"]
    lines = ["| data | gold | seed | chosen | F1 where chosen | F1 on test | minutes | CPU minutes |", "|---" * 8 + "|"]
    for row in sorted(packaged, key=lambda row: (row["dataset"], row["strong"], row["seed"])):
        told = f"{row['chosen_f1'][row['chosen']]:.1f} | {row['f1']:.1f} | {row['seconds'] / 60:.1f}"
        head = f"{row['dataset']} | {row['strong']} | {row['seed']} | {row['chosen']}"
        lines.append(f"| {head} | {told} | {row['cpu_seconds'] / 60:.1f} |")
    return text.replace("{chosen}", "\n".join(lines)).replace(
        "{test}", table(rows, ("dataset", "strong", "method"), METHODS)
    )


if __name__ == "__main__":
    main()
