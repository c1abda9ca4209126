"""How fast a pipeline predicts: words per CPU second, of the whole and of each component.

    OMP_NUM_THREADS=1 python benchmarks/package_speed.py PIPELINE TEXT [--repetitions 3]

TEXT has a text a line, or is JSONL with "tokens" or "text". Every component reads the same Docs, all of them, after
those before it; the first pass is not counted. The best pass is printed.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Dict, List

from spacy.language import Language
from timing import use_threads

from spacy_weakner.files import read_lines
from spacy_weakner.pipelines import load_pipeline


def main() -> None:
    """Measure, and print a line for each component."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    use_threads()
    warnings.filterwarnings("ignore")
    nlp, texts = load_pipeline(arguments.pipeline), read_texts(arguments.text)
    measured = [seconds(nlp, texts) for _ in range(arguments.repetitions + 1)][1:]
    n_words = sum(len(doc) for doc in map(nlp.make_doc, texts))
    print(f"{len(texts)} texts, {n_words} words, batches of {nlp.batch_size}")
    for name in measured[0]:
        best = min(own[name] for own in measured)
        print(f"{name:20} {n_words / best:10,.0f} words/s {1e6 * best / n_words:8.1f} µs/word")


def seconds(nlp: Language, texts: List[str]) -> Dict[str, float]:
    """RETURNS (Dict[str, float]): CPU seconds of each component, and of all of them together."""
    start = time.process_time()
    docs = list(map(nlp.make_doc, texts))
    found = {"tokenizer": time.process_time() - start}
    for name, component in nlp.pipeline:
        start = time.process_time()
        docs = list(component.pipe(docs, batch_size=nlp.batch_size))  # type: ignore[attr-defined]
        found[name] = time.process_time() - start
    start = time.process_time()
    for _ in nlp.pipe(texts):
        pass
    return {**found, "all": time.process_time() - start}


def read_texts(path: Path) -> List[str]:
    """RETURNS (List[str]): The texts of a file."""
    if ".jsonl" not in path.suffixes:
        return list(read_lines(path))
    rows = map(json.loads, read_lines(path))
    return [row["text"] if "text" in row else " ".join(row["tokens"]) for row in rows]


if __name__ == "__main__":
    main()
