"""From a stranger's files to a packaged pipeline: what `init project` and `weasel run all` make of them.

    python benchmarks/best.py --data DIR --size cnn --gold 250 --seeds 0

Files are made as users have them: gold sentences, other sentences as text without labels, a term list. Neither dev nor
test is given: the project chooses by cross-validation of the gold. What it packaged, and all that it compared, is then
scored on the data set's test.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import best_page
from best_page import ALONE, BEST, SAME_GOLD, Rows
from common import EVIDENCE, ROOT, Cost, Evidence, Run, find

from spacy_weakner.conversion.convert import convert
from spacy_weakner.evaluation.compare import compare
from spacy_weakner.files import read_lines, write_text
from spacy_weakner.project.new import init_project
from spacy_weakner.project.rules import TERM_LIST
from spacy_weakner.project.selection import Selection

WORDS, CHARACTERS = "spacy_weakner.WordTokenizer.v1", "spacy.zh.ChineseTokenizer"
TEXTS = 4000
# Held out of the training sentences where only these have labels of a source.
HELD_OUT = 3450
# The configs that train a Transformer are for MiniLM. MPNet-base has twice as many layers, each four times as large.
MPNET = {"initial_rate": 5e-5, "frozen_layers": 4}


class Column(NamedTuple):
    """What a user has.

    folder (str): Data set.
    gold (str): The split that gold is drawn from; its other sentences are the text.
    terms (str): Where the term list comes from: "gazetteer" (as shipped), "half" of it, "labels" (phrases that the
        data set's weak labels mark, in exact case; the test is then a part of train), "others" (phrases of half of the
        text), "gold" (the gold's own entities), "mixed" (these, and half of the gazetteer); or the folder of lists that
        were made elsewhere.
    texts (Tuple[str, ...]): Files that the text is drawn from, instead of the other sentences.
    """

    folder: str
    gold: str = "train"
    terms: str = "gazetteer"
    texts: Tuple[str, ...] = ()


COLUMNS = {
    "bc5cdr": Column("bc5cdr"),
    "bc5cdr-half": Column("bc5cdr", terms="half"),
    "bc5cdr-chem": Column("bc5cdr-chem"),
    "bc5cdr-disease": Column("bc5cdr-disease"),
    "conll03-kb": Column("conll03", terms="labels"),
    "conll03": Column("conll03"),
    "oa-mine": Column("oa-mine", terms="others"),
    # Its list was made from train, where it is far better than anywhere else.
    "ec": Column("ec", gold="dev", texts=("ec/weak", "ec/train")),
    "bc5cdr-independent": Column("bc5cdr", terms="gazetteer-bio"),
    "bc5cdr-collected": Column("bc5cdr", terms="gold"),
    "bc5cdr-mixed": Column("bc5cdr", terms="mixed"),
    "conll03-collected": Column("conll03", terms="gold"),
    "oa-mine-collected": Column("oa-mine", terms="gold"),
    # Text of another source.
    "conll03-wikipedia": Column("conll03", texts=("wikineural-en/train",)),
    "bc5cdr-half-pubmed": Column("bc5cdr", terms="half", texts=("pubmed/unlabeled",)),
}


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--columns", default=",".join(COLUMNS))
    parser.add_argument("--size", default="linear")
    parser.add_argument("--transformer", default=None, help="folder of the Transformer")
    parser.add_argument("--gold", default="250")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--alone", action="store_true", help="the project has gold alone: no term list, no text")
    parser.add_argument("--speed", action="store_true", help="then package for speed too")
    parser.add_argument("--packaged", action="store_true", help="score the packaged pipeline only")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "best")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / "best.jsonl")
    if not arguments.render:
        for gold in map(int, arguments.gold.split(",")):
            for seed in map(int, arguments.seeds.split(",")):
                for column in arguments.columns.split(","):
                    run(column, gold, seed, arguments, evidence)
    best_page.write(evidence.rows(), {name: column.terms for name, column in COLUMNS.items()})


def run(column: str, n_gold: int, seed: int, arguments: argparse.Namespace, evidence: Evidence) -> None:
    """One project, if its row is missing."""
    encoder = encoder_of(arguments.size, arguments.transformer)
    this = Run("best", column, encoder, "quick", ALONE if arguments.alone else BEST, seed, n_gold, 0)
    fast = this._replace(encoder=f"{encoder}-speed")
    if has(evidence, fast if arguments.speed else this) or (arguments.alone and column in SAME_GOLD):
        return
    folder = work_folder(arguments.work, column, n_gold, seed, encoder + "-alone" * arguments.alone)
    files, test, texts = make_files(arguments.data, column, n_gold, seed, folder / "files")
    if texts is None:
        return
    if arguments.alone:
        files, texts = {"gold": files["gold"]}, 0
    tokens = dict(zip(("lang", "tokenizer"), language(column), strict=True))
    project = folder / "project"
    if not project.exists():
        init_project(project, size=arguments.size, transformer=arguments.transformer, **tokens, **files)  # type: ignore[arg-type]
        if encoder == "transformer-mpnet":
            set_values(project / "configs" / "transformer" / "best.gold.cfg", MPNET)
    convert(test, folder / "test.spacy", overwrite=True, **tokens)  # type: ignore[arg-type]
    cost = Cost()
    for row, preferred in [(this, "f1"), *([(fast, "speed")] if arguments.speed else [])]:
        if not has(evidence, row):
            # What is trained already is not trained again.
            start = Cost.now()
            run_project(folder, "--vars.processes", str(arguments.processes), "--vars.prefer", preferred)
            cost += Cost.since(start)
            packaged = arguments.alone or arguments.packaged or row is fast
            add_rows(row._replace(weak=texts), folder, cost, evidence, packaged=packaged)


def run_project(folder: Path, *options: str) -> None:
    """Run all commands of a project."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "weasel", "run", "all", str(folder / "project"), *options]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT, env=environment)


def add_rows(this: Run, folder: Path, cost: Cost, evidence: Evidence, *, packaged: bool) -> None:
    """Score what was packaged, or all candidates, on test."""
    selection = Selection.load(folder / "project" / "training" / "selection.json")
    candidates = {each.name: Path(each.path) for each in selection.candidates}
    if packaged:
        candidates = {selection.best: candidates[selection.best]}
    rows = compare(folder / "test.spacy", candidates, bootstrap=0)
    chosen = {
        "chosen": selection.best,
        "chosen_f1": {each.name: each.scores.f1 if each.scores else None for each in selection.candidates},
    }
    for row in () if packaged else rows:
        method = "match" if row.name == TERM_LIST else row.name
        add(evidence, this._replace(method=method), row, Cost(), ece=row.ece)
    best = next(row for row in rows if row.name == selection.best)
    paid = selection.selected.cost
    more = {"ece": best.ece, **({"megabytes": paid.megabytes} if paid else {}), **chosen}
    add(evidence, this, best, cost, **more)


def has(evidence: Evidence, run: Run) -> bool:
    """Whether a row is there, on however many texts."""
    identity = {key: value for key, value in run._asdict().items() if key != "weak"}
    return any(identity.items() <= row.items() for row in evidence.rows())


def encoder_of(size: str, transformer: Optional[str]) -> str:
    """RETURNS (str): Name of an encoder in the rows."""
    return f"{size}-mpnet" if "mpnet" in str(transformer) else size


def work_folder(work: Path, column: str, n_gold: int, seed: int, encoder: str) -> Path:
    """RETURNS (Path): Where the files and the project of a row are."""
    return work / f"{column}-{n_gold}-{seed}-{encoder}"


def set_values(config: Path, values: Dict[str, Any]) -> None:
    """Change settings of a project's config, as its user would."""
    text = config.read_text(encoding="utf-8")
    for key, value in values.items():
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    write_text(config, text)


def language(column: str) -> Tuple[str, str]:
    """RETURNS (Tuple[str, str]): Language and tokenizer of a column."""
    return ("zh", CHARACTERS) if column == "ec" else ("en", WORDS)


def add(evidence: Evidence, run: Run, row: Any, cost: Cost, **more: Any) -> None:
    """Append a row."""
    evidence.add(run, row.counts, cost, row.words_per_second or 0.0)
    lines = evidence.path.read_text(encoding="utf-8").splitlines()
    lines[-1] = json.dumps({**json.loads(lines[-1]), **more})
    write_text(evidence.path, "\n".join(lines) + "\n")


def make_files(
    data: Path, name: str, n_gold: int, seed: int, folder: Path
) -> Tuple[Dict[str, Path], Path, Optional[int]]:
    """The files that a user has, the test, and how many texts there are; None if there is too little gold."""
    column = COLUMNS[name]
    rows, test = read_rows(data / column.folder, column.gold), folder / "test.jsonl"
    if column.terms == "labels":
        shuffled = list(rows)
        random.Random(12345).shuffle(shuffled)
        held_out, rows = shuffled[:HELD_OUT], shuffled[HELD_OUT:]
    else:
        held_out = read_rows(data / column.folder, "test")
    rng = random.Random(seed)
    rng.shuffle(rows)
    if len(rows) < n_gold:
        return {}, test, None
    gold, others = rows[:n_gold], rows[n_gold:]
    if column.texts:
        others = [row for name in column.texts for row in read_rows(data, name)]
        rng.shuffle(others)
    others = others[:TEXTS]
    files = {"text": folder / "text.jsonl"}
    if gold:
        files["gold"] = folder / "gold.jsonl"
        write_rows(files["gold"], [{key: row[key] for key in ("id", "tokens", "ents")} for row in gold])
    write_rows(files["text"], [{key: row[key] for key in ("id", "tokens")} for row in others])
    write_rows(test, [{key: row[key] for key in ("id", "tokens", "ents")} for row in held_out])
    terms = folder / "terms.jsonl"
    write_rows(terms, [{"label": label, "term": term} for label, term in make_terms(data, column, gold, others)])
    if column.terms != "labels":
        return {**files, "terms": terms}, test, len(others)
    declared = folder / "sources.cfg"
    write_text(declared, f'[sources.gazetteer]\nterms = "{terms.name}"\nattr = "ORTH"\n')
    return {**files, "sources": declared}, test, len(others)


def make_terms(data: Path, column: Column, gold: Rows, texts: Rows) -> List[Tuple[str, str]]:
    """A term list: labels and terms."""
    gold_terms = {(label, phrase(row, a, b)) for row in gold for a, b, label in row["ents"]}
    if column.terms == "gold":
        return sorted(gold_terms)
    if column.terms == "others":
        # Phrases of half of the text, as somebody may have written them down.
        return sorted({(label, phrase(row, a, b)) for row in texts[: len(texts) // 2] for a, b, label in row["ents"]})
    if column.terms == "labels":
        rows = read_rows(data / column.folder, column.gold)
        counts = Counter((phrase(row, a, b), label) for row in rows for a, b, label in row["weak_ents"])
        usual = {term: label for (term, label), _ in sorted(counts.items(), key=lambda item: (item[1], item[0]))}
        return sorted((label, term) for term, label in usual.items())
    if column.terms.startswith("gazetteer-"):
        lists = sorted({path.name.split(".")[0] for path in (data / column.terms).glob("gazetteer-*.jsonl*")})
        rows = [row for name in lists for row in read_rows(data / column.terms, name)]
        return [(row["label"], row["term"]) for row in rows]
    terms = [(row["label"], row["term"]) for row in read_rows(data / column.folder, "gazetteer")]
    if column.terms in ("half", "mixed"):
        random.Random(7).shuffle(terms)
        terms = terms[: len(terms) // 2]
    return sorted({*terms, *gold_terms}) if column.terms == "mixed" else terms


def phrase(row: Dict[str, Any], start: int, end: int) -> str:
    """RETURNS (str): Some tokens of a row."""
    return " ".join(row["tokens"][start:end])


def read_rows(folder: Path, split: str) -> Rows:
    """Read JSONL."""
    return [json.loads(line) for line in read_lines(find(folder, split))]


def write_rows(path: Path, rows: Rows) -> None:
    """Write JSONL."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    main()
