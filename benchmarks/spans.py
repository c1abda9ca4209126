"""Speed and memory of the classifier of spans: training against the full table of spans, prediction against spaCy's
`spancat`.

    OMP_NUM_THREADS=1 python benchmarks/spans.py [--repetitions 7] [--write]

Training: one update of the scorer (forward, loss, gradients of its weights and of the token vectors) for 16 sentences
of n tokens, from the same token vectors. The full table is what the method is usually written as: [h_i; h_j; h_i - h_j;
h_i * h_j] for all n x n pairs, in torch. Peak memory is that of a process of its own, above what it has before the
first update. Prediction: whole pipelines with the same convolutional encoder and spans of up to 8 tokens.
"""

import argparse
import multiprocessing
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy
import spacy
import torch
from common import CNN
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from timing import conditions, interleave, use_threads

from spacy_weakner.span_ner.samplers import NegativeSampler, UniformNegativeSampler, WeightedNegativeSampler
from spacy_weakner.span_ner.targets import SpanTarget
from spacy_weakner.ty import Tick

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "spans.md"
WIDTH, HIDDEN, N_LABELS, BATCH = 384, 256, 5, 16
LENGTHS = (32, 64, 128)
MAX_WIDTH = 8
NAMES = ("uniform", "weighted", "full table")
PAGE = """# Speed of the classifier of spans

`OMP_NUM_THREADS=1 python benchmarks/spans.py --write`. Training: an update of the scorer for 16 sentences of n tokens,
from token vectors of width 384, with two entities per sentence, five labels, and spans of any width. "uniform" and
"weighted" are the samplers of this package (weighted scores all spans first); "full table" scores all n x n pairs from
their concatenated features, in torch. Medians of interleaved repetitions; memory is the peak of a separate process
above its start.

{training}

Prediction: pipelines with the same encoder (`spacy.HashEmbedCNN.v2`, width 96, depth 4), spans of up to 8 tokens,
random words, sentences of 10 to 40 tokens; `spancat` with its default model and ngram suggester. Target: twice as fast.

{prediction}

{conditions}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write docs/evidence/spans.md")
    arguments = parser.parse_args()
    use_threads()
    page = PAGE.format(
        training=training_table(arguments.repetitions),
        prediction=prediction_table(arguments.repetitions),
        conditions=conditions(arguments.repetitions, "spacy", "thinc", "numpy", "torch"),
    )
    print(page)
    if arguments.write:
        EVIDENCE.write_text(page, encoding="utf-8")


def training_table(repetitions: int) -> str:
    """Words per second and peak memory of an update."""
    lines = ["| n | " + " | ".join(f"{name}: words/s | MB" for name in NAMES) + " |", "|---" * 7 + "|"]
    for n in LENGTHS:
        seconds = interleave([update(name, n) for name in NAMES], repetitions)
        cells = [f"{BATCH * n / s:,.0f} | {peak_memory(name, n):,.0f}" for name, s in zip(NAMES, seconds, strict=True)]
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def update(name: str, n: int) -> Callable[[], Any]:
    """An update of one of the three, as a function."""
    random = numpy.random.RandomState(0)
    vectors = [random.normal(size=(n, WIDTH)).astype("float32") for _ in range(BATCH)]
    spans = numpy.asarray([[1, 3], [n - 4, n - 3]])
    labels = numpy.asarray([1, 2])
    if name == "full table":
        return full_table(vectors, spans, labels)
    sampler: NegativeSampler = UniformNegativeSampler() if name == "uniform" else WeightedNegativeSampler()
    nothing = numpy.zeros(0, dtype="int64")
    empty = nothing.reshape(-1, 2)
    nlp = pipeline("span_ner", {"max_width": None}, WIDTH)
    doc = Doc(nlp.vocab, words=["x"] * n)
    target = SpanTarget(n, True, spans, labels, empty, nothing, nothing, doc)
    ner: Any = nlp.get_pipe("span_ner")
    ner.sampler = sampler
    ner.tick(Tick(0, 0, 0.5))
    # The encoder and the reading of targets take no part.
    ner.model._func = lambda model, docs, is_train: (vectors, lambda gradient: None)
    ner.encode_target = lambda example: target
    examples = [Example(doc, doc.copy()) for _ in range(BATCH)]
    return lambda: ner.update(examples)


def full_table(vectors: List[Any], spans: Any, labels: Any) -> Callable[[], Any]:
    """An update that scores all pairs of tokens."""
    h = torch.from_numpy(numpy.stack(vectors)).requires_grad_()
    hidden, out = torch.nn.Linear(4 * WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, N_LABELS)
    n = h.shape[1]
    gold = torch.zeros((n, n), dtype=torch.long)
    gold[spans[:, 0], spans[:, 1] - 1] = torch.from_numpy(labels)
    # The same number of negatives as the samplers draw, from the same triangle.
    kept = (torch.rand(n, n) < 0.35 * n / (n * (n + 1) / 2)).triu() | (gold > 0)

    def run() -> float:
        rows, columns = h[:, :, None].expand(-1, -1, n, -1), h[:, None].expand(-1, n, -1, -1)
        table = torch.cat([rows, columns, rows - columns, rows * columns], dim=-1)
        scores = out(torch.tanh(hidden(table)))
        loss = torch.nn.functional.cross_entropy(scores[:, kept].flatten(0, 1), gold[kept].repeat(BATCH))
        loss.backward()
        return float(loss.detach())

    return run


def peak_memory(name: str, n: int) -> float:
    """Peak memory of some updates, in MB."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return float(pool.apply(_grow, (name, n)))


def _grow(name: str, n: int) -> float:
    run = update(name, n)
    # Linux forgets the peak so far: that of a process begins with that of the one which has started it.
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    for _ in range(3):
        run()
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def prediction_table(repetitions: int) -> str:
    """Words per second of whole pipelines."""
    random = numpy.random.RandomState(0)
    words = [f"w{i}" for i in range(3000)]
    texts = [random.choice(words, random.randint(10, 41)).tolist() for _ in range(400)]
    n_words = sum(map(len, texts))
    suggester = {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": MAX_WIDTH}
    settings: Dict[str, Dict[str, Any]] = {
        "span_ner": {"max_width": MAX_WIDTH},
        "spancat": {"suggester": suggester, "threshold": 0.5},
    }
    pipelines = {name: pipeline(name, own) for name, own in settings.items()}

    def predict(nlp: Language) -> Callable[[], int]:
        return lambda: sum(1 for _ in nlp.pipe([Doc(nlp.vocab, words=text) for text in texts], batch_size=128))

    ours, theirs = interleave([predict(nlp) for nlp in pipelines.values()], repetitions)
    return "\n".join(
        [
            "| pipeline | words/s | ratio |",
            "|---|---|---|",
            f"| `span_ner` | {n_words / ours:,.0f} | {theirs / ours:.1f} |",
            f"| `spancat` | {n_words / theirs:,.0f} | 1 |",
        ]
    )


def pipeline(name: str, settings: Dict[str, Any], width: int = 96) -> Language:
    """An initialized pipeline with four labels."""
    nlp = spacy.blank("en")
    if name == "span_ner":
        model: Dict[str, Any] = {"@architectures": "spacy_weakner.SpanClassifier.v1", "hidden_width": HIDDEN}
    else:
        model = {
            "@architectures": "spacy.SpanCategorizer.v1",
            "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 128},
            "scorer": {"@layers": "spacy.LinearLogistic.v1", "nO": None, "nI": None},
        }
    nlp.add_pipe(name, config={**settings, "model": {**model, "tok2vec": {**CNN, "width": width}}})
    examples = []
    for i in range(4):
        doc = Doc(nlp.vocab, words=[f"w{j}" for j in range(12)])
        span = Span(doc, i, i + 2, label="ABCD"[i])
        doc.set_ents([span])
        doc.spans["sc"] = [span]
        examples.append(Example(Doc(nlp.vocab, words=[token.text for token in doc]), doc))
    nlp.initialize(lambda: examples)
    return nlp


if __name__ == "__main__":
    main()
