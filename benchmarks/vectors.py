"""What word vectors of text bring to linear heads, on dev.

    python benchmarks/vectors.py --data DIR --transformer FOLDER [--gold 50,100,250] [--seeds 0,1,2]

Heads are trained on samples of train, without vectors, with those of 4,500 sentences of train, and with those of more
text: PubMed for BC5CDR, all of train for CoNLL-2003; and with the subword vectors of a Transformer, distilled on the
4,500 sentences, alone and with the vectors of these sentences. With `list` they read matches of a term list, too: half
of the list of BC5CDR, all of that of CoNLL-2003. Rows go to docs/evidence/vectors.jsonl; docs/evidence/vectors.md is
written at the end.
"""

import argparse
import random
from pathlib import Path
from typing import Any, Dict, List

from best import WORDS, read_rows, write_rows
from common import EVIDENCE, ROOT, Cost, Evidence, Run, config_file, evaluate, find, mean_and_spread

from spacy_weakner.conversion.convert import convert
from spacy_weakner.encoder_tools.distill import distill
from spacy_weakner.encoder_tools.vectors import vectors
from spacy_weakner.files import write_text
from spacy_weakner.runs.training import LAST, Training, train_all

TEXTS, DEV = 4500, 2000
PLAIN, OWN, MORE, PIECES, BOTH = "plain", "own text", "more text", "pieces", "pieces and own text"
VARIANTS = (PLAIN, OWN, MORE, PIECES, BOTH)
RECIPES = {"gold alone": "crf_ner", "list": "crf_ner.terms"}


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "vectors")
    parser.add_argument("--sets", default="bc5cdr,conll03")
    parser.add_argument("--heads", default=",".join(RECIPES))
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--transformer", help="folder of the Transformer whose subword vectors are read")
    parser.add_argument("--gold", default="50,100,250")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / "vectors.jsonl")
    if not arguments.render:
        for name in arguments.sets.split(","):
            run(name, arguments, evidence)
    write_text(EVIDENCE / "vectors.md", PAGE.format(table=table(evidence.rows())))


def run(name: str, arguments: argparse.Namespace, evidence: Evidence) -> None:
    """All rows of a data set that are missing."""
    folder, wanted = arguments.work / name, []
    for head in arguments.heads.split(","):
        for gold in map(int, arguments.gold.split(",")):
            for seed in map(int, arguments.seeds.split(",")):
                for variant in [name for name in VARIANTS if name in arguments.variants.split(",")]:
                    this = Run("vectors", name, "linear", "quick", f"{head}, {variant}", seed, gold, 0)
                    if not evidence.has(this):
                        wanted.append((this, head, variant))
    dev = corpus(arguments.data, name, folder, "dev", 0, DEV)
    trainings = [training(arguments, name, folder, *row, dev) for row in wanted]
    train_all(trainings, progress=True)
    for (this, _, _), trained in zip(wanted, trainings, strict=True):
        counts, speed = evaluate(trained.output / LAST, dev)
        evidence.add(this, counts, Cost(), speed)


def training(
    arguments: argparse.Namespace, name: str, folder: Path, this: Run, head: str, variant: str, dev: Path
) -> Training:
    """A training on a sample of train."""
    data = arguments.data
    train = corpus(data, name, folder, "train", this.seed, this.strong)
    overrides: Dict[str, Any] = {"paths.train": str(train), "paths.dev": str(dev)}
    if head == "list":
        overrides["paths.terms"] = str(term_list(data, name, folder))
    with_pieces = variant in (PIECES, BOTH)
    if with_pieces:
        overrides["paths.pieces"] = str(make_pieces(data, name, folder, arguments.transformer))
    if variant in (OWN, MORE, BOTH):
        overrides["initialize.vectors"] = str(make_vectors(data, name, folder, MORE if variant == MORE else OWN))
    output = folder / f"{head}-{variant}-{this.strong}-{this.seed}".replace(" ", "-")
    return Training(config_file(RECIPES[head], "linear-static" if with_pieces else "linear"), output, overrides)


def corpus(data: Path, name: str, folder: Path, split: str, seed: int, size: int) -> Path:
    """A sample of sentences."""
    path = folder / f"{split}-{size}-{seed}.spacy"
    if not path.exists():
        rows = read_rows(data / name, split)
        random.Random(seed).shuffle(rows)
        plain = path.with_suffix(".jsonl")
        write_rows(plain, [{key: row[key] for key in ("id", "tokens", "ents")} for row in rows[:size]])
        convert(plain, path, tokenizer=WORDS)
    return path


def term_list(data: Path, name: str, folder: Path) -> Path:
    """The list of a data set, or half of it."""
    terms, path = read_rows(data / name, "gazetteer"), folder / "terms.jsonl"
    if name == "bc5cdr":
        random.Random(7).shuffle(terms)
        terms = terms[: len(terms) // 2]
    write_rows(path, [{"label": row["label"], "term": row["term"]} for row in terms])
    return path


def some_text(data: Path, name: str, folder: Path) -> Path:
    """4,500 sentences of train, without labels."""
    path = folder / "text.jsonl"
    if not path.exists():
        rows = read_rows(data / name, "train")
        random.Random(12345).shuffle(rows)
        write_rows(path, [{key: row[key] for key in ("id", "tokens")} for row in rows[:TEXTS]])
    return path


def make_pieces(data: Path, name: str, folder: Path, transformer: str) -> Path:
    """Subword vectors of a Transformer, fitted to the words of 4,500 sentences of train."""
    path = folder / "pieces"
    if not path.exists():
        print(name, distill([some_text(data, name, folder)], path, model=transformer), flush=True)
    return path


def make_vectors(data: Path, name: str, folder: Path, variant: str) -> Path:
    """Vectors of 4,500 sentences of train, or of more text."""
    path = folder / variant.replace(" ", "-")
    if not path.exists():
        text = some_text(data, name, folder)
        more = find(data / "pubmed", "unlabeled") if name == "bc5cdr" else find(data / name, "train")
        inputs = [text] if variant == OWN else [text, more] if name == "bc5cdr" else [more]
        print(name, variant, vectors(inputs, path, tokenizer=WORDS), flush=True)
    return path


def table(rows: List[Dict[str, Any]]) -> str:
    """F1 of all heads, a line for each data set, head and size of gold."""
    lines = [f"| data, head | gold | {' | '.join(VARIANTS)} | samples |", "|---|---|" + "---|" * (len(VARIANTS) + 1)]
    groups = sorted({(row["dataset"], row["method"].split(", ")[0], row["strong"]) for row in rows})
    for dataset, head, gold in groups:
        found = {
            variant: [
                row["f1"]
                for row in rows
                if (row["dataset"], row["method"], row["strong"]) == (dataset, f"{head}, {variant}", gold)
            ]
            for variant in VARIANTS
        }
        cells = [mean_and_spread(values) if values else "-" for values in found.values()]
        lines.append(f"| {dataset}, {head} | {gold} | {' | '.join(cells)} | {len(found[PLAIN])} |")
    return "\n".join(lines)


PAGE = """# Word vectors of text

Clusters of word vectors of the project's own text raise the F1 of a linear CRF, the more the less gold there is. With
50 gold sentences alone, they add 5 and 7 points. Subword vectors of a Transformer, or vectors of more text, add more.

    python benchmarks/vectors.py --data DIR --transformer MINILM_FOLDER

A linear CRF (size `linear`) without vectors, and with clusters of vectors that `encoder vectors` makes from text. Own
text: 4,500 sentences of train, without their labels. More text: these and 129,130 PubMed sentences for BC5CDR, all
14,041 sentences of train for CoNLL-2003. Pieces: subword vectors that `encoder distill` makes from MiniLM (23 million
weights), used in addition to the features (size `linear-static`). F1 on 2,000 sentences of dev, mean and standard
deviation over the samples. `list`: the head also reads the matches of a term list: half of BC5CDR's list, all of
CoNLL-2003's.

{table}

On average, pieces gain more than own text. Own text adds to pieces: 0.7 points on average over these twelve rows,
and in no row are both together 0.2 below pieces alone. So a project of the size `linear-static` uses both.

## Settings that were compared

The same heads on the same sentences of dev, gold alone, mean F1 of one sample of 100 and two samples of 250 sentences
of both data sets, vectors of all of train; measured once, by a script that is not kept:

| | F1 |
|---|---|
| no vectors | 60.2 |
| singular vectors | 64.7 |
| singular vectors times roots of the singular values | 65.2 |
| singular vectors times singular values | 65.4 |
| times roots of the singular values, k-means until it converges | 65.1 |
| times singular values; words without a vector get their shape as cluster | 65.6 |

Clusters per level, mean F1 of five samples of 50 to 1,000 sentences of each data set: 32, 128, 512 and 1,000: 64.6;
64 and 500: 64.0; 128: 62.7; none: 60.1.

Own text holds nearly all of BC5CDR's train, and thus also the gold sentences: rare words of the gold then have clusters
more often than rare words of dev. Without these sentences in the text (gold alone, first sample), 1,000 gold sentences
have 75.7 instead of 74.5, which is still less than without vectors (76.2); 250 have 63.7 (with them 63.3); for
CoNLL-2003, 250 have 70.6 (70.6). So projects make vectors from the text alone.

A project with only text (4,000 sentences) and 100 gold sentences, without a list, packaged (`init project` without
`--terms`; for the figures without vectors, the stage `vectors` was removed from its project.yml), F1 on test, first
sample, measured once: CoNLL-2003 62.9 with vectors and 56.8 without, BC5CDR 57.1 and 52.4.

A project with half of BC5CDR's list, 100 gold sentences, and the 129,130 PubMed sentences added to the 4,000 of its
text, F1 on test, first sample, measured once: packaged 71.4, with the 4,000 alone 70.3; gold alone 57.3 and 51.7; 5.2
CPU minutes.

A head on weak labels alone (2,000 sentences of train with the list's matches; vectors of all of train): 62.1 without
and 62.6 with vectors on BC5CDR, 43.5 and 45.1 on CoNLL-2003.

## Cost

On CoNLL-2003's dev, one thread, two runs each on a busy machine: 134,000 and 153,000
words per CPU second without vectors, 133,000 and 137,000 with clusters. Clusters add 0.1 MB to a head (4,500
sentences). Vectors of 133,690 sentences (3.9 million tokens) take 40 s on a busy machine, and 645 MB. Reading 129,130
of these sentences as JSONL takes 14 CPU seconds; counting eight times as many and the decomposition take 8, and 747 MB.
"""

if __name__ == "__main__":
    main()
