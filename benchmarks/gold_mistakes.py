"""How many planted mistakes in the gold a project finds.

    nice -n 10 python benchmarks/gold_mistakes.py --data DIR

Projects are those of best.py, size linear, 250 gold sentences. Of 5 % of their entities, every second one is removed
from the gold, and one border of the others is moved by a token. A listed mistake counts as found if it overlaps a
planted one. The ranking was chosen on samples of train; samples of test measure it.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any, Dict, List, Set, Tuple

from best import COLUMNS, language, make_files, read_rows, run_project, write_rows
from common import EVIDENCE, ROOT, versions

from spacy_weakner.project.mistakes import MISTAKES
from spacy_weakner.project.new import init_project

GOLD, SHARE, TEXTS = 250, 0.05, 4000
ROWS = EVIDENCE / "gold-mistakes.jsonl"
Span = Tuple[int, int, str]


def main() -> None:
    """Append the rows of all samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--columns", default="conll03,bc5cdr")
    parser.add_argument("--samples", default="train:1,train:2,test:0", help="split and seed of each sample")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "gold-mistakes")
    arguments = parser.parse_args()
    for column in arguments.columns.split(","):
        for sample in arguments.samples.split(","):
            split, _, seed = sample.partition(":")
            run(column, split, int(seed), arguments)


def run(column: str, split: str, seed: int, arguments: argparse.Namespace) -> None:
    """Plant mistakes in a sample, run its project, and append a row."""
    folder = arguments.work / f"{column}-{split}-{seed}"
    COLUMNS[column] = COLUMNS[column]._replace(gold=split)
    files, _, _ = make_files(arguments.data, column, GOLD, seed, folder / "files")
    train = read_rows(arguments.data / COLUMNS[column].folder, "train")
    if split != "train":  # the text is always from train
        write_rows(files["text"], [{key: row[key] for key in ("id", "tokens")} for row in train[:TEXTS]])
    gold = [json.loads(line) for line in files["gold"].read_text(encoding="utf-8").splitlines()]
    n_entities, planted = sum(len(each["ents"]) for each in gold), plant(gold, seed)
    write_rows(files["gold"], gold)
    if not (folder / "project").exists():
        lang, tokenizer = language(column)
        init_project(folder / "project", size="linear", lang=lang, tokenizer=tokenizer, **files)  # type: ignore[arg-type]
    run_project(folder, "--vars.processes", "1")
    hits, found = [], set()
    for id_, spans in listed(folder, gold):
        near = {span for span in planted.get(id_, ()) if any(overlap(span, other) for other in spans)}
        hits.append(bool(near))
        found |= {(id_, span) for span in near}
    row = {"dataset": column, "split": split, "seed": seed, "strong": GOLD, "entities": n_entities}
    row |= {"planted": sum(map(len, planted.values())), "found": len(found), "listed": len(hits)}
    row |= {"hits": sum(hits), "hits_of_first_10": sum(hits[:10]), "versions": versions()}
    print(row, flush=True)
    with ROWS.open("a", encoding="utf-8") as file_:
        file_.write(json.dumps(row) + "\n")


def plant(gold: List[Dict[str, Any]], seed: int) -> Dict[str, List[Span]]:
    """Change rows of gold; return the tokens of the mistakes by sentence."""
    rng = random.Random(f"plant {seed}")
    places = [(row, tuple(entity)) for row in gold for entity in row["ents"]]
    planted: Dict[str, List[Span]] = {}
    for n, (row, (start, end, label)) in enumerate(rng.sample(places, round(SHARE * len(places)))):
        rest = [entity for entity in row["ents"] if tuple(entity) != (start, end, label)]
        moves = [(start - 1, end), (start + 1, end), (start, end - 1), (start, end + 1)]
        moves = [
            (a, b)
            for a, b in moves
            if 0 <= a < b <= len(row["tokens"]) and not any(overlap((a, b, label), other) for other in rest)
        ]
        moved = [[*rng.choice(moves), label]] if n % 2 and moves else []
        row["ents"] = sorted([*rest, *moved])
        bounds = [(start, end), *((a, b) for a, b, _ in moved)]
        planted.setdefault(row["id"], []).append((min(a for a, _ in bounds), max(b for _, b in bounds), label))
    return planted


def listed(folder: Path, gold: List[Dict[str, Any]]) -> List[Tuple[str, Set[Span]]]:
    """Return the listed mistakes, the most probable first: sentence and changed entities."""
    before = {row["id"]: {tuple(entity) for entity in row["ents"]} for row in gold}
    found = []
    for line in (folder / "project" / "training" / MISTAKES).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        changed = sorted(before[row["id"]] ^ {tuple(entity) for entity in row["weak_ents"]["suggested"]})
        groups: List[Set[Span]] = []
        for span in changed:
            if not groups or not any(overlap(span, other) for other in groups[-1]):
                groups.append(set())
            groups[-1].add(span)
        found += [(row["id"], group) for group in groups]
    return found


def overlap(one: Any, other: Any) -> bool:
    """Whether two spans have a common token."""
    return bool(one[0] < other[1] and other[0] < one[1])


if __name__ == "__main__":
    main()
