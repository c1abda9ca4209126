"""Training speed of `token_ner` on a Transformer against a plain loop with the same encoder, batch and length.

    OMP_NUM_THREADS=1 python benchmarks/roster_speed.py --encoder FOLDER [--repetitions 5] [--write]

One update for 32 sentences of random words: forward, loss, gradients, Adam. The plain loop is `AutoModel` of
transformers, one linear layer, torch's cross-entropy on the first piece of each word, and AdamW; its pieces are cut in
every update too.
"""

import argparse
from typing import Any, Callable, Dict, List

import spacy
import torch
from common import EVIDENCE, own_transformer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from timing import conditions, interleave, random_words, use_threads

from spacy_weakner.annotations.weak import set_augmented
from spacy_weakner.ty import Tick

N_SENTENCES, N_WORDS = 32, 25
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
and reads its words in the same way. Repetitions are interleaved, medians. Asked: at least 0.8 times the plain loop.

{table}

A teacher reads every sentence once more, without gradients; an augmented sentence is a second one (the words of these
are not counted).

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
    functions = [plain_loop(arguments.encoder, sentences)]
    functions += [update(name, arguments.encoder, sentences) for name in OBJECTIVES]
    speeds = [N_SENTENCES * N_WORDS / s for s in interleave(functions, arguments.repetitions)]
    lines = ["| training | words/s | ratio |", "|---|---|---|"]
    for name, speed in zip(["plain loop", *OBJECTIVES], speeds, strict=True):
        lines.append(f"| {name} | {speed:,.0f} | {speed / speeds[0]:.2f} |")
    told = conditions(arguments.repetitions, "spacy", "spacy-transformers", "thinc", "torch")
    page = PAGE.format(n=N_SENTENCES, words=N_WORDS, table="\n".join(lines), conditions=told)
    print(page)
    if arguments.write:
        (EVIDENCE / "roster-speed.md").write_text(page, encoding="utf-8")


def plain_loop(encoder: str, sentences: List[List[str]]) -> Callable[[], Any]:
    """An update without spaCy."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = AutoModel.from_pretrained(encoder, use_safetensors=True).train()
    head = torch.nn.Linear(model.config.hidden_size, len(LABELS) + 1)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)

    def run() -> float:
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

    return run


def update(name: str, encoder: str, sentences: List[List[str]]) -> Callable[[], Any]:
    """An update of the component."""
    nlp = pipeline(encoder, OBJECTIVES[name])
    examples = []
    for words in sentences:
        reference = Doc(
            nlp.vocab, words=words, ents=[f"B-{LABELS[i % 4]}" if i % 5 else "O" for i in range(len(words))]
        )
        if name.endswith("augmented"):
            set_augmented(reference, words)
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    fix_random_seed(0)
    nlp.initialize(lambda: examples)
    optimizer = nlp.create_optimizer()
    ner: Any = nlp.get_pipe("token_ner")
    ner.tick(Tick(1, 0, 0.5, 100))
    ner.renew(examples)
    return lambda: nlp.update(examples, sgd=optimizer)


def pipeline(encoder: str, objective: Dict[str, Any]) -> Language:
    """The component on a Transformer of its own."""
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy_weakner.TokenClassifier.v1", "tok2vec": own_transformer(encoder)}
    nlp.add_pipe("token_ner", config={"model": model, "objective": objective})
    return nlp


if __name__ == "__main__":
    main()
