"""What the pairing of starts and ends is worth: F1 of trained `mrc_ner` pipelines at several thresholds.

    python benchmarks/pairing.py --gold dev.spacy [--write] NAME=PIPELINE ...

The pipelines are those that cofee.py has trained, and the gold is its dev. Nothing is trained here.
"""

import argparse
from pathlib import Path
from typing import Tuple

import spacy
from common import EVIDENCE
from spacy.tokens import Doc

from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import doc_entities
from spacy_weakner.scores import count_matches
from spacy_weakner.ty import PAIRINGS

THRESHOLDS = (0.5, 0.3, 0.1)
INTRODUCTION = """# Pairing starts and ends

`mrc_ner` on the weak labels of CoNLL-2003 (`mrc` of [cofee](cofee.md)), F1 on 300 sentences of dev. "nearest" pairs
each start with its nearest end; "probable" takes the entities with the largest sum of probabilities. The pipelines are
the same; only `threshold` and `pairing` differ. Reproduce, after cofee.py, with

    python benchmarks/pairing.py --write --gold WORK/conll03-2000/seed0/dev.spacy NAME=WORK/.../mrc/model-best ...
"""


def f1(model: Path, gold: Path, threshold: float, pairing: str) -> float:
    """Score a pipeline.

    model (Path): The pipeline.
    gold (Path): Gold corpus.
    threshold (float), pairing (str): Settings of `mrc_ner`.
    RETURNS (float): F1 in 0..100.
    """
    nlp = spacy.load(model, config={"components": {"mrc_ner": {"threshold": threshold, "pairing": pairing}}})
    docs = list(read_docs(gold, nlp.vocab))
    bare = (Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs)
    pairs = ((doc_entities(doc), doc_entities(own)) for doc, own in zip(docs, nlp.pipe(bare), strict=True))
    return count_matches(pairs)[0].f1


def named(text: str) -> Tuple[str, Path]:
    """RETURNS (Tuple[str, Path]): Name and pipeline."""
    name, _, path = text.partition("=")
    return name, Path(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=named, nargs="+", metavar="NAME=PIPELINE")
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="write docs/evidence/pairing.md")
    arguments = parser.parse_args()
    columns = [(threshold, pairing) for threshold in THRESHOLDS for pairing in PAIRINGS]
    lines = ["| pipeline | " + " | ".join(f"{pairing}, {threshold}" for threshold, pairing in columns) + " |"]
    lines.append("|" + "---|" * (len(columns) + 1))
    for name, model in arguments.models:
        cells = [f"{f1(model, arguments.gold, threshold, pairing):.1f}" for threshold, pairing in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if arguments.write:
        (EVIDENCE / "pairing.md").write_text(f"{INTRODUCTION}\n{chr(10).join(lines)}\n", encoding="utf-8")
