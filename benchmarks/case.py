"""F1 on text as it is, in lower case and in capitals, without and with copies of training sentences in other case.

    nice -n 10 python benchmarks/case.py --data DIR

Projects are those of best.py, size linear. With --dev they are scored on dev, by which the shares were chosen, and no
row is kept.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from best import COLUMNS, language, make_files, read_rows, work_folder, write_rows
from common import EVIDENCE, ROOT, Cost, remembered, versions

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.case import CASES
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.evaluation.candidates import Candidate, Predictions
from spacy_weakner.files import write_text
from spacy_weakner.project.fit import fit
from spacy_weakner.project.new import init_project
from spacy_weakner.project.rules import GOLD_ALONE
from spacy_weakner.scores import count_matches

SHARES = (0.5, 0.25)
PACKAGED = "packaged"
# Sentences of dev that are scored.
N_DEV = 1500
ROWS = EVIDENCE / "case.jsonl"


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--columns", default="bc5cdr-half,conll03-kb,oa-mine,ec")
    parser.add_argument("--gold", type=int, default=250)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--shares", default=f"0,0 {SHARES[0]},{SHARES[1]}", help="in lower case and in capitals")
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "case")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    shares = [tuple(map(float, pair.split(","))) for pair in arguments.shares.split()]
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            for column in arguments.columns.split(","):
                for lower, upper in shares:
                    run(column, seed, lower, upper, arguments)
    if not arguments.dev:
        write_text(EVIDENCE / "case.md", page(read()))


def run(column: str, seed: int, lower: float, upper: float, arguments: argparse.Namespace) -> None:
    """Train a project, and score what it packages and gold alone."""
    identity = {"dataset": column, "strong": arguments.gold, "seed": seed, "lower": lower, "upper": upper}
    if not arguments.dev and any(identity.items() <= row.items() for row in read()):
        return
    folder = work_folder(arguments.work, column, arguments.gold, seed, "linear").absolute()
    files, test, texts = make_files(arguments.data.absolute(), column, arguments.gold, seed, folder / "files")
    if texts is None:
        raise SystemExit(f"{column} has no {arguments.gold} gold sentences")
    tokens = dict(zip(("lang", "tokenizer"), language(column), strict=True))
    project = folder / "project"
    if not project.exists():
        init_project(project, size="linear", **tokens, **files)  # type: ignore[arg-type]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        for command in ("code", "prepare", "label", "analyze", "vectors"):
            script = [sys.executable, "-m", "weasel", "run", command, str(project)]
            subprocess.run(script, check=True, stdout=subprocess.DEVNULL, env=environment)
    output, start = folder / f"training-{lower}-{upper}", Cost.now()
    skipped = (output / "cost.json").exists()
    os.chdir(project)
    selection = fit(
        Path("corpus"),
        output,
        configs=Path("configs"),
        sources=Path("sources.cfg"),
        lower_case=lower,
        upper_case=upper,
    )
    cost = remembered(output / "cost.json", start, skipped)
    corpus = convert_split(arguments.data, column, arguments.gold, seed, folder, test, arguments.dev, tokens)
    paths = {each.name: Path(each.path) for each in selection.candidates}
    for name, path in ((PACKAGED, paths[selection.best]), (GOLD_ALONE, paths[GOLD_ALONE])):
        scores = {case or "f1": score(path, corpus, case) for case in (None, *CASES)}
        row = {**identity, "method": name, "scores": scores, "cpu_seconds": round(cost.cpu_seconds)}
        print(json.dumps(row), flush=True)
        if not arguments.dev:
            with ROWS.open("a", encoding="utf-8") as file_:
                file_.write(json.dumps({**row, "versions": versions()}) + "\n")


def convert_split(
    data: Path, column: str, n_gold: int, seed: int, folder: Path, test: Path, is_dev: bool, tokens: Dict[str, str]
) -> Path:
    """What is scored on: test, or a part of dev that is no gold."""
    output = folder / ("dev.spacy" if is_dev else "test.spacy")
    if is_dev:
        from_gold = COLUMNS[column].gold == "dev"
        rows = read_rows(data / COLUMNS[column].folder, "dev")
        random.Random(seed if from_gold else 0).shuffle(rows)
        rows = rows[n_gold:] if from_gold else rows
        test = folder / "dev.jsonl"
        write_rows(test, [{key: row[key] for key in ("id", "tokens", "ents")} for row in rows[:N_DEV]])
    convert(test, output, overwrite=True, **tokens)  # type: ignore[arg-type]
    return output


def score(path: Path, corpus: Path, case: Optional[str]) -> float:
    """F1 on text in some case."""
    predictions = Predictions(Candidate(path.name, path), corpus, case)
    counts, _ = count_matches((doc_entities(gold), doc_entities(doc)) for gold, doc in predictions)
    return round(counts.f1, 2)


def read() -> List[Dict[str, Any]]:
    """RETURNS (List[Dict[str, Any]]): All rows."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()] if ROWS.exists() else []


def page(rows: List[Dict[str, Any]]) -> str:
    """Fill the page: a line per data set, seed and method, without and with copies."""
    lines = []
    for row in rows:
        if (row["lower"], row["upper"]) != (0, 0):
            keys = ("dataset", "strong", "seed", "method")
            before = [r for r in rows if all(r[key] == row[key] for key in keys) and (r["lower"], r["upper"]) == (0, 0)]
            lines += [_line(each) for each in (*before, row)]
    return PAGE.format(rows="\n".join(lines))


def _line(row: Dict[str, Any]) -> str:
    copies = "-" if (row["lower"], row["upper"]) == (0, 0) else f"{row['lower']:g}, {row['upper']:g}"
    scores: Tuple[float, ...] = tuple(row["scores"][case] for case in ("f1", *CASES))
    shares = [f"{value:.1f} ({100 * value / max(0.01, scores[0]):.0f} %)" for value in scores[1:]]
    cells = [row["dataset"], row["strong"], row["seed"], row["method"], copies, f"{scores[0]:.1f}", *shares]
    return f"| {' | '.join(map(str, [*cells, row['cpu_seconds']]))} |"


PAGE = """# Text without case

With copies of training sentences in lower case and in capitals, a pipeline keeps 85 to 99 % of its F1 on text without
case. Without copies, it is 19 % at worst. On the text as it is, the copies cost at most 1.2 points.

    nice -n 10 python benchmarks/case.py --data DIR

F1 on the test text as it is, in lower case and in capitals (in brackets: in percent of F1 on the text as it is), for
the packaged pipeline of a project and for a head trained on gold alone (linear CRFs). Copies: the shares of training
sentences that are repeated in lower case and in capitals. `ec` has no row: it is Chinese, a script almost without case.
CPU seconds are those of `fit`.

| data | gold | seed | pipeline | copies | as it is | in lower case | in capitals | CPU s |
|---|---|---|---|---|---|---|---|---|
{rows}

When copies were first added, F1 on the text as it is fell by 0.6 to 1.7 points on newspaper text, because copies teach
a head that word shapes carry little information. Therefore heads now use separate word and shape features for sentences
with case and for sentences without case (`IndicatorFeatures.v1`). The rows above were measured with these features, on
one sample. `conll03-kb` still loses 1.2 points on the text as it is, perhaps because its list matches in exact case
only, so the copies have no matches.

The shares were chosen on dev (`--dev`, 1,500 sentences), by F1 of the packaged pipeline on the text as it is, in lower
case and in capitals: `bc5cdr-half` had 74.5, 71.4 and 72.0 without copies, and 75.3, 73.4 and 74.8 with copies;
`conll03-kb` had 76.4, 1.7 and 44.6 without, and 78.1, 64.8 and 67.8 with copies. The CPU seconds do not include the
learning curve.
"""

if __name__ == "__main__":
    main()
