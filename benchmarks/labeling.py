"""Speed of `label` against spaCy's tokenizer and writer alone.

    OMP_NUM_THREADS=1 python benchmarks/labeling.py --data DIR [--sentences 20000] [--repetitions 3] [--write]
    OMP_NUM_THREADS=1 python benchmarks/labeling.py --data DIR --memory 1000000 --terms 3 [--write]

`--data` holds a folder per data set with JSONL (perhaps gzipped); term lists are those of gazetteer-bio and
gazetteer-1m. Measured are CPU seconds of one process: `floor` tokenizes the text and writes the Docs as a `DocBin`;
`label` reads the corpus, looks the terms up and writes shards with span groups and receipts. All take turns.
`--memory N` labels N sentences (the corpora over and over) and says how much memory each third took at most.
With `--write` what was measured replaces its rows in docs/evidence/labeling.jsonl, of which labeling.md is made.
"""

import argparse
import json
import resource
import time
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import spacy
from common import EVIDENCE, find
from spacy.tokens import DocBin
from timing import conditions

from spacy_weakner.corpus.docbin import stream_docs
from spacy_weakner.corpus.jsonl import read_rows
from spacy_weakner.files import write_text
from spacy_weakner.labeling.label import label

CORPORA = {"PubMed": ("pubmed", "unlabeled"), "CoNLL-2003": ("conll03", "train"), "OA-Mine": ("oa-mine", "train")}
TERMS = {
    "3": (),
    "46 thousand": ("gazetteer-bio/gazetteer-mesh.jsonl", "gazetteer-bio/gazetteer-drugbank.jsonl.gz")
    + ("gazetteer-bio/gazetteer-disease-ontology.jsonl.gz",),
    "1.3 million": ("gazetteer-1m/gazetteer.jsonl.gz",),
}
FEW = [("Drug", "aspirin"), ("Place", "London"), ("Color", "black")]
INPUTS = ("tokens", "text", "text, split", "rows of text, split")
PAGE = """# Speed of `label`

`label` reads, matches and writes 70,000 to 200,000 words per CPU second. That is 40 to 95 % of the speed of tokenizing
and writing alone.

`OMP_NUM_THREADS=1 python benchmarks/labeling.py --data DIR --write`. Words per CPU second of one process, {n} sentences
of each corpus. Floor: spaCy's tokenizer, and writing a `DocBin`. `label` also reads the input and looks up terms, and
writes span groups, shards and receipts. In brackets: its share of the floor (target: 0.75). Inputs: JSONL with tokens;
raw text; raw text that is split into sentences (which the floor does not do); JSONL with text that is split.

{table}

Every run compiles the term list; this time is not included here ([how long it takes](gazetteer.md)).

The costs above the floor are per document: reading a row, and making the Doc, its span group and its stored data.
Short texts (OA-Mine: ten words) therefore cost more. In rows of text, each row is also checked.

{memory}

{conditions}
"""
MEMORY = "Peak memory of one process (`--memory {n} --terms 3`), after each third of {shown} sentences: {peaks} MiB."
ROWS = EVIDENCE / "labeling.jsonl"


class Files(NamedTuple):
    """A corpus in all forms.

    texts (List[str]): The sentences.
    paths (Dict[str, Path]): File by input.
    """

    texts: List[str]
    paths: Dict[str, Path]


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--corpora", default=",".join(CORPORA), help="names of corpora")
    parser.add_argument("--terms", default=",".join(TERMS), help="names of term lists")
    parser.add_argument("--memory", type=int, default=0, help="sentences to label for the peaks of memory")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        base = Path(folder)
        corpora = {
            name: make_files(find(arguments.data / place, split), arguments.sentences, base / place)
            for name, (place, split) in CORPORA.items()
            if name in arguments.corpora.split(",")
        }
        lists = {name: make_terms(arguments.data, name, base) for name in arguments.terms.split(",")}
        rows: List[Dict[str, Any]] = []
        how = conditions(arguments.repetitions, "spacy")  # before it is itself what loads the machine
        if arguments.memory:
            peaks = memory(corpora["PubMed"], next(iter(lists.values())), arguments.memory, base)
            rows.append({"memory": arguments.memory, "peaks": peaks})
        else:
            for corpus, files in corpora.items():
                for name, terms in lists.items():
                    cells = row(files, terms, base, arguments.repetitions)
                    rows.append({"corpus": corpus, "terms": name, "cells": cells, "conditions": how})
                    print(json.dumps(rows[-1]), flush=True)
    if arguments.write:
        kept = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()] if ROWS.exists() else []
        rows = list({identity(each): each for each in [*kept, *rows]}.values())
        write_text(ROWS, "".join(f"{json.dumps(each)}\n" for each in rows))
        write_text(EVIDENCE / "labeling.md", page(rows, arguments.sentences))


def identity(measured: Dict[str, Any]) -> Tuple[Any, ...]:
    """RETURNS (Tuple[Any, ...]): What a row says something about."""
    return tuple(measured.get(key) for key in ("corpus", "terms"))


def page(rows: List[Dict[str, Any]], n: int) -> str:
    """RETURNS (str): All that was measured."""
    lines = [f"| corpus | terms | floor | {' | '.join(INPUTS)} |", "|---" * (len(INPUTS) + 3) + "|"]
    measured = {identity(each): each for each in rows if "corpus" in each}
    order = [(corpus, terms) for corpus in CORPORA for terms in TERMS if (corpus, terms) in measured]
    lines += [f"| {corpus} | {terms} | {measured[corpus, terms]['cells']} |" for corpus, terms in order]
    told = [
        MEMORY.format(n=x["memory"], shown=f"{x['memory']:,}", peaks=", ".join(map(str, x["peaks"])))
        for x in rows
        if "memory" in x
    ]
    how = dict.fromkeys(each["conditions"] for each in measured.values())
    return PAGE.format(n=f"{n:,}", table="\n".join(lines), memory="\n".join(told), conditions="\n".join(how))


def make_files(source: Path, n: int, folder: Path) -> Files:
    """A corpus in all forms; one that is too small comes more than once."""
    folder.mkdir()
    sentences = [row["tokens"] for _, row in read_rows(source)]
    chosen = list(islice(cycle(sentences), n))
    texts = [" ".join(tokens) for tokens in chosen]
    paths = {"tokens": folder / "tokens.jsonl", "text": folder / "text.txt", "rows": folder / "rows.jsonl"}
    write_text(paths["tokens"], "".join(json.dumps({"id": str(i), "tokens": t}) + "\n" for i, t in enumerate(chosen)))
    write_text(paths["rows"], "".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(texts)))
    write_text(paths["text"], "".join(f"{text}\n" for text in texts))
    by_input = [paths["tokens"], paths["text"], paths["text"], paths["rows"]]
    return Files(texts, dict(zip(INPUTS, by_input, strict=True)))


def make_terms(data: Path, name: str, folder: Path) -> Path:
    """A term list in one file."""
    rows: Iterator[Dict[str, str]] = (
        {"label": row["label"], "term": row["term"]} for place in TERMS[name] for _, row in read_rows(data / place)
    )
    few = ({"label": label, "term": term} for label, term in FEW)
    path = folder / f"terms-{name}.jsonl"
    write_text(path, "".join(json.dumps(row) + "\n" for row in (rows if TERMS[name] else few)))
    return path


def row(files: Files, terms: Path, folder: Path, repetitions: int) -> str:
    """A line of the table.

    files (Files): The corpus.
    terms (Path): The term list.
    folder (Path): For what is written.
    repetitions (int): How often each is measured.
    RETURNS (str): Its cells.
    """
    runs: List[Callable[[], float]] = [lambda: floor(files.texts, folder / "floor.spacy")]
    runs += [
        lambda name=name: labeled(files.paths[name], terms, folder / "out", "split" in name)  # type: ignore[misc]
        for name in INPUTS
    ]
    rates: List[List[float]] = [[] for _ in runs]
    for _ in range(repetitions):
        for run, own in zip(runs, rates, strict=True):
            own.append(run())
    best, *others = map(median, rates)
    cells = [f"{rate / 1000:.0f} k ({rate / best:.2f})" for rate in others]
    return " | ".join([f"{best / 1000:.0f} k", *cells])


def floor(texts: List[str], output: Path) -> float:
    """Words per CPU second of the tokenizer and the writer."""
    tokenizer: Any = spacy.blank("en").tokenizer
    bin_, n_words = DocBin(), 0
    start = time.process_time()
    for doc in tokenizer.pipe(texts):
        bin_.add(doc)
        n_words += len(doc)
    bin_.to_disk(output)
    return n_words / (time.process_time() - start)


def labeled(path: Path, terms: Path, output: Path, sentences: bool) -> float:
    """Words per CPU second of `label`, without the time of the term list, which a run without text tells."""
    nothing = path.with_name("one.txt")
    write_text(nothing, "x\n")
    seconds = []
    for source in (nothing, path):
        for made in output.glob("*"):
            made.unlink()
        start = time.process_time()
        label(source, output, terms=terms, sentences="rule" if sentences else "none")
        seconds.append(time.process_time() - start)
    n_words = sum(len(doc) for doc in stream_docs(output))
    return n_words / (seconds[1] - seconds[0])


def memory(files: Files, terms: Path, n: int, folder: Path) -> List[int]:
    """RETURNS (List[int]): The peak of memory after each third of a long run, in MiB."""
    paths = []
    for third in range(3):
        path = folder / f"third-{third}.txt"
        lines = islice(cycle(files.texts), n // 3)
        write_text(path, "".join(f"{i * 7919 % n} {line}\n" for i, line in enumerate(lines, start=third * n)))
        paths.append(path)
    peaks = []
    for path in paths:
        label(path, folder / "long", terms=terms)
        peaks.append(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
        print(f"{path.name}: peak {peaks[-1]} MiB", flush=True)
        for made in (folder / "long").glob("*"):
            made.unlink()
    return peaks


if __name__ == "__main__":
    main()
