"""What reading a weakly labeled corpus, and the precision of matrix products, cost a training.

    OMP_NUM_THREADS=1 python benchmarks/training_speed.py --encoder FOLDER [--repetitions 5] [--write]

Reading: examples of 2,000 Docs of random words with two span groups, with the reader of spaCy and that of this package.
Precision: updates of `token_ner` on batches of ever other lengths with each setting of
`spacy_weakner.MatmulPrecision.v1`, each in a process of its own.
"""

import argparse
import multiprocessing
import random
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, List, Sequence, Tuple

import spacy
import torch
from common import EVIDENCE, encoder_name, own_transformer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.util import fix_random_seed
from timing import conditions, interleave, random_words, use_threads

from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.weak import set_group
from spacy_weakner.training.precision import PRECISIONS, make_matmul_precision
from spacy_weakner.training.readers import DocBinCorpus

N_DOCS, N_WORDS = 2000, 25
N_BATCHES, BATCH_WORDS = 60, 800
PAGE = """# What reading and precision cost

`OMP_NUM_THREADS=1 python benchmarks/training_speed.py --encoder MINILM_FOLDER --write`.

Reading {docs} Docs of {words} random words with two span groups each, as examples; medians of interleaved repetitions.

{reading}

srsly searches all registered functions and all entry points of the environment for converters, several times per Doc;
with `spacy_weakner.Corpus.v1` it searches once.

Updates of `token_ner` with {encoder} under `spacy_weakner.MatmulPrecision.v1`, each setting in a separate process:
{batches} batches of about {words_in_batch} words, in sentences of 8 to 60 words. Memory is the peak above that of the
loaded pipeline.

{precision}

Each setting was measured once. The CPU has units for bfloat16: {units}.

{conditions}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--repetitions", type=int, default=5, help="of reading")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/training-speed.md")
    arguments = parser.parse_args()
    use_threads()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "weak.spacy"
        write_docs(path, [make_doc(number, N_WORDS) for number in range(N_DOCS)])
        readers = [read(Corpus(path)), read(DocBinCorpus(path))]
        reading = [[N_DOCS / seconds] for seconds in interleave(readers, arguments.repetitions)]
    context = multiprocessing.get_context("spawn")
    precision = []
    for name in PRECISIONS:
        with context.Pool(1) as pool:
            precision.append(pool.apply(train, (arguments.encoder, name)))
    page = PAGE.format(
        docs=N_DOCS,
        words=N_WORDS,
        batches=N_BATCHES,
        words_in_batch=BATCH_WORDS,
        encoder=encoder_name(arguments.encoder),
        reading=table(["reader", "Docs/s"], ["`spacy.Corpus.v1`", "`spacy_weakner.Corpus.v1`"], reading),
        precision=table(["precision", "words/s", "MB"], list(PRECISIONS), precision),
        units="yes" if torch.cpu._is_amx_tile_supported() else "no",
        conditions=conditions(arguments.repetitions, "spacy", "srsly", "catalogue", "thinc", "torch"),
    )
    print(page)
    if arguments.write:
        (EVIDENCE / "training-speed.md").write_text(page, encoding="utf-8")


def table(header: List[str], names: List[str], rows: Sequence[Sequence[float]]) -> str:
    """A table with the ratio of speeds, which come first, to that of the first row."""
    lines = [f"| {' | '.join(header)} | ratio |", "|---" * (len(header) + 1) + "|"]
    for name, row in zip(names, rows, strict=True):
        cells = " | ".join(f"{value:,.0f}" for value in row)
        lines.append(f"| {name} | {cells} | {row[0] / rows[0][0]:.2f} |")
    return "\n".join(lines)


def make_doc(seed: int, n_words: int) -> Doc:
    """A Doc of random words, with what two sources say."""
    doc = Doc(VOCAB, words=random_words(seed, n_words))
    doc.set_ents([], default="outside")
    for source in ("terms", "model"):
        set_group(doc, f"weak:{source}", [(start, start + 2, "LOC") for start in (1, 4)])
    return doc


def read(corpus: Corpus) -> Callable[[], Any]:
    """Reads all examples."""
    nlp = spacy.blank("en")
    return lambda: sum(1 for _ in corpus(nlp))


def train(encoder: str, precision: str) -> Tuple[float, float]:
    """Updates under a precision.

    encoder (str): Name or folder of the Transformer.
    precision (str): The precision.
    RETURNS (Tuple[float, float]): Words per second; MB.
    """
    use_threads()
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy_weakner.TokenClassifier.v1", "tok2vec": own_transformer(encoder)}
    nlp.add_pipe("token_ner", config={"model": model})
    make_matmul_precision(precision)(nlp)
    draw = random.Random(0)
    batches = []
    for _ in range(N_BATCHES):
        length = draw.randint(8, 60)
        batches.append([make_example(nlp, draw.random(), length) for _ in range(BATCH_WORDS // length)])
    fix_random_seed(0)
    nlp.initialize(lambda: batches[0][:2])
    optimizer = nlp.create_optimizer()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    for batch in batches:
        nlp.update(batch, sgd=optimizer)
    seconds = time.perf_counter() - started
    words = sum(len(example.predicted) for batch in batches for example in batch)
    return words / seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def make_example(nlp: Language, seed: float, n_words: int) -> Example:
    """Random words, the first of which is an entity."""
    words = random_words(seed, n_words)
    return Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, ents=["B-LOC"] + ["O"] * (n_words - 1)))


VOCAB = spacy.blank("en").vocab


if __name__ == "__main__":
    main()
