"""How fast pipelines predict: the heads of this package beside their peers, and a Transformer in bfloat16.

    OMP_NUM_THREADS=1 python benchmarks/prediction.py --data DIR --transformer FOLDER [--write]

All read the same sentences of BC5CDR's test, in turn, in CPU seconds of one process. They are trained a little on
sentences of train before, since entities that are found cost time. The pipeline on a Transformer that is scored with
and without bfloat16 is trained for longer.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List

import torch
from common import EVIDENCE, find
from spacy.language import Language
from spacy.tokens import Doc
from timing import conditions, interleave, use_threads
from trained import MAX_WIDTH, PEERS, Rows, read, trained

from spacy_weakner.encoders.bfloat16 import use_bfloat16
from spacy_weakner.files import write_text
from spacy_weakner.scores import count_matches

BATCH = 64
SCORED_UPDATES, SCORED = 250, 1000
LOOP = "a plain loop"
PAGE = """# How fast pipelines predict

The heads of this package predict about as fast as spaCy's `ner` on the same encoder, and two to three times as fast as
its `spancat`. A linear CRF is five times as fast.

`OMP_NUM_THREADS=1 python benchmarks/prediction.py --data DIR --transformer MINILM_FOLDER --write`. Words per CPU second
of `nlp.pipe` with batches of {batch} Docs on tokenized sentences of BC5CDR's test ({n_small} for the CNN, {n_large} for
the Transformer), with two labels. All pipelines are trained briefly, and take turns.

## A convolutional network

`spacy.HashEmbedCNN.v2`, width 96, depth 4, in all but the linear CRF, which has indicator features and no network.
Spans have up to {width} tokens. Ratios are to spaCy's `ner`.

{cnn}

## A Transformer

MiniLM. The plain loop tokenizes, sorts by length, pads batches of 32, and takes the best tag of each first piece,
without Docs and without decoding. Ratios are to this loop.

{transformer}

## bfloat16

`use_bfloat16(nlp)`, or `spacy weakner relabel complete --bfloat16`: a `crf_ner` on MiniLM, {updates} updates on gold;
{scored} sentences of test. bfloat16 is faster only on CPUs with instructions for it ({units} here).

{bfloat16}

{conditions}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--transformer", required=True)
    parser.add_argument("--sentences", type=int, default=600, help="to predict with the CNN; a quarter with MiniLM")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/evidence/prediction.md")
    arguments = parser.parse_args()
    use_threads()
    warnings.filterwarnings("ignore")
    folder = arguments.data / "bc5cdr"
    train, test = (list(read(find(folder, split))) for split in ("train", "test"))
    small, large = test[: arguments.sentences], test[: arguments.sentences // 4]
    cnn: Dict[str, Callable[[], object]] = {
        name: predict(trained(name, "cnn", "", train), small) for name in (*PEERS, "crf_ner")
    }
    cnn["crf_ner, scores"] = predict(trained("crf_ner", "cnn", "", train, scores=True), small)
    for name in ("token_ner", "span_ner", "mrc_ner"):
        cnn[name] = predict(trained(name, "cnn", "", train), small)
    cnn["crf_ner, linear"] = predict(trained("crf_ner", "linear", "", train), small)
    make = partial(trained, size="transformer", transformer=arguments.transformer, train=train)
    deep: Dict[str, Callable[[], object]] = {LOOP: plain_loop(arguments.transformer, large)}
    deep.update({name: predict(make(name), large) for name in ("ner", "crf_ner", "token_ner", "mrc_ner")})
    faster = make("crf_ner")
    use_bfloat16(faster)
    deep["crf_ner, bfloat16"] = predict(faster, large)
    page = PAGE.format(
        batch=BATCH,
        n_small=len(small),
        n_large=len(large),
        width=MAX_WIDTH,
        cnn=speeds(cnn, small, arguments.repetitions),
        transformer=speeds(deep, large, arguments.repetitions),
        bfloat16=scored(make, test[-SCORED:]),
        updates=SCORED_UPDATES,
        scored=SCORED,
        units=units(),
        conditions=conditions(arguments.repetitions, "spacy", "transformers", "torch"),
    )
    print(page)
    if arguments.write:
        write_text(EVIDENCE / "prediction.md", page)


def speeds(runs: Dict[str, Callable[[], object]], rows: Rows, repetitions: int) -> str:
    """RETURNS (str): A table."""
    n_words = sum(len(words) for words, _ in rows)
    seconds = interleave(list(runs.values()), repetitions, clock=time.process_time)
    lines = ["| pipeline | words/s | ratio |", "|---|---|---|"]
    for name, own in zip(runs, seconds, strict=True):
        head, comma, how = name.partition(",")
        shown = PEERS.get(name, name if name == LOOP else f"`{head}`{comma}{how}")
        lines.append(f"| {shown} | {n_words / own:,.0f} | {seconds[0] / own:.2f} |")
    return "\n".join(lines)


def units() -> str:
    """RETURNS (str): What the CPU has for bfloat16, as Linux says it."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text(encoding="utf-8").split()) if info.exists() else set()
    return ", ".join(sorted({"avx512_bf16", "amx_bf16", "bf16"} & flags)) or "none known"


def predict(nlp: Language, rows: Rows) -> Callable[[], List[Doc]]:
    """RETURNS (Callable[[], List[Doc]]): Predicts from words alone."""
    return lambda: list(nlp.pipe([Doc(nlp.vocab, words=words) for words, _ in rows], batch_size=BATCH))


def scored(make: Callable[..., Language], rows: Rows) -> str:
    """RETURNS (str): A table of F1 with and without bfloat16."""
    nlp = make("crf_ner", updates=SCORED_UPDATES)
    lines = ["| | F1 | P | R | words/s |", "|---|---|---|---|---|"]
    for name in ("float32", "bfloat16"):
        if name == "bfloat16":
            use_bfloat16(nlp)
        predict(nlp, rows[:BATCH])()
        started = time.process_time()
        docs = predict(nlp, rows)()
        seconds = time.process_time() - started
        found = [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in docs]
        counts, _ = count_matches(zip([gold for _, gold in rows], found, strict=True))
        rate = sum(map(len, docs)) / seconds
        lines.append(f"| {name} | {counts.f1:.2f} | {counts.precision:.2f} | {counts.recall:.2f} | {rate:,.0f} |")
    return "\n".join(lines)


def plain_loop(folder: str, rows: Rows) -> Callable[[], List[List[int]]]:
    """What one writes without spaCy."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForTokenClassification.from_pretrained(folder, num_labels=5, use_safetensors=True).eval()

    def run() -> List[List[int]]:
        given = tokenizer([words for words, _ in rows], is_split_into_words=True, truncation=True)
        order = sorted(range(len(rows)), key=lambda i: len(given["input_ids"][i]))
        found: List[List[int]] = [[] for _ in rows]
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            padded = tokenizer.pad({key: [given[key][i] for i in batch] for key in given}, return_tensors="pt")
            with torch.inference_mode():
                best = model(**padded).logits.argmax(-1).tolist()
            for i, tags in zip(batch, best, strict=True):
                words = given.word_ids(i)
                found[i] = [tags[j] for j, word in enumerate(words) if word is not None and word != words[j - 1]]
        return found

    return run


if __name__ == "__main__":
    main()
