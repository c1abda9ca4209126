"""Annotations with holes: a classifier of spans with sampled negatives, against all negatives and a partial CRF.

    python benchmarks/negative_sampling.py --data DIR [--dataset conll03:p0.8] [--encoder cnn|bilstm|FOLDER|NAME]
        [--seeds 0,1,2] [--methods all_negatives,partial_crf,uniform,weighted] [--train 2000]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped). A data set is named
FOLDER:NOISE. "p0.8" hides each gold entity of train with probability 0.8; "kb" takes the weak labels of train itself
for its annotation, other names those of train-NAME; "ec" is the gold of train together with the weak labels of
weak.jsonl. Rows go to docs/evidence/negative-sampling.jsonl as runs end, and docs/evidence/negative-sampling.md is
written anew at the end.
"""

import argparse
import json
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

from common import (
    BILSTM,
    EVIDENCE,
    ROOT,
    Evidence,
    Run,
    count,
    dev_scores,
    encoder_name,
    evaluate,
    find,
    line_chart,
    sample,
    train,
    write_page,
)
from spacy.vocab import Vocab

from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.stages.aggregate import aggregate
from spacy_weakner.stages.convert import convert
from spacy_weakner.stages.mask import mask

BENCHMARK = "negative-sampling"
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
CONFIGS = ROOT / "configs"
N_DEV = 300
CURVES = EVIDENCE / f"{BENCHMARK}-curves.jsonl"


class Method(NamedTuple):
    """How a row comes about.

    component (str): Folder of the configs.
    config (str): What its config's name ends in.
    settings (Dict[str, Any]): Other settings of the config.
    unmatched (str): What tokens without annotation are to it: "outside" or "missing".
    """

    component: str
    config: str = ""
    settings: Dict[str, Any] = {}
    unmatched: str = "outside"


METHODS = {
    "all_negatives": Method(
        "span_ner", settings={"components.span_ner.sampler": {"@misc": "spacy_weakner.AllNegatives.v1"}}
    ),
    "partial_crf": Method("crf_ner", unmatched="missing"),
    "uniform": Method("span_ner"),
    "weighted": Method("span_ner", "_weighted", {"components.span_ner.sampler.include_outside": False}),
    "weighted_with_o": Method("span_ner", "_weighted", {"components.span_ner.sampler.include_outside": True}),
}


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset", default="conll03:p0.8")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--encoder", default="cnn", help="cnn, bilstm, or name or folder of a Transformer")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--train", type=int, default=2000, help="training sentences; 0: all")
    parser.add_argument("--methods", default="all_negatives,partial_crf,uniform,weighted")
    parser.add_argument("--steps", type=int, default=600, help="updates of each training")
    parser.add_argument("--eval-frequency", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another setting, to tune")
    parser.add_argument("--dev", action="store_true", help="score on dev instead of test, and keep no rows: to tune")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    if arguments.set and not arguments.dev:
        raise SystemExit("--set is for tuning: rows do not tell what was set. Give --dev too.")
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl")
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            run_seed(arguments, seed, evidence)
    if not arguments.dev:
        render(evidence)


def run_seed(arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
    """Train and score all methods with one seed."""
    name = encoder_name(arguments.encoder)
    preset = "quick" if arguments.train else "full"
    folder = arguments.work / arguments.dataset.replace(":", "-") / f"{preset}{arguments.train}" / f"seed{seed}"
    prepare(arguments, seed, folder)
    n_train = count(folder / "train-outside.spacy")
    for method in arguments.methods.split(","):
        run = Run(BENCHMARK, arguments.dataset, name, preset, method, seed, 0, n_train)
        if evidence.has(run) and not arguments.dev:
            continue
        tuned = "-".join(setting.replace("/", "_") for setting in arguments.set)
        output = folder / f"{name}-{arguments.steps}-{arguments.eval_frequency}" / f"{method}{tuned}"
        model, seconds = train(*training(arguments, METHODS[method], seed, folder, output))
        if seed == 0 and not arguments.dev:
            keep_curve(run, dev_scores(output))
        counts, speed = evaluate(model / "model-best", folder / ("dev.spacy" if arguments.dev else "test.spacy"))
        if arguments.dev:
            print(f"{method}{tuned} seed {seed}: dev P {counts.precision:.1f} R {counts.recall:.1f} F1 {counts.f1:.2f}")
        else:
            evidence.add(run, counts, seconds, speed)


def keep_curve(run: Run, points: List[Tuple[int, float]]) -> None:
    """Keep how F1 on dev went over a training (Figure 3)."""
    row = {"dataset": run.dataset, "encoder": run.encoder, "preset": run.preset, "method": run.method, "dev": points}
    kept = [
        own for own in read_curves() if any(own[key] != row[key] for key in ("dataset", "encoder", "preset", "method"))
    ]
    CURVES.write_text("".join(json.dumps(own) + "\n" for own in [*kept, row]), encoding="utf-8")


def read_curves() -> List[Dict[str, Any]]:
    """The curves that are kept."""
    return [json.loads(line) for line in CURVES.read_text(encoding="utf-8").splitlines()] if CURVES.exists() else []


def training(
    arguments: argparse.Namespace, method: Method, seed: int, folder: Path, output: Path
) -> Tuple[Path, Path, Dict[str, Any]]:
    """Config, output and settings of a training."""
    own = arguments.encoder in ("cnn", "bilstm")
    config = CONFIGS / method.component / f"{'cnn' if own else 'transformer'}{method.config}.cfg"
    values = {
        "paths.train": str(folder / f"train-{method.unmatched}.spacy"),
        "paths.dev": str(folder / "dev.spacy"),
        "system.seed": seed,
        "nlp.tokenizer.@tokenizers": TOKENIZER,
        "training.max_steps": arguments.steps,
        "training.eval_frequency": arguments.eval_frequency,
        "training.patience": 0,
        **method.settings,
    }
    if arguments.encoder == "bilstm":
        values[f"components.{method.component}.model.tok2vec"] = BILSTM
    elif not own:
        values["paths.transformer"] = arguments.encoder
    values.update(setting.split("=", 1) for setting in arguments.set)
    return config, output, values


def prepare(arguments: argparse.Namespace, seed: int, folder: Path) -> None:
    """Make the corpora of one seed: the training corpus with and without the holes marked as such, dev and test."""
    if (folder / "done").exists():
        return
    name, _, noise = arguments.dataset.partition(":")
    data = arguments.data / name
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("dev", "test"):
        convert(find(data, split), folder / f"all-{split}.spacy", tokenizer=TOKENIZER, overwrite=True)
    write_docs(folder / "test.spacy", read_docs(folder / "all-test.spacy", Vocab()))
    write_docs(folder / "dev.spacy", sample(folder / "all-dev.spacy", N_DEV, 0)[0])
    split = "train" if not noise or noise == "kb" or noise.startswith("p0") else f"train-{noise}"
    convert(find(data, split), folder / "all-train.spacy", tokenizer=TOKENIZER, source="weak", overwrite=True)
    write_docs(folder / "gold.spacy", sample(folder / "all-train.spacy", arguments.train, seed)[0])
    for unmatched in ("outside", "missing"):
        target = folder / f"train-{unmatched}.spacy"
        if noise.startswith("p0"):
            mask(folder / "gold.spacy", target, probability=float(noise[1:]), unmatched=unmatched, seed=seed)
        elif noise:
            aggregate(folder / "gold.spacy", target, unmatched=unmatched)
        else:
            convert(find(data, "weak"), folder / "all-weak.spacy", tokenizer=TOKENIZER, source="weak", overwrite=True)
            aggregate(folder / "all-weak.spacy", folder / f"weak-{unmatched}.spacy", unmatched=unmatched)
            both = [*read_docs(folder / "gold.spacy", Vocab()), *read_docs(folder / f"weak-{unmatched}.spacy", Vocab())]
            write_docs(target, both)
    (folder / "done").touch()


def render(evidence: Evidence) -> None:
    """Write the page and its plots from the rows."""
    rows = [row for row in evidence.rows() if row["benchmark"] == BENCHMARK]
    page = write_page(BENCHMARK, rows, ("dataset", "encoder", "preset"), list(METHODS))
    lines, text = over_datasets([row for row in rows if row["encoder"] == "cnn" and row["seed"] == 0])
    page = page.replace("{over-datasets}", text)
    line_chart("CoNLL-2003, cnn: F1 on test", "share of hidden entities", lines, EVIDENCE / f"{BENCHMARK}-rates.svg")
    (EVIDENCE / f"{BENCHMARK}.md").write_text(page, encoding="utf-8")
    curves: Dict[str, Dict[str, List[Tuple[float, float]]]] = {}
    for row in read_curves():
        name = f"{row['dataset'].replace(':', '-')}-{row['encoder']}-{row['preset']}"
        curves.setdefault(name, {})[row["method"]] = [(float(step), f1) for step, f1 in row["dev"]]
    for name, lines in curves.items():
        line_chart(f"{name}: F1 on dev", "updates", lines, EVIDENCE / f"{BENCHMARK}-{name}-dev.svg")


def over_datasets(rows: List[Dict[str, Any]]) -> Tuple[Dict[str, List[Tuple[float, float]]], str]:
    """F1 over shares of hidden entities, as lines, and over all data sets, as a table."""
    datasets = sorted({row["dataset"] for row in rows}, key=lambda name: (":p" not in name, name))
    f1 = {(row["dataset"], row["method"]): row["f1"] for row in rows}
    names = [name.partition(":")[2] for name in datasets]
    table = ["| method | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    lines: Dict[str, List[Tuple[float, float]]] = {}
    for method in METHODS:
        found = [(dataset, f1.get((dataset, method))) for dataset in datasets]
        cells = ["" if value is None else f"{value:.1f}" for _, value in found]
        table.append(f"| {method} | " + " | ".join(cells) + " |")
        lines[method] = [(float(d.partition(":p")[2]), v) for d, v in found if v is not None and ":p" in d]
    return {method: points for method, points in lines.items() if len(points) > 1}, "\n".join(table)


if __name__ == "__main__":
    main()
