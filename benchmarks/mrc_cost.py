"""What questions cost: speed of `mrc_ner` with 1, 4 and 18 labels against `crf_ner` on the same encoder.

    OMP_NUM_THREADS=1 python benchmarks/mrc_cost.py --data test.jsonl [--transformer FOLDER] [--repetitions 3] [--write]

Training: updates (forward, loss, gradients, Adam) over all sentences. Prediction: `nlp.pipe` over the same. The two
components take turns. Words are those of the sentences, however often they are read.
"""

import argparse
import random
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import spacy
from common import CNN, encoder_name, own_transformer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.util import fix_random_seed
from timing import conditions, interleave, use_threads

from spacy_weakner.corpus.jsonl import read_rows

EVIDENCE = Path(__file__).resolve().parent.parent / "docs" / "evidence" / "mrc-cost.md"
N_LABELS = (1, 4, 18)
UPDATE_WORDS = 500
# Words that are measured: as many as take a few minutes.
CNN_WORDS, TRANSFORMER_WORDS = 4000, 300
QUESTIONS = (
    "names of people and characters in stories",
    "names of companies, agencies, institutions and teams",
    "names of countries, cities and states",
    "names of mountains, rivers, seas and regions",
    "nationalities, religions and political groups",
    "buildings, airports, highways and bridges",
    "products: vehicles, weapons, foods and devices",
    "names of hurricanes, battles, wars and sports events",
    "titles of books, songs and films",
    "names of documents that were made laws",
    "names of languages",
    "dates, years and periods",
    "times that are shorter than a day",
    "percentages",
    "amounts of money with their unit",
    "weights, distances and other measurements",
    "ordinal numbers such as first and second",
    "numbers that are nothing else",
)
PAGE = """# What questions cost

`OMP_NUM_THREADS=1 python benchmarks/mrc_cost.py --data FILE --transformer FOLDER --write`. Words per second of
`mrc_ner` and of `crf_ner` on the same encoder. Each label is a question of {question_words:.0f} words on average.
`ConditionedEncoder` encodes the text once and adds a step per question; `QueryContextEncoder` reads the text anew with
every question, so its cost grows with the number of questions. Sentences of {dataset}, updates of about {update_words}
words; the labels are assigned to the entities in turn.

{tables}

{conditions}
"""


class Encoder(NamedTuple):
    """What is measured.

    name (str): As it is called in the page.
    n_words (int): Words of the sentences.
    tok2vec (Dict[str, Any]): Config of the encoder of `crf_ner`.
    queried (Dict[str, Any]): Config of the encoder of `mrc_ner`.
    """

    name: str
    n_words: int
    tok2vec: Dict[str, Any]
    queried: Dict[str, Any]


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="JSONL, sentences with tokens and ents")
    parser.add_argument("--transformer", help="Hugging Face folder; without one only the convolutions are measured")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of words")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/mrc-cost.md")
    arguments = parser.parse_args()
    use_threads()
    encoders = [convolutions()]
    if arguments.transformer:
        encoders.append(transformer(arguments.transformer))
    tables = []
    for encoder in encoders:
        sentences = read(arguments.data, int(encoder.n_words * arguments.scale))
        tables.append(table(encoder, sentences, arguments.repetitions))
    page = PAGE.format(
        question_words=sum(len(question.split()) for question in QUESTIONS) / len(QUESTIONS),
        dataset=arguments.data.parent.name,
        update_words=UPDATE_WORDS,
        tables="\n\n".join(tables),
        conditions=conditions(arguments.repetitions, "spacy", "transformers", "thinc", "torch"),
    )
    print(page)
    if arguments.write:
        EVIDENCE.write_text(page, encoding="utf-8")


def convolutions() -> Encoder:
    """spaCy's CNN."""
    return Encoder(
        "cnn, `ConditionedEncoder`",
        CNN_WORDS,
        CNN,
        {"@architectures": "spacy_weakner.ConditionedEncoder.v1", "tok2vec": CNN},
    )


def transformer(folder: str) -> Encoder:
    """A Transformer of the component's own."""
    return Encoder(
        f"{encoder_name(folder)}, `QueryContextEncoder`",
        TRANSFORMER_WORDS,
        own_transformer(folder),
        {"@architectures": "spacy_weakner.QueryContextEncoder.v1", "name": folder},
    )


def read(path: Path, n_words: int) -> List[Tuple[List[str], List[List[Any]]]]:
    """Words and entities of sentences that are drawn until there are so many words."""
    rows = [row for _, row in read_rows(path) if row["tokens"] and row["ents"] is not None]
    random.Random(0).shuffle(rows)
    found: List[Tuple[List[str], List[List[Any]]]] = []
    for row in rows:
        if sum(len(words) for words, _ in found) >= n_words:
            break
        found.append((row["tokens"], row["ents"]))
    return found


def table(encoder: Encoder, sentences: List[Tuple[List[str], List[List[Any]]]], repetitions: int) -> str:
    """Words per second by number of labels."""
    n_words = sum(len(words) for words, _ in sentences)
    names = ("crf_ner", "mrc_ner")
    pipelines = [(pipeline(name, encoder, n), n) for n in N_LABELS for name in names]
    batches = [(nlp, *prepare(nlp, sentences, n)) for nlp, n in pipelines]
    training = interleave([partial(learn, nlp, examples) for nlp, examples, _ in batches], repetitions)
    prediction = interleave([predictor(nlp, docs) for nlp, _, docs in batches], repetitions)
    lines = [
        f"## {encoder.name}",
        "",
        f"{len(sentences)} sentences, {n_words:,} words.",
        "",
        "| labels | training: `crf_ner` | `mrc_ner` | ratio | prediction: `crf_ner` | `mrc_ner` | ratio |",
        "|---" * 7 + "|",
    ]
    for i, n in enumerate(N_LABELS):
        cells = [f"| {n} "]
        for seconds in (training, prediction):
            crf, mrc = (n_words / own for own in seconds[2 * i : 2 * i + 2])
            cells.append(f"| {crf:,.0f} | {mrc:,.0f} | {mrc / crf:.2f} ")
        lines.append("".join(cells) + "|")
    return "\n".join(lines)


def labels_of(n_labels: int) -> List[str]:
    """Labels."""
    return [f"L{i}" for i in range(n_labels)]


def pipeline(name: str, encoder: Encoder, n_labels: int) -> Language:
    """An initialized pipeline."""
    fix_random_seed(0)
    nlp, labels = spacy.blank("en"), labels_of(n_labels)
    if name == "crf_ner":
        model: Dict[str, Any] = {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": encoder.tok2vec}
        settings: Dict[str, Any] = {"labels": labels}
    else:
        model = {"@architectures": "spacy_weakner.MRCExtractor.v1", "encoder": encoder.queried}
        settings = {"queries": dict(zip(labels, QUESTIONS, strict=False))}
    nlp.add_pipe(name, config={"model": model})
    nlp.config["initialize"]["components"][name] = settings
    reference = Doc(nlp.vocab, words=["one", "two"], ents=["B-L0", "O"])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["one", "two"]), reference)])
    return nlp


def prepare(
    nlp: Language, sentences: List[Tuple[List[str], List[List[Any]]]], n_labels: int
) -> Tuple[List[List[Example]], List[List[str]]]:
    """Batches of examples, and the words of the sentences."""
    examples, seen, labels = [], 0, labels_of(n_labels)
    for words, entities in sentences:
        reference = Doc(nlp.vocab, words=words)
        spans = []
        for start, end, _ in entities:
            spans.append(Span(reference, start, end, label=labels[seen % n_labels]))
            seen += 1
        reference.set_ents(spans, default="outside")
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return list(minibatch_by_words(examples, UPDATE_WORDS)), [words for words, _ in sentences]


def learn(nlp: Language, batches: List[List[Example]]) -> None:
    """One pass over the sentences, with an optimizer of its own."""
    optimizer = nlp.create_optimizer()
    optimizer.learn_rate = 1e-5
    for batch in batches:
        nlp.update(batch, sgd=optimizer)


def predictor(nlp: Language, texts: List[List[str]]) -> Callable[[], int]:
    """Prediction for all sentences, as a function."""
    return lambda: sum(1 for _ in nlp.pipe([Doc(nlp.vocab, words=words) for words in texts], batch_size=128))


if __name__ == "__main__":
    main()
