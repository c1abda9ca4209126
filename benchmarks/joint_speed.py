"""Where the time of joint labeling goes: training of a bidirectional LSTM with and without attention and categories.

    OMP_NUM_THREADS=2 python benchmarks/joint_speed.py [--docs 320] [--repetitions 5] [--write]

Passes: forward and backward through the encoders of joint labeling alone. Updates: those of whole pipelines (losses,
gradients, Adam). Both in batches of 32 titles of random words; all take turns.
"""

import argparse
from functools import partial
from typing import Any, Callable, Dict, List, Tuple

import torch
from common import EVIDENCE, config_file
from joint import without_attention
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed, load_config, load_model_from_config, minibatch, registry
from thinc.api import Config, Model, Optimizer
from timing import conditions, interleave, random_words, use_threads

BATCH, TITLE_WORDS = 32, 16
CATEGORIES = ("tea", "shoes", "vitamins")
PAGE = """# Where the time of joint labeling goes

`OMP_NUM_THREADS={threads} python benchmarks/joint_speed.py --write`: {n_docs} titles of {title_words} random words, in
batches of {batch}. Passes run forward and backward through the encoder alone; updates are those of whole pipelines.

{table}

{conditions}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=320)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/evidence/joint-speed.md")
    arguments = parser.parse_args()
    use_threads()
    runs = {**all_passes(arguments.docs), **all_updates(arguments.docs)}
    n_words = arguments.docs * TITLE_WORDS
    lines = ["| what | words/s | microseconds per word |", "|---|---|---|"]
    for name, seconds in zip(runs, interleave(list(runs.values()), arguments.repetitions), strict=True):
        lines.append(f"| {name} | {n_words / seconds:,.0f} | {1e6 * seconds / n_words:.0f} |")
    page = PAGE.format(
        threads=torch.get_num_threads(),
        n_docs=arguments.docs,
        title_words=TITLE_WORDS,
        batch=BATCH,
        table="\n".join(lines),
        conditions=conditions(arguments.repetitions, "spacy", "thinc", "torch"),
    )
    print(page)
    if arguments.write:
        (EVIDENCE / "joint-speed.md").write_text(page, encoding="utf-8")


def all_passes(n_docs: int) -> Dict[str, Callable[[], object]]:
    """What to time of encoders."""
    plain, attentive = (pipeline("ner", attention, n_docs) for attention in (False, True))
    docs = [example.reference for example in plain[1]]
    tok2vecs: List[Any] = [nlp.get_pipe("tok2vec") for nlp, _, _ in (plain, attentive)]
    lstm, attention = (tok2vec.model for tok2vec in tok2vecs)
    parts = {
        "embeddings": lstm.layers[0],
        "embeddings, LSTM": lstm,
        "embeddings, LSTM, learned attention": attention,
    }
    return {f"passes: {name}": partial(passes, model, docs) for name, model in parts.items()}


def all_updates(n_docs: int) -> Dict[str, Callable[[], object]]:
    """What to time of pipelines."""
    runs: Dict[str, Callable[[], object]] = {}
    for config, what in (("ner", "entities"), ("joint", "entities and categories")):
        for attention in (False, True):
            name = f"updates: {what}{', learned attention' if attention else ''}"
            runs[name] = partial(updates, *pipeline(config, attention, n_docs))
    return runs


def pipeline(config: str, attention: bool, n_docs: int) -> Tuple[Language, List[Example], Optimizer]:
    """A pipeline of joint labeling, initialized, with its optimizer and titles to learn."""
    fix_random_seed(0)
    name = f"joint.{config}"
    overrides = {"initialize.after_init": None, **({} if attention else without_attention(name, {}))}
    loaded = load_config(config_file(name, "bilstm"), overrides=overrides).interpolate()
    nlp = load_model_from_config(loaded, auto_fill=True)
    examples = titles(nlp, n_docs)
    nlp.initialize(lambda: examples)
    (optimizer,) = registry.resolve(Config({"optimizer": loaded["training"]["optimizer"]})).values()
    return nlp, examples, optimizer


def titles(nlp: Language, n_docs: int) -> List[Example]:
    """Titles of random words, each with two entities and a category."""
    found = []
    for i in range(n_docs):
        words = random_words(i, TITLE_WORDS)
        tags = ["B-Brand", "I-Brand", *(["O"] * (TITLE_WORDS - 3)), "B-Color"]
        reference = Doc(nlp.vocab, words=words, ents=tags)
        reference.cats = {name: float(j == i % len(CATEGORIES)) for j, name in enumerate(CATEGORIES)}
        found.append(Example(Doc(nlp.vocab, words=words), reference))
    return found


def passes(model: Model[Any, Any], docs: List[Doc]) -> None:
    """Go through an encoder and back."""
    for batch in minibatch(docs, BATCH):
        vectors, backprop = model.begin_update(batch)
        backprop(vectors)


def updates(nlp: Language, examples: List[Example], optimizer: Optimizer) -> None:
    """Learn all titles once."""
    for batch in minibatch(examples, BATCH):
        nlp.update(batch, sgd=optimizer)


if __name__ == "__main__":
    main()
