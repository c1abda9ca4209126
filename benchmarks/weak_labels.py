"""Many weak sources on real text: each alone, combined in every way, and what a model learns from them.

    python benchmarks/weak_labels.py --data DIR [--datasets bc5cdr,conll03] [--encoder cnn|FOLDER|NAME] [--seeds 0,1,2]

`--data` holds a folder per data set with train and test as JSONL (perhaps gzipped), where train has the weak labels of
a dictionary, and train-<source> those of other sources for the same sentences. Labels are scored on all of train
(`preset` = "labels"); models are trained on 2,000 sentences of it without any gold, and scored on test. Rows go to
docs/evidence/weak-labels.jsonl as runs end; docs/evidence/weak-labels.md is written anew at the end.
"""

import argparse
import random
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from charts import bar_chart
from common import (
    EVIDENCE,
    ROOT,
    Cost,
    Evidence,
    Run,
    config_file,
    evaluate,
    find,
    gold_against_weak,
    labels_only,
    table,
    train,
)
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.scores import Counts, count_matches
from spacy_weakner.ty import Entity

BENCHMARK = "weak-labels"
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
# The order is that of `sources` where votes are tied: a term list before a large language model's answers.
SOURCES = ("dictionary", "chatgpt", "uniner")
COMBINED = ("majority", "weighted", "label_model")
ORACLE = "oracle:patterns"
LABELS = (*(f"source:{name}" for name in SOURCES), "union", *COMBINED, ORACLE)
# Trained on hard labels, and on soft ones where the combination gives any.
MODELS = (*(f"source:{name}" for name in SOURCES), *COMBINED, *(f"{name}:soft" for name in COMBINED))
N_TRAIN = 2000
N_GOLD = 250  # sentences of train whose gold gives the weights of `weighted`; left out of what is trained on


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--datasets", default="bc5cdr,conll03")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--encoder", default="cnn", help="cnn, or name or folder of a Transformer")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--methods", default=",".join(MODELS))
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl")
    if not arguments.render:
        for dataset in arguments.datasets.split(","):
            folder = prepare(arguments.data / dataset, arguments.work / dataset)
            score_labels(dataset, folder, evidence)
            for seed in map(int, arguments.seeds.split(",")):
                train_models(dataset, folder, seed, arguments, evidence)
    render(evidence)


def prepare(data: Path, folder: Path) -> Path:
    """Make the corpora: all sources in one corpus, by the shipped stages; then every way of combining them.

    data (Path): Folder of the data set.
    folder (Path): Where to write.
    RETURNS (Path): The folder.
    """
    if (folder / "done").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    convert(find(data, "test"), folder / "test.spacy", tokenizer=TOKENIZER, overwrite=True)
    train_path = folder / "dictionary.spacy"
    convert(find(data, "train"), train_path, tokenizer=TOKENIZER, source="dictionary", overwrite=True)
    sources: Dict[str, Any] = {}
    for name in SOURCES[1:]:
        sources[name] = {"file": str(labels_only(find(data, f"train-{name}"), folder / f"{name}.jsonl"))}
    label(train_path, folder / "sources.spacy", sources=sources, tokenizer=TOKENIZER)
    # Gold of a few sentences, for the weights alone.
    docs = list(read_docs(folder / "sources.spacy", Vocab()))
    chosen = set(random.Random(0).sample(range(len(docs)), N_GOLD))
    write_docs(folder / "gold.spacy", [doc for i, doc in enumerate(docs) if i in chosen])
    settings: Dict[str, Dict[str, Any]] = {f"source:{name}": {"sources": [name]} for name in SOURCES}
    order = list(SOURCES)
    settings["union"] = {"policy": "longest", "sources": order}
    settings["majority"] = {"method": "majority", "soft": True, "sources": order}
    settings["weighted"] = {"method": "weighted", "soft": True, "gold": folder / "gold.spacy", "sources": order}
    settings["label_model"] = {"method": "label_model", "soft": True, "sources": order}
    for name, setting in settings.items():
        aggregate(folder / "sources.spacy", corpus(folder, name), unmatched="outside", **setting)
    (folder / "done").touch()
    return folder


def corpus(folder: Path, name: str) -> Path:
    """The corpus of a way of combining."""
    return folder / f"labels-{name.split(':soft')[0].replace(':', '-')}.spacy"


def score_labels(dataset: str, folder: Path, evidence: Evidence) -> None:
    """Score labels against the gold of train."""
    for name in LABELS:
        run = Run(BENCHMARK, dataset, "-", "labels", name, 0, N_GOLD if name == "weighted" else 0, 0)
        if not evidence.has(run):
            counts = oracle(folder) if name == ORACLE else gold_against_weak(corpus(folder, name))[0]
            evidence.add(run, counts, Cost(), 0.0)


def oracle(folder: Path) -> Counts:
    """What could be reached by trusting patterns of agreement, if one knew which: every proposed span is accepted if
    more than half of those with its pattern are right on this very gold. The pattern of a span is its label, and for
    every source whether it proposes the span, the same words with another label, an overlapping span with the same
    label or another one, or nothing."""
    pairs: List[Tuple[Any, Any]] = []
    patterns: Dict[Any, List[Any]] = defaultdict(list)
    for number, doc in enumerate(read_docs(folder / "sources.spacy", Vocab())):
        given = [weak.group_entities(doc, weak.weak_group(name)) for name in SOURCES]
        pairs.append((set(weak.doc_entities(doc)), set()))
        for entity in {entity for entities in given for entity in entities}:
            patterns[(entity[2], *(relation(entity, entities) for entities in given))].append((number, entity))
    for members in patterns.values():
        if 2 * sum(entity in pairs[number][0] for number, entity in members) > len(members):
            for number, entity in members:
                pairs[number][1].add(entity)
    return count_matches([(sorted(gold), sorted(accepted)) for gold, accepted in pairs])[0]


def relation(entity: Entity, entities: List[Entity]) -> str:
    """How the nearest of a source's spans relates to one: see `oracle`."""
    start, end, kind = entity
    over = [other for other in entities if other[0] < end and start < other[1]]
    if entity in over:
        return "same"
    if any(other[:2] == (start, end) for other in over):
        return "label"
    return "nothing" if not over else "overlap" if any(other[2] == kind for other in over) else "other"


def train_models(dataset: str, folder: Path, seed: int, arguments: argparse.Namespace, evidence: Evidence) -> None:
    """Train on every set of labels, and score on test."""
    encoder = "cnn" if arguments.encoder == "cnn" else "minilm" if "minilm" in arguments.encoder.lower() else "other"
    config = config_file("crf_ner", "cnn" if encoder == "cnn" else "transformer")
    for name in arguments.methods.split(","):
        run = Run(BENCHMARK, dataset, encoder, "quick", name, seed, N_GOLD if "weighted" in name else 0, N_TRAIN)
        if evidence.has(run):
            continue
        subset = folder / f"seed{seed}" / f"{corpus(folder, name).stem}.spacy"
        if not subset.exists():
            write_docs(subset, subset_of(corpus(folder, name), folder / "gold.spacy", seed))
        values: Dict[str, Any] = {
            "paths.train": str(subset),
            "paths.dev": str(subset),
            "system.seed": seed,
            "nlp.tokenizer.@tokenizers": TOKENIZER,
            # There is no gold to choose a checkpoint by, nor the end of the training.
            "training.patience": 0,
            "training.eval_frequency": 10_000,
        }
        if name.endswith(":soft"):
            values["components.crf_ner.loss"] = {"@losses": "spacy_weakner.SoftLabelCRF.v1"}
        if encoder != "cnn":
            values["paths.transformer"] = arguments.encoder
        output = folder / f"seed{seed}" / f"{encoder}-{name.replace(':', '-')}"
        trained, cost = train(config, output, values)
        counts, speed = evaluate(trained / "model-last", folder / "test.spacy")
        evidence.add(run, counts, cost, speed)


def subset_of(path: Path, without: Path, seed: int) -> Iterator[Doc]:
    """Sentences drawn at random, the same for every way of combining."""
    known = {weak.get_id(doc) for doc in read_docs(without, Vocab())}
    docs = [doc for doc in read_docs(path, Vocab()) if weak.get_id(doc) not in known]
    for i in sorted(random.Random(seed).sample(range(len(docs)), N_TRAIN)):
        yield docs[i]


def render(evidence: Evidence) -> None:
    """Write the page and its plots from the rows."""
    rows = [row for row in evidence.rows() if row["benchmark"] == BENCHMARK]
    page = (EVIDENCE / f"{BENCHMARK}.template.md").read_text(encoding="utf-8")
    for dataset in sorted({row["dataset"] for row in rows}):
        own = [row for row in rows if row["dataset"] == dataset]
        labels = [row for row in own if row["preset"] == "labels"]
        page = page.replace(f"{{{dataset}-labels}}", table(labels, ("method",), list(LABELS)))
        for encoder in sorted({row["encoder"] for row in own} - {"-"}):
            shown = [row for row in own if row["encoder"] == encoder]
            page = page.replace(f"{{{dataset}-{encoder}}}", table(shown, ("method",), list(MODELS)))
            bars = {name: [row["f1"] for row in shown if row["method"] == name] for name in MODELS}
            bars = {name: values for name, values in bars.items() if values}
            bar_chart(f"{dataset}, {encoder}: F1 on test", bars, EVIDENCE / f"{BENCHMARK}-{dataset}-{encoder}.svg")
    (EVIDENCE / f"{BENCHMARK}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
