"""How fast pipelines predict, and how large they are.

    OMP_NUM_THREADS=1 python benchmarks/speed.py CORPUS NAME=PIPELINE [NAME=PIPELINE ...]

They read the texts of a corpus in turn, in one process: words per CPU second of `nlp.pipe`, with tokenization, and MB
on disk.
"""

import argparse
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import List

from spacy.language import Language
from spacy.vocab import Vocab
from timing import conditions, interleave, use_threads

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.evaluation.candidates import parse_candidates
from spacy_weakner.files import folder_size
from spacy_weakner.pipelines import load_pipeline

BATCH, REPETITIONS = 256, 3


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("pipelines", nargs="+", metavar="NAME=PIPELINE")
    parser.add_argument("--limit", type=int, default=1000, help="number of sentences")
    arguments = parser.parse_args()
    use_threads()
    texts = [doc.text for doc in islice(read_docs(arguments.corpus, Vocab()), arguments.limit)]
    paths = parse_candidates(arguments.pipelines)
    pipelines = [load_pipeline(Path(path)) for path in paths.values()]
    words = [sum(map(len, map(nlp.make_doc, texts))) for nlp in pipelines]
    seconds = interleave([partial(run, nlp, texts) for nlp in pipelines], REPETITIONS, time.process_time)
    print("| pipeline | words per CPU second | MB |\n|---|---|---|")
    for (name, path), n, took in zip(paths.items(), words, seconds, strict=True):
        print(f"| {name} | {n / took:,.0f} | {folder_size(Path(path)) / 1e6:.1f} |")
    print(f"\n{len(texts):,} sentences. {conditions(REPETITIONS, 'spacy', 'torch')}")


def run(nlp: Language, texts: List[str]) -> None:
    """Predict all."""
    for _ in nlp.pipe(texts, batch_size=BATCH):
        pass


if __name__ == "__main__":
    main()
