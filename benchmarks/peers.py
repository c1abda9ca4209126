"""One peer on the files of one column, in an environment where it is installed; `compared.py` calls it.

    PYTHON benchmarks/peers.py PEER FOLDER [MODEL [LABELS]]

FOLDER has test.jsonl, gold.jsonl and terms.jsonl, or sources.jsonl for what combines weak labels; all are tokenized, so
that every peer reads the same tokens. FOLDER/PEER.json gets the entities of every sentence, and what they took.
"""

import json
import sys
from collections import Counter
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any, Dict, List, NamedTuple

Rows = List[Dict[str, Any]]
Entities = List[List[Any]]
# Of spaCy's `ner`: 80 to 100 times all of 250 sentences.
STEPS = 2000
# Of `eds.ner_crf`, of 8 sentences each: 16 times all of 250.
EDS_STEPS = 500
# A term list is silent where it matches nothing; the other sources were asked for all entities.
SILENT = ("dictionary",)
PACKAGES = ("spacy", "spacy_weakner", "skweak", "snorkel", "edsnlp")


class Result(NamedTuple):
    """What a peer found.

    entities (List[Entities]): By sentence: first token, token after the last one, label.
    predict_cpu (float): CPU seconds of that, on Docs that are tokenized already.
    train_cpu (float): CPU seconds of training.
    mb (float): Size on disk.
    """

    entities: List[Entities]
    predict_cpu: float
    train_cpu: float = 0.0
    mb: float = 0.0


def main() -> None:
    """Run the peer and write what it found."""
    peer, folder, *more = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    result = PEERS[peer](folder, *more)
    found = {**result._asdict(), "versions": dict(filter(None, map(installed, PACKAGES)))}
    (folder / f"{peer}.json").write_text(json.dumps(found), encoding="utf-8")


def entity_ruler(folder: Path) -> Result:
    """The term list in spaCy's ruler, in any case."""
    import spacy

    nlp = spacy.blank("en")
    start = process_time()
    add_ruler(nlp, folder)
    return predict(nlp, folder, folder / "entity_ruler", process_time() - start)


def gazetteer_ruler(folder: Path) -> Result:
    """The term list in the ruler of this package."""
    import spacy

    nlp = spacy.blank("en")
    nlp.tokenizer = Splitter(nlp.vocab)
    start = process_time()
    ruler: Any = nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True})
    ruler.add_terms((row["label"], " ".join(row["tokens"])) for row in read(folder, "terms"))
    return predict(nlp, folder, folder / "gazetteer_ruler", process_time() - start)


def edsnlp(folder: Path) -> Result:
    """The term list in `eds.matcher`, in any case."""
    import edsnlp  # type: ignore[import-not-found]

    nlp = edsnlp.blank("eds")
    nlp.tokenizer = Splitter(nlp.vocab)
    terms: Dict[str, List[str]] = {}
    for row in read(folder, "terms"):
        terms.setdefault(row["label"], []).append(" ".join(row["tokens"]))
    start = process_time()
    nlp.add_pipe("eds.matcher", config={"terms": terms, "attr": "LOWER"})
    return predict(nlp, folder, folder / "edsnlp", process_time() - start)


def edsnlp_crf(folder: Path, model: str) -> Result:
    """`eds.ner_crf` over a Transformer as its tutorial has it, with the default optimizer, on all gold. Its 2,000
    updates of 4,096 tokens would be 1,000 times all of 250 sentences, which takes hours on a CPU."""
    import edsnlp
    import edsnlp.pipes as eds  # type: ignore[import-not-found]
    from edsnlp.training import TrainingData, train  # type: ignore[import-not-found]
    from spacy.tokens import Doc, Span
    from spacy.util import fix_random_seed

    fix_random_seed(0)
    nlp, docs = edsnlp.blank("eds"), []
    encoder = eds.text_cnn(kernel_sizes=[3], embedding=eds.transformer(model=model, window=128, stride=96))
    head = eds.ner_crf(embedding=encoder, mode="joint", target_span_getter="gold", span_setter="ents")
    nlp.add_pipe(head, name="ner")
    for row in read(folder, "gold"):
        docs.append(Doc(nlp.vocab, words=row["tokens"]))
        docs[-1].spans["gold"] = [Span(docs[-1], start, end, label) for start, end, label in row["ents"]]
    batches = {"batch_size": "8 docs", "shuffle": "dataset", "pipe_names": ["ner"]}
    data = TrainingData(data=edsnlp.data.from_iterable(docs), **batches)
    out, start = folder / "edsnlp_crf", process_time()
    # The default checkpoints would be written ten times.
    settings = {"max_steps": EDS_STEPS, "checkpoint_interval": EDS_STEPS, "grad_max_norm": 1.0, "logger": False}
    train(nlp=nlp, train_data=data, output_dir=out, cpu=True, **settings)
    return predict(nlp, folder, out / "model-last", process_time() - start)


def ner(folder: Path) -> Result:
    """spaCy's `ner` as its quickstart sets it up for CPUs, on all gold; the last checkpoint, without a dev set."""
    import spacy
    from spacy.cli.init_config import init_config
    from spacy.cli.train import train
    from spacy.tokens import Doc, DocBin, Span

    blank, train_file = spacy.blank("en"), folder / "gold.spacy"
    docs = DocBin()
    for row in read(folder, "gold"):
        doc = Doc(blank.vocab, words=row["tokens"])
        doc.ents = [Span(doc, start, end, label) for start, end, label in row["ents"]]
        docs.add(doc)
    docs.to_disk(train_file)
    init_config(lang="en", pipeline=["ner"], optimize="efficiency").to_disk(folder / "ner.cfg")
    overrides = {"paths.train": str(train_file), "paths.dev": str(train_file), "training.max_steps": STEPS}
    start = process_time()
    train(folder / "ner.cfg", folder / "ner", overrides={**overrides, "training.eval_frequency": STEPS})
    took = process_time() - start
    return predict(spacy.load(folder / "ner" / "model-last"), folder, folder / "ner" / "model-last", took)


def ruler_and_ner(folder: Path) -> Result:
    """The same `ner` behind the ruler, which keeps what the ruler has found."""
    import spacy

    nlp = spacy.load(folder / "ner" / "model-last")
    add_ruler(nlp, folder, before="ner")
    trained = json.loads((folder / "ner.json").read_text(encoding="utf-8"))["train_cpu"]
    return predict(nlp, folder, folder / "ruler_and_ner", trained)


def pipeline(folder: Path, model: str, labels: str = "{}") -> Result:
    """A packaged pipeline as it is, of a spaCy model only its `ner`, with labels renamed; others are left out."""
    import spacy

    nlp, names = spacy.load(model), json.loads(labels)
    if names:
        tok2vec: Any = nlp.get_pipe("tok2vec")
        shared = "ner" in tok2vec.listening_components
        nlp.select_pipes(enable=["tok2vec", "ner"] if shared else ["ner"])
    result = predict(nlp, folder)
    kept = [[[a, b, names.get(x, x)] for a, b, x in found if not names or x in names] for found in result.entities]
    return result._replace(entities=kept, mb=size(Path(model)))


def skweak(folder: Path, sentences: int) -> Result:
    """skweak's hidden Markov model, as its README shows it, on documents of so many sentences: a source without a span
    in a document is silent there, and one with a span says "O" elsewhere."""
    import spacy
    from skweak.generative import HMM  # type: ignore[import-not-found]
    from spacy.tokens import Doc, Span

    nlp, rows, docs = spacy.blank("en"), read(folder, "sources"), []
    for at in range(0, len(rows), sentences):
        parts = []
        for row in rows[at : at + sentences]:
            parts.append(Doc(nlp.vocab, words=row["tokens"]))
            for source, found in row["sources"].items():
                parts[-1].spans[source] = [Span(parts[-1], start, end, label) for start, end, label in found]
        docs.append(Doc.from_docs(parts))
    start = process_time()
    model = HMM("hmm", labels_of(rows))
    model.fit(docs)
    trained = process_time()
    entities: List[Entities] = []
    for number, doc in enumerate(map(model, docs)):
        first = 0
        for row in rows[number * sentences : (number + 1) * sentences]:
            after = first + len(row["tokens"])
            inside = [span for span in doc.spans["hmm"] if first <= span.start < after]
            entities.append([[span.start - first, span.end - first, span.label_] for span in inside])
            first = after
    return Result(entities, process_time() - trained, trained - start)


def snorkel(folder: Path) -> Result:
    """Snorkel's label model over tokens with tags, with the settings of its tutorials; the shares of tags are those of
    all votes, since it takes them for equal otherwise."""
    import numpy
    from snorkel.labeling.model import LabelModel  # type: ignore[import-not-found]

    rows = read(folder, "sources")
    tags = ["O", *(f"{prefix}-{label}" for label in labels_of(rows) for prefix in "BI")]
    ids = {tag: i for i, tag in enumerate(tags)}
    votes = []
    for row in rows:
        columns = []
        for source, found in row["sources"].items():
            column = [-1 if source in SILENT else 0] * len(row["tokens"])
            for start, end, label in found:
                column[start:end] = [ids[f"B-{label}"], *[ids[f"I-{label}"]] * (end - start - 1)]
            columns.append(column)
        votes.append(numpy.array(columns).T)
    matrix = numpy.concatenate(votes)
    counts = Counter(matrix[matrix >= 0].tolist())
    start = process_time()
    model = LabelModel(cardinality=len(tags), verbose=False)
    balance = [counts[i] / sum(counts.values()) for i in range(len(tags))]
    model.fit(matrix, class_balance=balance, n_epochs=500, seed=123)
    trained = process_time()
    predicted = [tags[i] for i in model.predict_proba(matrix).argmax(axis=1)]
    entities, at = [], 0
    for row in rows:
        entities.append(spans_of(predicted[at : at + len(row["tokens"])]))
        at += len(row["tokens"])
    return Result(entities, process_time() - trained, trained - start)


PEERS: Dict[str, Any] = {
    "entity_ruler": entity_ruler,
    "gazetteer_ruler": gazetteer_ruler,
    "edsnlp": edsnlp,
    "edsnlp_crf": edsnlp_crf,
    "ner": ner,
    "ruler_and_ner": ruler_and_ner,
    "packaged": pipeline,
    "en_core_web_md": pipeline,
    "en_chem_ner": pipeline,
    "skweak": partial(skweak, sentences=1),
    "skweak_documents": partial(skweak, sentences=10),
    "snorkel": snorkel,
}


class Splitter:
    """A tokenizer of texts that are tokenized already."""

    def __init__(self, vocab: Any) -> None:
        self.vocab = vocab

    def __call__(self, text: str) -> Any:
        from spacy.tokens import Doc

        return Doc(self.vocab, words=text.split(" "))


def add_ruler(nlp: Any, folder: Path, **where: str) -> None:
    """Put the term list into spaCy's ruler."""
    tokenizer, nlp.tokenizer = nlp.tokenizer, Splitter(nlp.vocab)
    ruler = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"}, **where)
    ruler.add_patterns([{"label": row["label"], "pattern": " ".join(row["tokens"])} for row in read(folder, "terms")])
    nlp.tokenizer = tokenizer


def predict(nlp: Any, folder: Path, stored: Any = None, train_cpu: float = 0.0) -> Result:
    """Predict the test set, and store the pipeline for its size."""
    from spacy.tokens import Doc

    sentences = [row["tokens"] for row in read(folder, "test")]
    list(nlp.pipe([Doc(nlp.vocab, words=words) for words in sentences[:100]]))
    docs = [Doc(nlp.vocab, words=words) for words in sentences]
    start = process_time()
    found = list(nlp.pipe(docs))
    took = process_time() - start
    entities = [[[ent.start, ent.end, ent.label_] for ent in doc.ents] for doc in found]
    if stored is not None and not stored.exists():
        nlp.to_disk(stored, exclude={"tokenizer"})
    return Result(entities, took, train_cpu, size(stored) if stored else 0.0)


def spans_of(tags: List[str]) -> Entities:
    """Entities of BIO tags; an I without its B begins one."""
    spans: Entities = []
    for i, tag in enumerate(tags):
        if tag[0] == "I" and spans and spans[-1][1] == i and spans[-1][2] == tag[2:]:
            spans[-1][1] = i + 1
        elif tag != "O":
            spans.append([i, i + 1, tag[2:]])
    return spans


def labels_of(rows: Rows) -> List[str]:
    """All labels of the sources."""
    return sorted({label for row in rows for found in row["sources"].values() for _, _, label in found})


def size(path: Path) -> float:
    """Megabytes of all files of a folder."""
    return sum(file_.stat().st_size for file_ in path.rglob("*") if file_.is_file()) / 1e6


def read(folder: Path, name: str) -> Rows:
    """Rows of a file."""
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def installed(name: str) -> Any:
    """Name and version of a package; None if it is not there."""
    try:
        return name, version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
