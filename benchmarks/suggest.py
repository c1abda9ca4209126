"""What suggested sentences are worth: F1 of `crf_ner` after 50, 100 and 200 of them, against as many random ones.

    python benchmarks/suggest.py --data DIR [--datasets bc5cdr,conll03] [--encoder linear|cnn] [--seeds 0,1,2] [--dev]
    python benchmarks/suggest.py --data DIR --encoder minilm --transformer FOLDER --seeds 0

`--data` holds a folder per data set. The text is train without its gold, in an order drawn with the seed, 4,000
sentences of it; whoever annotates gives the gold. Both begin with the same 25 random sentences. `random` goes on in
that order, to 50, 100 and 200. `suggest` trains on what there is, has `suggest` choose from the rest up to the next of
these numbers, and trains again. `random, as many words` takes random sentences until they have as many words as those
that were suggested. Nobody with 50 sentences has a dev set, so all trainings take a fixed number of steps.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from charts import line_chart
from common import EVIDENCE, ROOT, Cost, Evidence, Run, config_file, evaluate, find, mean_and_spread, train
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.active_learning.suggest import suggest
from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import bare_copy, read_docs, write_docs
from spacy_weakner.corpus.sentences import sentence_key
from spacy_weakner.files import write_text

BENCHMARK = "suggest"
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
START, ROUNDS = 25, (50, 100, 200)
TEXTS = 4000
SUGGEST, RANDOM, WORDS = METHODS = ("suggest", "random", "random, as many words")
# The linear CRF is trained until it converges.
STEPS = {"cnn": 400, "minilm": 250}


class Place(NamedTuple):
    """What a row is made from.

    dataset, encoder, seed: As in the row.
    folder (Path): Takes its corpora and pipelines.
    test (Path): What it is scored on.
    transformer (Optional[str]): Folder of the Transformer.
    """

    dataset: str
    encoder: str
    seed: int
    folder: Path
    test: Path
    transformer: Optional[str]


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--datasets", default="bc5cdr,conll03")
    parser.add_argument("--encoder", default="linear", choices=("linear", *STEPS))
    parser.add_argument("--transformer", default=None, help="folder of the Transformer, for minilm")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--dev", action="store_true", help="score on dev, and keep no row")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    if (arguments.encoder == "minilm") != bool(arguments.transformer):
        parser.error("--encoder minilm and --transformer go together")
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl", arguments.dev)
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            for dataset in arguments.datasets.split(","):
                run(dataset, seed, arguments, evidence)
    if not arguments.dev:
        render(evidence.rows())


def run(dataset: str, seed: int, arguments: argparse.Namespace, evidence: Evidence) -> None:
    """All rows of a data set and a seed."""
    folder = arguments.work / dataset
    for split in ("train", "dev", "test"):
        if not (folder / f"{split}.spacy").exists():
            convert(find(arguments.data / dataset, split), folder / f"{split}.spacy", tokenizer=TOKENIZER)
    own = folder / f"{arguments.encoder}-{seed}"
    test = folder / f"{'dev' if arguments.dev else 'test'}.spacy"
    place = Place(dataset, arguments.encoder, seed, own, test, arguments.transformer)
    docs = draw(folder / "train.spacy", seed)
    text = own / "text.spacy"
    if not text.exists():
        write_docs(text, map(bare_copy, docs))
    score(docs[:START], RANDOM, place, evidence)
    chosen = docs[:START]
    for n in ROUNDS:
        score(docs[:n], RANDOM, place, evidence)
        chosen = [*chosen, *suggested(chosen, n - len(chosen), docs, text, place)]
        score(chosen, SUGGEST, place, evidence)
        score(as_many_words(docs, sum(map(len, chosen))), WORDS, place, evidence, n)


def draw(train_path: Path, seed: int) -> List[Doc]:
    """The text in the order in which random sentences are taken, each sentence once."""
    docs = list(read_docs(train_path, Vocab()))
    random.Random(seed).shuffle(docs)
    return list({sentence_key(doc.text): doc for doc in reversed(docs)}.values())[::-1][:TEXTS]


def suggested(chosen: List[Doc], n: int, docs: List[Doc], text: Path, place: Place) -> List[Doc]:
    """So many more sentences, with their gold."""
    gold = {sentence_key(doc.text): doc for doc in docs}
    output = place.folder / f"next-{len(chosen)}.spacy"
    if not output.exists():
        model, _ = trained(chosen, SUGGEST, place)
        known = place.folder / f"{SUGGEST}-{len(chosen)}.spacy"
        suggest(text, output, n=n, model=[str(model)], exclude=[known], seed=place.seed)
    return [gold[sentence_key(doc.text)] for doc in read_docs(output, Vocab())]


def as_many_words(docs: List[Doc], words: int) -> List[Doc]:
    """Random sentences with as many words, or a few more."""
    taken: List[Doc] = []
    for doc in docs:
        if sum(map(len, taken)) >= words:
            break
        taken.append(doc)
    return taken


def trained(docs: List[Doc], method: str, place: Place) -> Tuple[Path, Cost]:
    """A pipeline that has learnt from some sentences, and what it took."""
    # The start is the same for both.
    name = f"{'start' if len(docs) == START else method.replace(', ', '-').replace(' ', '-')}-{len(docs)}"
    corpus = place.folder / f"{method}-{len(docs)}.spacy"
    write_docs(corpus, docs)
    values: Dict[str, Any] = {
        "paths.train": str(corpus),
        "paths.dev": str(corpus),
        "nlp.tokenizer.@tokenizers": TOKENIZER,
        "system.seed": place.seed,
    }
    if len(docs) == START:
        corpus = place.folder / f"start-{START}.spacy"
        write_docs(corpus, docs)
        values.update({"paths.train": str(corpus), "paths.dev": str(corpus)})
    if place.encoder in STEPS:
        steps = STEPS[place.encoder]
        values.update({"training.max_steps": steps, "training.patience": 0, "training.eval_frequency": steps})
    if place.transformer:
        values["paths.transformer"] = place.transformer
    size = "transformer" if place.transformer else place.encoder
    output, cost = train(config_file("crf_ner", size), place.folder / name, values)
    return output / "model-last", cost


def score(docs: List[Doc], method: str, place: Place, evidence: Evidence, n: int = 0) -> None:
    """One row. The amount of gold that stands in it is that of the round."""
    this = Run(BENCHMARK, place.dataset, place.encoder, "quick", method, place.seed, n or len(docs), 0)
    if evidence.has(this):
        return
    model, cost = trained(docs, method, place)
    counts, speed = evaluate(model, place.test)
    words = {"sentences": len(docs), "words": sum(map(len, docs)), "entities": sum(len(doc.ents) for doc in docs)}
    evidence.add(this, counts, cost, speed)
    if evidence.dev:
        print(f"    {words}", flush=True)
        return
    lines = evidence.path.read_text(encoding="utf-8").splitlines()
    lines[-1] = json.dumps({**json.loads(lines[-1]), **words})
    write_text(evidence.path, "\n".join(lines) + "\n")


def render(rows: List[Dict[str, Any]]) -> None:
    """Write the page, and draw its curves."""
    page = (EVIDENCE / f"{BENCHMARK}.template.md").read_text(encoding="utf-8")
    for encoder in ("linear", *STEPS):
        for dataset in ("bc5cdr", "conll03"):
            some = [row for row in rows if (row["encoder"], row["dataset"]) == (encoder, dataset)]
            page = page.replace(f"{{{dataset}-{encoder}}}", table(some) if some else "(not run yet)")
            if some:
                draw_curves(some, f"{dataset}, {encoder}", EVIDENCE / f"{BENCHMARK}-{dataset}-{encoder}.svg")
    write_text(EVIDENCE / f"{BENCHMARK}.md", page)


def table(rows: List[Dict[str, Any]]) -> str:
    """F1 by round, and how much was annotated for it."""
    lines = ["| method | sentences | words | entities | F1 | seeds |", "|---|---|---|---|---|---|"]
    for n in (START, *ROUNDS):
        for method in METHODS:
            found = [row for row in rows if row["strong"] == n and row["method"] == method]
            if found:
                cells = [sum(row[key] for row in found) / len(found) for key in ("sentences", "words", "entities")]
                f1 = mean_and_spread([row["f1"] for row in found])
                cells_text = " | ".join(f"{cell:,.0f}" for cell in cells)
                lines.append(f"| {'start' if n == START else method} | {cells_text} | {f1} | {len(found)} |")
    return "\n".join(lines)


def draw_curves(rows: List[Dict[str, Any]], title: str, path: Path) -> None:
    """F1 over the number of sentences."""
    curves: Dict[str, List[Tuple[float, float]]] = {}
    for method in (SUGGEST, RANDOM):
        for n in (START, *ROUNDS):
            of = RANDOM if n == START else method
            found = [row["f1"] for row in rows if row["strong"] == n and row["method"] == of]
            if found:
                curves.setdefault(method, []).append((n, sum(found) / len(found)))
    line_chart(f"{title}: F1 on test", "annotated sentences", curves, path)


if __name__ == "__main__":
    main()
