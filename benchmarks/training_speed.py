"""What reading a weakly labelled corpus, and the precision of matrix products, cost a training.

    OMP_NUM_THREADS=1 python benchmarks/training_speed.py --encoder FOLDER [--repetitions 5] [--write]

Reading: examples of 2,000 Docs of random words with two span groups, with the reader of spaCy and that of this package.
Precision: one update of `token_ner` for 32 sentences with each setting of `spacy_weakner.MatmulPrecision.v1`.
"""

import argparse
import os
import platform
import random
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, List

import spacy
import torch
from common import EVIDENCE, interleave, own_transformer
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.util import fix_random_seed

from spacy_weakner.annotations.corpus import write_docs
from spacy_weakner.annotations.weak import set_group
from spacy_weakner.training.precision import PRECISIONS, make_matmul_precision
from spacy_weakner.training.readers import BinCorpus

N_DOCS, N_SENTENCES, N_WORDS = 2000, 32, 25
PAGE = """# What reading and precision cost

`OMP_NUM_THREADS=1 python benchmarks/training_speed.py --encoder MINILM_FOLDER --write`. Repetitions are interleaved,
medians.

Reading {docs} Docs of {words} random words with two span groups each, as examples:

{reading}

srsly looks for converters among all that is registered and all entry points of the environment, several times per Doc;
`spacy_weakner.Corpus.v1` lets it look once.

One update of `token_ner` on {sentences} such sentences, with MiniLM, under `spacy_weakner.MatmulPrecision.v1`:

{precision}

{conditions}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/evidence/training-speed.md")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "weak.spacy"
        write_docs(path, [make_doc(number) for number in range(N_DOCS)])
        readers = [read(Corpus(path)), read(BinCorpus(path))]
        reading = [N_DOCS / seconds for seconds in interleave(readers, arguments.repetitions)]
    updates = [update(arguments.encoder, precision) for precision in PRECISIONS]
    precision = [N_SENTENCES * N_WORDS / seconds for seconds in interleave(updates, arguments.repetitions)]
    packages = ", ".join(f"{name} {version(name)}" for name in ("spacy", "srsly", "catalogue", "thinc", "torch"))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    page = PAGE.format(
        docs=N_DOCS,
        words=N_WORDS,
        sentences=N_SENTENCES,
        reading=table("reader", "Docs/s", ["`spacy.Corpus.v1`", "`spacy_weakner.Corpus.v1`"], reading),
        precision=table("precision", "words/s", list(PRECISIONS), precision),
        conditions=f"Median of {arguments.repetitions}; {torch.get_num_threads()} thread(s); {packages}; {machine}; "
        f"units for bfloat16: {'yes' if torch.cpu._is_amx_tile_supported() else 'no'}.",
    )
    print(page)
    if arguments.write:
        (EVIDENCE / "training-speed.md").write_text(page, encoding="utf-8")


def table(what: str, unit: str, names: List[str], speeds: List[float]) -> str:
    """A table with the ratio to the first row."""
    lines = [f"| {what} | {unit} | ratio |", "|---|---|---|"]
    lines += [f"| {name} | {speed:,.0f} | {speed / speeds[0]:.2f} |" for name, speed in zip(names, speeds, strict=True)]
    return "\n".join(lines)


def make_doc(seed: int) -> Doc:
    """A Doc of random words, with what two sources say."""
    draw = random.Random(seed)
    doc = Doc(VOCAB, words=[draw.choice(WORDS) for _ in range(N_WORDS)])
    doc.set_ents([], default="outside")
    for source in ("terms", "model"):
        set_group(doc, f"weak:{source}", [(start, start + 2, "LOC") for start in (3, 9)])
    return doc


def read(corpus: Corpus) -> Callable[[], Any]:
    """Reads all examples."""
    nlp = spacy.blank("en")
    return lambda: sum(1 for _ in corpus(nlp))


def update(encoder: str, precision: str) -> Callable[[], Any]:
    """An update under a precision."""
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy_weakner.TokenClassifier.v1", "tok2vec": own_transformer(encoder)}
    nlp.add_pipe("token_ner", config={"model": model})
    references = [Doc(nlp.vocab, words=[token.text for token in make_doc(n)]) for n in range(N_SENTENCES)]
    examples = []
    for reference in references:
        reference.set_ents([reference.char_span(0, len(reference[0]), "LOC")], default="outside")
        examples.append(Example(Doc(nlp.vocab, words=[token.text for token in reference]), reference))
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    optimizer = nlp.create_optimizer()
    set_precision = make_matmul_precision(precision)

    def run() -> None:
        set_precision(nlp)
        nlp.update(examples, sgd=optimizer)

    return run


WORDS = ["the", "of", "market", "president", "company", "London", "said", "match", "against", "percent", "Smith"]
VOCAB = spacy.blank("en").vocab


if __name__ == "__main__":
    main()
