"""A Transformer teaches a CNN: soft labels of raw text, learned beside the gold.

    python benchmarks/distillation.py --data DIR --transformer FOLDER [--dataset bc5cdr] [--texts 20000]

The teacher learns from all gold of train, completes raw text (of `TEXTS`, tokenized as published) with its
probabilities, and the student learns both. `gold alone` is the student without the text, with as many updates.
Checkpoints are the best on 1,000 sentences of dev; test is scored once.
"""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any, Dict

from common import (
    EVIDENCE,
    ROOT,
    Cost,
    Evidence,
    Run,
    config_file,
    count,
    evaluate,
    find,
    own_transformer,
    table,
    train,
)
from experiment import TOKENIZER

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.jsonl import read_rows
from spacy_weakner.corpus.sentences import sentence_key
from spacy_weakner.files import write_text
from spacy_weakner.relabel.complete import complete

TEACHER, ALONE, STUDENT = "teacher", "gold alone", "student"
# Text for a data set: another one, whose entities are not read, and its splits.
TEXTS = {"bc5cdr": ("pubmed", ("unlabeled",)), "conll03": ("wikineural-en", ("train", "test"))}
SPLITS = ("train", "dev", "test")
N_DEV = 1000
SOFT = {"@losses": "spacy_weakner.SoftLabelCRF.v1", "negative_rate": 0.0}
# The gold here is not a few hundred sentences, for which the config has a fifth.
STRONG_SHARE = 0.5


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--transformer", type=Path)
    parser.add_argument("--dataset", default="bc5cdr", choices=sorted(TEXTS))
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--teacher-steps", type=int, default=600)
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "distillation")
    parser.add_argument("--dev", action="store_true", help="score on dev instead of test, and keep no rows")
    parser.add_argument("--bfloat16", action="store_true", help="the teacher completes with half the bits")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / "distillation.jsonl", arguments.dev)
    if not arguments.render:
        run(arguments, evidence)
    if not arguments.dev:
        page = (EVIDENCE / "distillation.template.md").read_text(encoding="utf-8")
        rows = evidence.rows()
        for dataset in sorted({row["dataset"] for row in rows}):
            shown = [row for row in rows if row["dataset"] == dataset]
            page = page.replace(
                f"{{{dataset}}}", table(shown, ("method", "encoder", "weak"), [TEACHER, ALONE, STUDENT])
            )
        write_text(EVIDENCE / "distillation.md", page)


def run(arguments: argparse.Namespace, evidence: Evidence) -> None:
    """Teacher, gold alone, and student."""
    dataset, work = arguments.dataset, arguments.work / arguments.dataset
    gold = {split: corpus(find(arguments.data / dataset, split), work / f"{split}.spacy") for split in SPLITS}
    scored = gold["dev" if arguments.dev else "test"]
    text = texts(arguments, [find(arguments.data / dataset, split) for split in SPLITS], work)
    paths = {"paths.train": str(gold["train"]), "paths.dev": str(gold["dev"]), "system.seed": arguments.seed}
    trained = {**paths, "training.patience": 0}
    steps = {"training.max_steps": arguments.steps, "training.eval_frequency": arguments.steps // 15}

    def add(method: str, encoder: str, output: Path, cost: Cost, weak: int = 0) -> None:
        this = Run("distillation", dataset, encoder, "full", method, arguments.seed, count(gold["train"]), weak)
        if not evidence.has(this):
            counts, speed = evaluate(output / "model-best", scored)
            evidence.add(this, counts, cost, speed)

    own = {"components.crf_ner.model.tok2vec": own_transformer(str(arguments.transformer))}
    few = {"training.max_steps": arguments.teacher_steps, "training.eval_frequency": arguments.teacher_steps // 6}
    teacher, cost = train(config_file("crf_ner", "transformer"), work / "teacher", {**trained, **own, **few})
    add(TEACHER, "minilm", teacher, cost)
    cnn = {**trained, **steps}
    alone, cost = train(config_file("crf_ner", "cnn"), work / "alone", cnn)
    add(ALONE, "cnn", alone, cost)
    soft = work / "soft.spacy"
    complete(text, soft, teacher / "model-best", rule="all", soft=True, bfloat16=arguments.bfloat16)
    mixed: Dict[str, Any] = {key: value for key, value in cnn.items() if key != "paths.train"}
    mixed.update({"paths.strong": str(gold["train"]), "paths.weak": str(soft), "components.crf_ner.loss": SOFT})
    mixed["corpora.train.strong_share"] = STRONG_SHARE
    student, cost = train(config_file("crf_ner.strong_weak", "cnn"), work / "student", mixed)
    add(STUDENT, "cnn", student, cost, count(soft))


def corpus(source: Path, target: Path) -> Path:
    """A split of a data set."""
    convert(source, target, tokenizer=TOKENIZER, overwrite=True, limit=N_DEV if target.stem == "dev" else None)
    return target


def texts(arguments: argparse.Namespace, known: Any, work: Path) -> Path:
    """Raw text, without sentences of the data set."""
    keys = {sentence_key(" ".join(row["tokens"])) for path in known for _, row in read_rows(path)}
    name, splits = TEXTS[arguments.dataset]
    rows = (row["tokens"] for split in splits for _, row in read_rows(find(arguments.data / name, split)))
    new = (tokens for tokens in rows if sentence_key(" ".join(tokens)) not in keys)
    lines = (json.dumps({"tokens": tokens, "ents": None}) for tokens in islice(new, arguments.texts))
    write_text(work / "text.jsonl", "".join(f"{line}\n" for line in lines))
    return corpus(work / "text.jsonl", work / "text.spacy")


if __name__ == "__main__":
    main()
