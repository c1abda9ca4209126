"""`TransformerEncoder` beside spacy-transformers and a plain loop: words per CPU second, and F1.

    OMP_NUM_THREADS=1 python benchmarks/transformer_encoder.py --data DIR --transformer FOLDER [--seeds 0,1,2]

Speed: a `crf_ner` of the sizes `transformer` and `spacy-transformers` on sentences of BC5CDR, in turn, in CPU seconds
of one process; trained with the batches of its config, and predicting test. F1: trained with 250 sentences of gold
through the command line; the best checkpoint on 300 sentences of dev is scored on test once.
"""

import argparse
import time
import warnings
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from common import EVIDENCE, ROOT, Evidence, Run, config_file, count, evaluate, find, sample, table, train
from experiment import TOKENIZER
from prediction import plain_loop
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from thinc.api import Adam
from timing import conditions, interleave, use_threads
from trained import RATES, Rows, pipeline, read

from spacy_weakner.configs import make_config
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.files import write_text

SIZES = {"transformer": "`TransformerEncoder`", "spacy-transformers": "spacy-transformers"}
GOLD, DEV, UPDATES = 250, 300, 4
PAGE = """# A Transformer as encoder

`OMP_NUM_THREADS=1 python benchmarks/transformer_encoder.py --data DIR --transformer MINILM_FOLDER --write`.

## Speed

Words per CPU second of a `crf_ner` on MiniLM: in training (updates with the batches of the size's config), in
prediction (`nlp.pipe`, {sentences} sentences of BC5CDR's test), and of the encoder alone, which gets the same sentences
at once. The plain loop tokenizes, sorts all sentences by length, pads batches of 32, and takes the best tag of each
first piece, without Docs and without decoding. Ratios are to spacy-transformers, in the last column to the loop.

{speed}

`TransformerEncoder` sorts its input by length. On a CPU it reads about 700 pieces at a time, so that intermediate
results stay in the CPU's caches. spacy-transformers reads its whole input at once, padded to the longest sentence; it
gets small batches of like length from the heads in prediction, and from the configs in training.

{conditions}

## F1

BC5CDR, {gold} gold sentences drawn with the seed; the best checkpoint on {dev} sentences of dev, scored on test.

{f1}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--transformer", required=True)
    parser.add_argument("--sentences", type=int, default=400, help="to predict")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seeds", default="", help="of trainings to score, e.g. 0,1,2")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "encoder")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/encoder.md")
    arguments = parser.parse_args()
    use_threads()
    warnings.filterwarnings("ignore")
    evidence = Evidence(EVIDENCE / "encoder.jsonl")
    for seed in map(int, filter(None, arguments.seeds.split(","))):
        score(arguments, evidence, seed)
    folder = arguments.data / "bc5cdr"
    rows, test = (list(read(find(folder, split))) for split in ("train", "test"))
    page = PAGE.format(
        speed=speeds(arguments, rows[:1000], test[: arguments.sentences]),
        sentences=arguments.sentences,
        f1=table(evidence.rows(), ("method",), list(SIZES)),
        gold=GOLD,
        dev=DEV,
        conditions=conditions(arguments.repetitions, "spacy-transformers", "transformers", "thinc", "torch"),
    )
    print(page)
    if arguments.write:
        write_text(EVIDENCE / "encoder.md", page)


def speeds(arguments: argparse.Namespace, rows: Rows, test: Rows) -> str:
    """RETURNS (str): A table of words per CPU second."""
    made = {size: pipeline("crf_ner", size, arguments.transformer, rows) for size in SIZES}
    updates = {size: trains(nlp, examples) for size, (nlp, examples) in made.items()}
    runs: Dict[str, Callable[[], object]] = {"loop": plain_loop(arguments.transformer, test)}
    for size, (nlp, _) in made.items():
        docs = [Doc(nlp.vocab, words=words) for words, _ in test]
        ner: Any = nlp.get_pipe("crf_ner")
        runs[size] = partial(predict, nlp, test)
        runs[f"{size} alone"] = partial(ner.model.get_ref("tok2vec").predict, docs)
    learning = [run for run, _ in updates.values()]
    seconds = interleave([*learning, *runs.values()], arguments.repetitions, clock=time.process_time)
    trained = dict(
        zip(SIZES, (n / spent for (_, n), spent in zip(updates.values(), seconds, strict=False)), strict=True)
    )
    n_words = sum(len(words) for words, _ in test)
    found = dict(zip(runs, (n_words / spent for spent in seconds[len(learning) :]), strict=True))
    lines = ["| | training | prediction | encoder alone | prediction, to the loop |", "|---|---|---|---|---|"]
    for size, name in SIZES.items():
        pairs = [(kind[size], kind["spacy-transformers"]) for kind in (trained, found)]
        pairs.append((found[f"{size} alone"], found["spacy-transformers alone"]))
        cells = " | ".join(f"{speed:,.0f} ({speed / other:.2f})" for speed, other in pairs)
        lines.append(f"| {name} | {cells} | {found[size] / found['loop']:.2f} |")
    return "\n".join([*lines, f"| plain loop | | {found['loop']:,.0f} | | 1.00 |"])


def predict(nlp: Language, test: Rows) -> List[Doc]:
    """RETURNS (List[Doc]): Sentences with what is found in them, in batches of the config's size."""
    return list(nlp.pipe(Doc(nlp.vocab, words=words) for words, _ in test))


def trains(nlp: Language, examples: List[Example]) -> Tuple[Callable[[], None], int]:
    """RETURNS (Tuple[Callable[[], None], int]): Updates on batches as the config has them, and their words."""
    settings = make_config("crf_ner", "transformer")["training"]["batcher"]
    batcher = registry.resolve({"batcher": settings})["batcher"]
    batches = list(islice(batcher(cycle(examples)), UPDATES))
    optimizer = Adam(RATES["transformer"], use_averages=False)

    def run() -> None:
        for batch in batches:
            nlp.update(batch, sgd=optimizer, drop=0.1)

    return run, sum(len(example.reference) for batch in batches for example in batch)


def score(arguments: argparse.Namespace, evidence: Evidence, seed: int) -> None:
    """Train with both on the gold of a seed, and score them."""
    work = arguments.work / str(seed)
    for split in ("train", "dev", "test"):
        convert(
            find(arguments.data / "bc5cdr", split), work / f"all-{split}.spacy", tokenizer=TOKENIZER, overwrite=True
        )
    for split, n in (("train", GOLD), ("dev", DEV)):
        write_docs(work / f"{split}.spacy", sample(work / f"all-{split}.spacy", n, seed)[0])
    values = {"paths.train": str(work / "train.spacy"), "paths.dev": str(work / "dev.spacy"), "system.seed": seed}
    for size in SIZES:
        run = Run("encoder", "bc5cdr", "minilm", "full", size, seed, count(work / "train.spacy"), 0)
        if not evidence.has(run):
            overrides = {**values, "paths.transformer": arguments.transformer, "training.patience": 0}
            output, cost = train(config_file("crf_ner", size), work / size, overrides)
            counts, speed = evaluate(output / "model-best", work / "all-test.spacy")
            evidence.add(run, counts, cost, speed)


if __name__ == "__main__":
    main()
