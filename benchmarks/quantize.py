"""Transformers in int8 and bfloat16 beside float32: F1, the same entities, words per CPU second, size.

    OMP_NUM_THREADS=1 python benchmarks/quantize.py --data DIR --transformer FOLDER [--gold 250,2000]

A `crf_ner` learns from sentences of BC5CDR; the best checkpoint on 300 sentences of dev predicts test, in all forms in
turn, some sentences at a time. What is in docs/evidence/quantize.jsonl is not measured again.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any, Dict, List

import spacy
from common import EVIDENCE, ROOT, Evidence, config_file, find, sample, train
from experiment import TOKENIZER
from prediction import BATCH, predict, units
from timing import conditions, use_threads
from trained import read

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.encoder_tools.quantize import quantize
from spacy_weakner.encoders.bfloat16 import use_bfloat16
from spacy_weakner.files import write_text
from spacy_weakner.scores import count_matches

DEV, IN_TURN = 300, 200
COLUMNS = ("gold", "seed", "pipeline", "MB", "words/CPU s", "times float32", "F1", "P", "R", "same entities")
FORMS = ("MiniLM, float32", "MiniLM, bfloat16", "MiniLM, int8", "linear CRF")
PAGE = """# A Transformer in int8

In int8, MiniLM keeps its F1, needs a quarter of the space and predicts 2.3 times as fast. In bfloat16, it predicts 1.4
times as fast, on CPUs that multiply in it.

`OMP_NUM_THREADS=1 python benchmarks/quantize.py --data DIR --transformer MINILM_FOLDER --gold 250,2000`.

A CRF (recipe `crf_ner`, sizes `transformer` and `linear`), trained on sentences of BC5CDR that are drawn with the seed;
the checkpoint is the best on {dev} sentences of dev. `nlp.pipe` predicts all sentences of test in batches of {batch}
Docs; pipelines with the same gold take turns every {in_turn} sentences. int8: `spacy weakner encoder quantize`;
bfloat16: `use_bfloat16(nlp)`. Same entities: F1 of the predictions, with those of float32 as gold.

{table}

{conditions}
"""


def main() -> None:
    """Train and measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--transformer", required=True)
    parser.add_argument("--gold", default="250", help="numbers of sentences, e.g. 250,2000")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "quantize")
    arguments = parser.parse_args()
    use_threads()
    warnings.filterwarnings("ignore")
    path = EVIDENCE / "quantize.jsonl"
    rows = Evidence(path).rows()
    for gold in map(int, arguments.gold.split(",")):
        for seed in map(int, arguments.seeds.split(",")):
            if not any((row["gold"], row["seed"]) == (gold, seed) for row in rows):
                made = measured(arguments, gold, seed)
                rows += made
                with path.open("a", encoding="utf-8") as file_:
                    file_.writelines(json.dumps(row) + "\n" for row in made)
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(str(row[name]) for name in COLUMNS) + " |" for row in rows]
    told = "\n\n".join(dict.fromkeys(row["conditions"] for row in rows))
    page = PAGE.format(dev=DEV, batch=BATCH, in_turn=IN_TURN, table="\n".join(lines), conditions=told)
    print(page)
    write_text(EVIDENCE / "quantize.md", page)


def learn(arguments: argparse.Namespace, gold: int, seed: int, size: str) -> Path:
    """RETURNS (Path): A pipeline that was trained."""
    folder = arguments.work / f"{gold}-{seed}"
    for split, n in (("train", gold), ("dev", DEV)):
        path = arguments.work / f"{split}.spacy"
        if not path.exists():
            convert(find(arguments.data / "bc5cdr", split), path, tokenizer=TOKENIZER)
        write_docs(folder / path.name, sample(path, n, seed)[0])
    values = {
        "paths.train": str(folder / "train.spacy"),
        "paths.dev": str(folder / "dev.spacy"),
        "system.seed": seed,
        "training.patience": 0,
        "nlp.tokenizer.@tokenizers": TOKENIZER,
    }
    if size == "transformer":
        values["paths.transformer"] = arguments.transformer
    if not (folder / size).exists():
        train(config_file("crf_ner", size), folder / size, values)
    return folder / size / "model-best"


def measured(arguments: argparse.Namespace, gold: int, seed: int) -> List[Dict[str, Any]]:
    """RETURNS (List[Dict[str, Any]]): A row for each pipeline."""
    test = list(read(find(arguments.data / "bc5cdr", "test")))
    exact, linear = (learn(arguments, gold, seed, size) for size in ("transformer", "linear"))
    rounded = exact.parent / "int8"
    report = quantize(exact, rounded, overwrite=True)
    paths = dict(zip(FORMS, (exact, exact, rounded, linear), strict=True))
    pipelines = {name: spacy.load(path) for name, path in paths.items()}
    sizes = (report.before, report.before, report.after, sum(p.stat().st_size for p in linear.rglob("*")))
    use_bfloat16(pipelines[FORMS[1]])
    seconds = dict.fromkeys(FORMS, 0.0)
    found: Dict[str, list] = {name: [] for name in FORMS}
    for nlp in pipelines.values():
        predict(nlp, test[:BATCH])()
    for start in range(0, len(test), IN_TURN):
        for name, nlp in pipelines.items():
            run = predict(nlp, test[start : start + IN_TURN])
            began = time.process_time()
            docs = run()
            seconds[name] += time.process_time() - began
            found[name] += map(doc_entities, docs)
    n_words = sum(len(words) for words, _ in test)
    told = conditions(1, "spacy", "transformers", "torch", "onnx", "onnxruntime").split("; ", 1)[1]
    rows = []
    for name, size in zip(FORMS, sizes, strict=True):
        counts, _ = count_matches(zip((entities for _, entities in test), found[name], strict=True))
        same, _ = count_matches(zip(found[FORMS[0]], found[name], strict=True))
        scores = (seconds[FORMS[0]] / seconds[name], counts.f1, counts.precision, counts.recall, same.f1)
        cells = (
            gold,
            seed,
            name,
            f"{size / 1e6:.1f}",
            f"{n_words / seconds[name]:,.0f}",
            *map("{:.2f}".format, scores),
        )
        rows.append({**dict(zip(COLUMNS, cells, strict=True)), "conditions": f"{told} bfloat16: {units()}."})
    return rows


if __name__ == "__main__":
    main()
