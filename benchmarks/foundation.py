"""From a term list to a trained pipeline on real text: BC5CDR, chemicals and diseases.

    python benchmarks/foundation.py --data DIR [--encoder SIZE|FOLDER|NAME] [--preset quick|full] [--seeds 0,1,2]

`--encoder` is a size of the recipes without a Transformer, or a Transformer; `static` and `linear-static` want
`--transformer FOLDER|NAME`, whose vectors of word pieces are taken.

`--data` holds train, dev and test as JSONL, and a term list `gazetteer.jsonl`, each perhaps gzipped. Rows go to
docs/evidence/foundation.jsonl as runs end; docs/evidence/foundation.md is written anew at the end.
"""

import argparse
import random
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from charts import bar_chart
from common import (
    EVIDENCE,
    ROOT,
    Cost,
    Evidence,
    Run,
    config_file,
    count,
    encoder_name,
    evaluate,
    find,
    gold_against_weak,
    table,
    train,
)
from spacy.vocab import Vocab

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.encoder_tools.distill import distill
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.scores import Counts

BENCHMARK = "foundation"
DATASET = "bc5cdr"
WITH_PIECES = ("static", "linear-static")
SIZES = ("cnn", "linear", *WITH_PIECES)
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
# Sentences of train and of dev; 0 is all.
PRESETS = {"quick": (2000, 300), "full": (0, 0)}
GOLD = 250


class Method(NamedTuple):
    """How a row is trained.

    train (str): Corpus; "strong+weak" for two of them.
    product (str): "model-best" by dev, or "model-last" where there is no gold to choose by.
    component (str): Component that is trained.
    negative_rate (Optional[float]): Setting of the loss; None: that of the config.
    """

    train: str
    product: str = "model-best"
    component: str = "crf_ner"
    negative_rate: Optional[float] = None


METHODS = {
    "spacy_ner": Method("gold", component="ner"),
    "crf_ner": Method("gold"),
    "naive_half": Method("half_outside"),
    "missing_half": Method("half_missing"),
    "weak_naive": Method("weak_outside", "model-last"),
    "weak_partial": Method("weak_missing", "model-last"),
    "weak_partial_0.6": Method("weak_missing", "model-last", negative_rate=0.6),
    "gold250": Method("gold250"),
    "gold250_weak": Method("gold250+weak_rest"),
}
ORDER = ["match", *METHODS]


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--encoder", default="cnn", help=f"{', '.join(SIZES)}, or name or folder of a Transformer")
    parser.add_argument("--transformer", help="for vectors of word pieces: name or folder of the Transformer")
    parser.add_argument("--preset", default="quick", choices=PRESETS)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--methods", default=",".join(ORDER))
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.add_argument("--speed", action="store_true", help="only compare the speed of spacy_ner and crf_ner")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl")
    if arguments.speed:
        compare_speed(arguments.work / arguments.preset / "seed0", evidence)
    elif not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            run_seed(arguments, seed, evidence)
    render(evidence)


def run_seed(arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
    """Run all methods with one seed, which also draws the subsets and the masks."""
    folder = prepare(arguments.data, arguments.work / arguments.preset / f"seed{seed}", arguments.preset, seed)
    encoder = encoder_name(arguments.encoder)
    if encoder in WITH_PIECES and not (folder / "pieces").exists():
        report = distill([folder / "gold.spacy"], folder / "pieces", arguments.transformer)
        print(report)
    sizes = {path.stem: count(path) for path in folder.glob("*.spacy")}
    for name in arguments.methods.split(","):
        parts = METHODS[name].train.split("+") if name in METHODS else ["match"]
        strong = sum(sizes[part] for part in parts if part in ("gold", "gold250", "half_outside", "half_missing"))
        n_weak = sum(sizes[part] for part in parts if part.startswith("weak"))
        if name == "match":
            # The same for every encoder and seed.
            run = Run(BENCHMARK, DATASET, "-", arguments.preset, name, 0, 0, 0)
            if not evidence.has(run):
                evidence.add(run, gold_against_weak(folder / "test-labeled.spacy")[0], Cost(), 0.0)
            continue
        run = Run(BENCHMARK, DATASET, encoder, arguments.preset, name, seed, strong, n_weak)
        if evidence.has(run) or (METHODS[name].component == "ner" and encoder != "cnn"):
            continue
        method = METHODS[name]
        output = folder / f"{encoder}-{name}"
        trained, cost = train(config(method, encoder), output, overrides(method, folder, arguments.encoder, seed))
        counts, speed = evaluate(trained / method.product, folder / "test.spacy")
        evidence.add(run, counts, cost, speed)


def compare_speed(folder: Path, evidence: Evidence, rounds: int = 7) -> None:
    """Predict on the test set with both components in turn, and keep the row of the median speed of each."""
    names = ("spacy_ner", "crf_ner")
    speeds: Dict[str, List[float]] = {name: [] for name in names}
    counts: Dict[str, Counts] = {}
    for _ in range(rounds):
        for name in names:
            counts[name], speed = evaluate(folder / f"cnn-{name}" / "model-best", folder / "test.spacy")
            speeds[name].append(speed)
    for name in names:
        run = Run(f"{BENCHMARK}-speed", DATASET, "cnn", folder.parent.name, name, 0, 0, 0)
        evidence.add(run, counts[name], Cost(), median(speeds[name]))
        print(name, [round(speed) for speed in speeds[name]])


def config(method: Method, encoder: str) -> Path:
    """The config of a method."""
    if method.component == "ner":
        return ROOT / "benchmarks" / "spacy_ner.cfg"
    recipe = "crf_ner.strong_weak" if "+" in method.train else "crf_ner"
    return config_file(recipe, encoder if encoder in SIZES else "transformer")


def overrides(method: Method, folder: Path, encoder: str, seed: int) -> Dict[str, Any]:
    """What a run sets in its config."""
    values: Dict[str, Any] = {"paths.dev": str(folder / "dev.spacy"), "system.seed": seed}
    if method.negative_rate is not None:
        values["components.crf_ner.loss.negative_rate"] = method.negative_rate
    if method.product == "model-last":
        # Nothing may be chosen by dev, the end of the training neither.
        values["training.patience"] = 0
    if "+" in method.train:
        strong, weak = method.train.split("+")
        values.update({"paths.strong": str(folder / f"{strong}.spacy"), "paths.weak": str(folder / f"{weak}.spacy")})
    else:
        values["paths.train"] = str(folder / f"{method.train}.spacy")
    if method.component != "ner":
        values["nlp.tokenizer.@tokenizers"] = TOKENIZER
    if encoder in WITH_PIECES:
        values["paths.pieces"] = str(folder / "pieces")
    elif encoder not in SIZES:
        values["paths.transformer"] = encoder
    return values


def prepare(data: Path, folder: Path, preset: str, seed: int) -> Path:
    """Make the corpora of a seed: subsets, masks, and weak labels by the shipped stages.

    data (Path): Folder of the data set.
    folder (Path): Where to write.
    preset (str): Sizes of train and dev.
    seed (int): Draws subsets and masks.
    RETURNS (Path): The folder.
    """
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    n_train, n_dev = PRESETS[preset]
    for split in ("train", "dev", "test"):
        if not (folder.parent / f"{split}.spacy").exists():
            convert(find(data, split), folder.parent / f"{split}.spacy", tokenizer=TOKENIZER)
    sample(folder.parent / "train.spacy", folder / "gold.spacy", n_train, seed)
    # dev is the same for every seed
    sample(folder.parent / "dev.spacy", folder / "dev.spacy", n_dev, 0)
    sample(folder.parent / "test.spacy", folder / "test.spacy", 0, 0)
    sample(folder / "gold.spacy", folder / "gold250.spacy", GOLD, seed)
    write(folder / "half_outside.spacy", folder / "gold.spacy", halve(seed, "outside"))
    write(folder / "half_missing.spacy", folder / "gold.spacy", halve(seed, "missing"))
    for split, corpus in (("train", "gold"), ("test", "test")):
        label(
            folder / f"{corpus}.spacy",
            folder / f"{split}-sources.spacy",
            terms=find(data, "gazetteer"),
            tokenizer=TOKENIZER,
        )
    aggregate(folder / "train-sources.spacy", folder / "weak_outside.spacy", unmatched="outside")
    aggregate(folder / "train-sources.spacy", folder / "weak_missing.spacy", unmatched="missing")
    # without the sentences whose gold is used beside them
    known = {weak.get_id(doc) for doc in read_docs(folder / "gold250.spacy", Vocab())}
    rest = (doc for doc in read_docs(folder / "weak_missing.spacy", Vocab()) if weak.get_id(doc) not in known)
    write_docs(folder / "weak_rest.spacy", rest)
    aggregate(folder / "test-sources.spacy", folder / "test-labeled.spacy", unmatched="outside")
    (folder / "done").touch()
    return folder


def sample(source: Path, target: Path, n: int, seed: int) -> None:
    """Write n sentences drawn at random, in their order; 0: all."""
    docs = list(read_docs(source, Vocab()))
    chosen = sorted(random.Random(seed).sample(range(len(docs)), n)) if n else range(len(docs))
    write_docs(target, [docs[i] for i in chosen])


def halve(seed: int, unmarked: str) -> Callable[[Any], None]:
    """Remove half of the entities at random; all that is then unmarked is "outside" or "missing"."""
    rng = random.Random(seed)

    def change(doc: Any) -> None:
        doc.set_ents([ent for ent in doc.ents if rng.random() < 0.5], default=unmarked)

    return change


def write(target: Path, source: Path, change: Callable[[Any], None]) -> None:
    """Write a changed copy of a corpus."""
    docs = list(read_docs(source, Vocab()))
    for doc in docs:
        change(doc)
    write_docs(target, docs)


def render(evidence: Evidence) -> None:
    """Write the page and its plots from the rows."""
    rows = [row for row in evidence.rows() if row["benchmark"] == BENCHMARK]
    page = (EVIDENCE / f"{BENCHMARK}.template.md").read_text(encoding="utf-8")
    for encoder in sorted({row["encoder"] for row in rows} - {"-"}):
        shown = [row for row in rows if row["encoder"] in ("-", encoder)]
        group = ("method", "strong", "weak")
        page = page.replace(f"{{{encoder}}}", table(shown, group, ORDER))
        bars = {name: [row["f1"] for row in shown if row["method"] == name] for name in ORDER}
        bars = {name: values for name, values in bars.items() if values}
        bar_chart(f"BC5CDR, {encoder}: F1 on test", bars, EVIDENCE / f"{BENCHMARK}-{encoder}.svg")
    fast = [row for row in evidence.rows() if row["benchmark"] == f"{BENCHMARK}-speed"]
    told = ", ".join(f"`{row['method']}` {row['words_per_second']:,} words/s" for row in fast)
    page = page.replace("{speed}", told)
    (EVIDENCE / f"{BENCHMARK}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
