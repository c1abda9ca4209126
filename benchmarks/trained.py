"""Pipelines that were trained a little: what the benchmarks of speed predict with."""

import json
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterator, List, Tuple

import spacy
from common import CNN, own_transformer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed, load_config_from_str, load_model_from_config, minibatch
from thinc.api import Adam, Optimizer

from spacy_weakner.configs import render_config
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.corpus.jsonl import read_rows
from spacy_weakner.files import write_text
from spacy_weakner.ty import Entity

Rows = List[Tuple[List[str], List[Entity]]]

# spaCy's own components.
PEERS = {"ner": "spaCy's `ner`", "spancat": "spaCy's `spancat`"}
LABELS = ("Chemical", "Disease")
MAX_WIDTH, BATCH = 8, 16
LEARNED = 800  # sentences
# The linear CRF is trained as it is initialized.
UPDATES = {"linear": 0, "cnn": 60, "transformer": 30}
RATES = {"linear": 0.0, "cnn": 0.001, "transformer": 5e-5}


def read(path: Path) -> Iterator[Tuple[List[str], List[Entity]]]:
    """YIELDS (Tuple[List[str], List[Entity]]): Words and entities of a sentence."""
    for _, row in read_rows(path):
        yield row["tokens"], [(start, end, label) for start, end, label in row["ents"]]


def trained(name: str, size: str, transformer: str, train: Rows, updates: int = 0, **settings: Any) -> Language:
    """A pipeline that was trained a little.

    name, size, transformer, train, settings: See `pipeline`.
    updates (int): On so many batches; 0: as UPDATES has it.
    RETURNS (Language): The pipeline.
    """
    nlp, examples = pipeline(name, size, transformer, train[:LEARNED], **settings)
    update(nlp, examples, Adam(RATES[size]), updates or UPDATES[size])
    return nlp


def update(nlp: Language, examples: List[Example], optimizer: Optimizer, updates: int) -> int:
    """Train on batches.

    RETURNS (int): Number of words that were seen.
    """
    n_words = 0
    for batch in islice(minibatch(cycle(examples), BATCH), updates):
        nlp.update(batch, sgd=optimizer, drop=0.1)
        n_words += sum(len(example.reference) for example in batch)
    return n_words


def pipeline(name: str, size: str, transformer: str, train: Rows, **settings: Any) -> Tuple[Language, List[Example]]:
    """An initialized pipeline, and what it can be trained on.

    name (str): Its component.
    size (str): "linear", "cnn" or "transformer".
    transformer (str): Folder of the Transformer.
    train (Rows): Sentences.
    settings (Any): Of the component.
    RETURNS (Tuple[Language, List[Example]]): The pipeline and the examples.
    """
    fix_random_seed(0)
    with TemporaryDirectory() as folder:
        nlp = peer(name, size, transformer) if name in PEERS else ours(name, size, transformer, settings, train, folder)
        examples = [Example(Doc(nlp.vocab, words=words), annotated(nlp, words, gold)) for words, gold in train]
        nlp.initialize(lambda: examples)
    return nlp, examples


def ours(name: str, size: str, transformer: str, settings: Dict[str, Any], train: Rows, folder: str) -> Language:
    """A pipeline with the recipe of a component; `folder` holds its corpus, as some read it at the start."""
    text = render_config(name, size, transformer=transformer or None)
    corpus, queries = Path(folder) / "train.spacy", Path(folder) / "queries.json"
    blank = spacy.blank("en")
    write_docs(corpus, [annotated(blank, words, gold) for words, gold in train])
    paths = {"paths.train": str(corpus), "paths.dev": str(corpus)}
    if name == "mrc_ner":
        write_text(queries, json.dumps({label: f"Which {label.lower()} is named?" for label in LABELS}))
        paths["paths.queries"] = str(queries)
    own = {f"components.{name}.{key}": value for key, value in settings.items()}
    if name in ("span_ner", "mrc_ner"):
        own[f"components.{name}.max_width"] = MAX_WIDTH
    return load_model_from_config(load_config_from_str(text, {**paths, **own}, interpolate=True), auto_fill=True)


def peer(name: str, size: str, transformer: str) -> Language:
    """A pipeline of spaCy's own components."""
    nlp = spacy.blank("en")
    tok2vec = own_transformer(transformer) if size == "transformer" else CNN
    if name == "ner":
        nlp.add_pipe("ner", config={"model": {"tok2vec": tok2vec}})
    else:
        suggester = {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": MAX_WIDTH}
        nlp.add_pipe("spancat", config={"suggester": suggester, "model": {"tok2vec": tok2vec}})
    return nlp


def annotated(nlp: Language, words: List[str], entities: List[Entity]) -> Doc:
    """Gold, for `spancat` too."""
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [Span(doc, start, end, label=label) for start, end, label in entities]
    doc.spans["sc"] = list(doc.ents)
    return doc
