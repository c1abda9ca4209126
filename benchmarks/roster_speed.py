"""Training speed of `token_ner` on a Transformer against a plain loop with the same encoder, batch and length.

    OMP_NUM_THREADS=1 python benchmarks/roster_speed.py --encoder FOLDER [--repetitions 5] [--write]

One update for 32 sentences of random words: forward, loss, gradients, Adam. The plain loop is `AutoModel` of
transformers, one linear layer, torch's cross-entropy on the first piece of each word, and AdamW; its pieces are cut in
every update too. Then one pass over sentences as long as those of news, in CPU seconds: the plain loop takes 32 as they
come, the configs of RoSTER put sentences of like length together.
"""

import argparse
import random
import time
from functools import partial
from typing import Any, Callable, Dict, List, Sequence

import spacy
import torch
from common import EVIDENCE, own_transformer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from timing import conditions, interleave, random_words, use_threads

from spacy_weakner.configs import make_config
from spacy_weakner.corpus.weak import set_augmented, set_weak
from spacy_weakner.ty import Tick

N_SENTENCES, N_WORDS = 32, 25
# A pass: sentences whose lengths are drawn as those of news are (CoNLL-2003: mean 14.5, one word to over a hundred).
N_PASS, MEAN, LONGEST = 256, 14.0, 110
LABELS = ["LOC", "MISC", "ORG", "PER"]
CE = {"@losses": "spacy_weakner.CategoricalCrossentropy.v1"}
GCE = {"@losses": "spacy_weakner.GeneralizedCrossEntropy.v1"}
OBJECTIVES: Dict[str, Dict[str, Any]] = {
    "labels as they are": {"@misc": "spacy_weakner.HardLabels.v1", "loss": CE},
    "noise-robust, nothing removed": {"@misc": "spacy_weakner.NoiseRobustLearning.v1", "loss": GCE, "threshold": None},
    "noise-robust, with its teacher": {"@misc": "spacy_weakner.NoiseRobustLearning.v1", "loss": GCE},
    "self-training": {"@misc": "spacy_weakner.SelfTraining.v1"},
    "self-training, augmented": {"@misc": "spacy_weakner.SelfTraining.v1"},
}
PAGE = """# Training speed of `token_ner`

`OMP_NUM_THREADS=1 python benchmarks/roster_speed.py --encoder MINILM_FOLDER --write`. Updates on {n} sentences of
{words} random words with MiniLM: forward, loss, gradients, optimizer. The plain loop has the same encoder and batch,
and tokenizes its words in the same way. Medians of interleaved repetitions, in CPU seconds. Target: at least 0.8 times
the speed of the plain loop.

{table}

A teacher's predictions for a sentence are kept, and updates look them up, until the teacher is renewed. It then reads
the corpus once (not in the figures). An augmented sentence is an additional sentence (its words are not counted).

A pass over {n_pass} sentences of 1 to {longest} words, {mean} on average, in CPU seconds. "As they come": 32 sentences
per batch, in their order; "like lengths": the batcher of the recipes. With precision "medium" the CPU multiplies in
bfloat16 if it has units for it. Batches as they come are {n_come} updates, batches of like lengths {n_alike}.
Target: twice the speed of the plain loop.

{passes}

{conditions}
"""


def main() -> None:
    """Measure, and print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/evidence/roster-speed.md")
    arguments = parser.parse_args()
    use_threads()
    sentences = [random_words(number, N_WORDS) for number in range(N_SENTENCES)]
    functions = plain_loop(arguments.encoder, [sentences])
    functions += [own for name in OBJECTIVES for own in updates(name, arguments.encoder, [sentences])]
    speeds = [N_SENTENCES * N_WORDS / s for s in interleave(functions, arguments.repetitions, time.process_time)]
    lines = ["| training | words per CPU s | ratio |", "|---|---|---|"]
    for name, speed in zip(["plain loop", *OBJECTIVES], speeds, strict=True):
        lines.append(f"| {name} | {speed:,.0f} | {speed / speeds[0]:.2f} |")
    passes = in_passes(arguments.encoder, arguments.repetitions)
    told = conditions(arguments.repetitions, "spacy", "transformers", "thinc", "torch")
    page = PAGE.format(n=N_SENTENCES, words=N_WORDS, table="\n".join(lines), conditions=told, **passes)
    print(page)
    if arguments.write:
        (EVIDENCE / "roster-speed.md").write_text(page, encoding="utf-8")


def in_passes(encoder: str, repetitions: int) -> Dict[str, Any]:
    """Measure passes over sentences of all lengths.

    encoder (str): The Transformer.
    repetitions (int): How often.
    RETURNS (Dict[str, Any]): What the page says of them.
    """
    draw = random.Random(0)
    lengths = [min(LONGEST, 1 + round(draw.expovariate(1 / MEAN))) for _ in range(N_PASS)]
    sentences = [random_words(number, length) for number, length in enumerate(lengths)]
    as_they_come = [sentences[i : i + N_SENTENCES] for i in range(0, N_PASS, N_SENTENCES)]
    batcher = make_config("roster.noise_robust", "transformer")["training"]["batcher"]
    alike = list(spacy.registry.resolve({"it": batcher})["it"](sentences))
    first, *_ = OBJECTIVES
    own = partial(updates, first)
    runs = {
        "plain loop, as they come": a_pass(plain_loop, encoder, as_they_come, "highest"),
        "plain loop, like lengths": a_pass(plain_loop, encoder, alike, "highest"),
        f"{first}, as they come": a_pass(own, encoder, as_they_come, "highest"),
        f"{first}, like lengths": a_pass(own, encoder, alike, "highest"),
        f'{first}, like lengths, precision "medium"': a_pass(own, encoder, alike, "medium"),
    }
    speeds = [sum(lengths) / s for s in interleave(list(runs.values()), repetitions, time.process_time)]
    lines = ["| a pass | words per CPU s | ratio |", "|---|---|---|"]
    lines += [f"| {name} | {speed:,.0f} | {speed / speeds[0]:.2f} |" for name, speed in zip(runs, speeds, strict=True)]
    mean = f"{sum(lengths) / N_PASS:.1f}"
    counts = {"n_come": len(as_they_come), "n_alike": len(alike)}
    return {**counts, "passes": "\n".join(lines), "n_pass": N_PASS, "longest": max(lengths), "mean": mean}


def a_pass(
    loop: Callable[[str, Sequence[List[List[str]]]], List[Callable[[], Any]]],
    encoder: str,
    batches: Sequence[List[List[str]]],
    precision: str,
) -> Callable[[], None]:
    """All updates of a pass, with a precision of its own."""
    made = loop(encoder, batches)

    def run() -> None:
        torch.set_float32_matmul_precision(precision)
        for update in made:
            update()
        torch.set_float32_matmul_precision("highest")

    return run


def plain_loop(encoder: str, batches: Sequence[List[List[str]]]) -> List[Callable[[], Any]]:
    """Updates without spaCy, one for each batch."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = AutoModel.from_pretrained(encoder, use_safetensors=True).train()
    head = torch.nn.Linear(model.config.hidden_size, len(LABELS) + 1)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)

    def run(sentences: List[List[str]]) -> float:
        given = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
        tags = torch.full(given["input_ids"].shape, -100)
        for i in range(len(sentences)):
            seen = None
            for j, word in enumerate(given.word_ids(i)):
                if word is not None and word != seen:
                    tags[i, j] = word % (len(LABELS) + 1)
                seen = word
        scores = head(model(**given).last_hidden_state)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*model.parameters(), *head.parameters()], 1.0)
        optimizer.step()
        return float(loss.detach())

    return [partial(run, batch) for batch in batches]


def updates(name: str, encoder: str, batches: Sequence[List[List[str]]]) -> List[Callable[[], Any]]:
    """Updates of the component, one for each batch."""
    nlp = pipeline(encoder, OBJECTIVES[name])
    made = [[example(nlp, words, augmented=name.endswith("augmented")) for words in batch] for batch in batches]
    everything = [own for batch in made for own in batch]
    fix_random_seed(0)
    nlp.initialize(lambda: everything)
    optimizer = nlp.create_optimizer()
    ner: Any = nlp.get_pipe("token_ner")
    ner.tick(Tick(1, 0, 0.5, 100))
    ner.renew(everything)
    return [partial(nlp.update, batch, sgd=optimizer) for batch in made]


def example(nlp: Language, words: List[str], augmented: bool) -> Example:
    """A sentence with labels."""
    ents = [f"B-{LABELS[i % 4]}" if i % 5 else "O" for i in range(len(words))]
    reference = Doc(nlp.vocab, words=words, ents=ents)
    if augmented:
        set_augmented(reference, words)
    set_weak(reference)
    return Example(Doc(nlp.vocab, words=words), reference)


def pipeline(encoder: str, objective: Dict[str, Any]) -> Language:
    """The component on a Transformer of its own."""
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy_weakner.TokenClassifier.v1", "tok2vec": own_transformer(encoder)}
    nlp.add_pipe("token_ner", config={"model": model, "objective": objective})
    return nlp


if __name__ == "__main__":
    main()
