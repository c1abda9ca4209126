"""RoSTER: distant labels alone, no gold, against training on them as they are.

    python benchmarks/roster.py --data DIR [--dataset conll03:kb] [--encoder cnn|FOLDER|NAME] [--seeds 0,1,2]
        [--methods match,distant_ce,single,full,supervised] [--train 2000] [--masked-lm FOLDER]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped), where train has gold and weak
labels. A data set is named FOLDER:SOURCE; "kb" stands for the weak labels of train itself, others for those of
train-SOURCE. Gold is used by `supervised` alone, which is trained on it, and to score; the product of all is the last
pipeline. `--masked-lm` is what `full` augments sentences with: an encoder with a head for masked words.
Names of further methods: `single_q0.3`, `single_tau0.5` and the like have another value of one setting,
`single_separate` removes labels for each head by itself, and `wo_augmentation_0` self-trains on all tokens.
`match` is the weak labels themselves, on train: there are none of test.
Rows go to docs/evidence/roster.jsonl as runs end, and docs/evidence/roster.md is written anew at the end.
"""

import argparse
import time
from pathlib import Path
from typing import Any, Dict, NamedTuple, Tuple

from common import EVIDENCE, ROOT, Evidence, Run, count, encoder_name, evaluate, find, sample, train, write_page

from spacy_weakner.annotations.corpus import write_docs
from spacy_weakner.quality.compare import gold_against_weak
from spacy_weakner.stages.aggregate import aggregate
from spacy_weakner.stages.augment import augment
from spacy_weakner.stages.convert import convert
from spacy_weakner.stages.ensemble import ensemble

BENCHMARK = "roster"
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
CONFIGS = ROOT / "configs"
OBJECTIVE = "components.token_ner.objective"
CE = {f"{OBJECTIVE}.loss": {"@losses": "spacy_weakner.CategoricalCrossentropy.v1"}}
KEEP_ALL = {f"{OBJECTIVE}.threshold": None}
STAGES = ("single", "ensemble", "self-training")


class Method(NamedTuple):
    """How a row comes about.

    stage (str): The last one of `STAGES`.
    settings (Dict[str, Any]): Of the noise-robust stage.
    augmented (bool): Whether self-training sees augmented sentences.
    self_training (Dict[str, Any]): Settings of that stage.
    """

    stage: str
    settings: Dict[str, Any] = {}
    augmented: bool = False
    self_training: Dict[str, Any] = {}


METHODS = {
    "single": Method("single"),
    "single_ce": Method("single", CE),
    "single_all_labels": Method("single", KEEP_ALL),
    "single_separate": Method("single", {f"{OBJECTIVE}.separate": True}),
    "wo_gce": Method("self-training", CE, True),
    "wo_removal": Method("self-training", KEEP_ALL, True),
    "wo_self_training": Method("ensemble"),
    "wo_augmentation": Method("self-training"),
    "wo_augmentation_0": Method("self-training", self_training={f"{OBJECTIVE}.threshold": 0.0}),
    "full": Method("self-training", augmented=True),
}
for value in ("0.3", "0.5", "0.9"):
    METHODS[f"single_q{value}"] = Method("single", {f"{OBJECTIVE}.loss.q": float(value)})
    METHODS[f"single_tau{value}"] = Method("single", {f"{OBJECTIVE}.threshold": float(value)})
ORDER = ["match", "distant_ce", *METHODS, "supervised"]


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset", default="conll03:kb")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--encoder", default="cnn", help="cnn, or name or folder of a Transformer")
    parser.add_argument("--label", help="name of the encoder in the rows (default: from its path)")
    parser.add_argument("--masked-lm", default="none", help="name or folder of an encoder with its head")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--train", type=int, default=2000, help="training sentences; 0: all")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--methods", default="match,distant_ce,single,wo_self_training,wo_augmentation,supervised")
    parser.add_argument("--steps", type=int, default=600, help="updates of each training but self-training")
    parser.add_argument("--self-training-steps", type=int, default=300)
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl")
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            Experiment(arguments, seed, evidence).run()
    rows = [row for row in evidence.rows() if row["benchmark"] == BENCHMARK]
    page = write_page(
        BENCHMARK, rows, ("dataset", "encoder", "preset"), ORDER, on_train=lambda row: row["method"] == "match"
    )
    (EVIDENCE / f"{BENCHMARK}.md").write_text(page, encoding="utf-8")


class Experiment:
    """All methods with one seed, on one data set. What methods have in common is trained once."""

    def __init__(self, arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
        self.arguments = arguments
        self.seed = seed
        self.evidence = evidence
        self.encoder = arguments.label or encoder_name(arguments.encoder)
        self.size = "cnn" if arguments.encoder == "cnn" else "transformer"
        self.preset = "quick" if arguments.train else "full"
        dataset = arguments.dataset.replace(":", "-")
        self.folder = arguments.work / dataset / f"{self.preset}{arguments.train}" / f"seed{seed}"
        settings = (self.encoder, arguments.steps, arguments.members, arguments.self_training_steps)
        self.models = self.folder / "-".join(map(str, settings))

    def run(self) -> None:
        """Run the methods whose rows are missing."""
        self.prepare()
        n = count(self.corpus("weak"))
        for name in self.arguments.methods.split(","):
            encoder, seed = ("-", 0) if name == "match" else (self.encoder, self.seed)
            run = Run(BENCHMARK, self.arguments.dataset, encoder, self.preset, name, seed, 0, n)
            if name == "supervised":
                run = run._replace(strong=n, weak=0)
            if self.evidence.has(run):
                continue
            if name == "match":  # there are no weak labels of test
                self.evidence.add(run, gold_against_weak(self.corpus("weak"))[0], 0.0, 0.0)
                continue
            model, seconds = self.train(name)
            counts, speed = evaluate(model, self.corpus("test"))
            self.evidence.add(run, counts, seconds, speed)

    def corpus(self, name: str) -> Path:
        """A corpus of this seed."""
        return self.folder / f"{name}.spacy"

    def train(self, name: str) -> Tuple[Path, float]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, float]): The pipeline, and the seconds of all that it needs.
        """
        if name in ("distant_ce", "supervised"):
            gold = self.corpus("gold" if name == "supervised" else "weak")
            return self.fit(f"token_ner/{self.size}", name, gold, {"training.patience": 0})
        method = METHODS[name]
        variant = next(other for other, own in METHODS.items() if own.settings == method.settings)
        if method.stage == "single":
            config = f"roster/{self.size}_noise_robust"
            return self.fit(config, f"{variant}/alone", self.corpus("weak"), method.settings)
        soft, before = self.ensemble(variant, method.settings)
        model, seconds = self.fit(f"roster/{self.size}_ensemble", f"{variant}/ensemble", soft, {})
        if method.stage == "ensemble":
            return model, before + seconds
        if method.augmented:
            if self.arguments.masked_lm == "none":
                raise SystemExit(f"{name} needs --masked-lm")
            augmented = self.models / variant / "augmented.spacy"
            print(augment(soft, augmented, self.arguments.masked_lm, seed=self.seed), flush=True)
            soft = augmented
        settings = {**method.self_training, "paths.initial": str(model)}
        settings["training.max_steps"] = self.arguments.self_training_steps
        final, more = self.fit(f"roster/{self.size}_self_training", f"{variant}/{name}", soft, settings)
        return final, before + seconds + more

    def ensemble(self, variant: str, settings: Dict[str, Any]) -> Tuple[Path, float]:
        """The corpus with the averaged probabilities of the members, whose seeds no other seed shares, and the seconds
        that it took."""
        config = CONFIGS / "roster" / f"{self.size}_noise_robust.cfg"
        soft = self.models / variant / "soft.spacy"
        receipt = soft.with_suffix(".seconds")
        started = time.perf_counter()
        report = ensemble(
            config,
            self.corpus("weak"),
            self.models / variant / "members",
            soft,
            members=self.arguments.members,
            seed=100 * (self.seed + 1),
            overrides={**self.settings(), **settings},
        )
        print(variant, f"agreement {report.agreement:.3f}, deviation {report.deviation:.3f}", flush=True)
        if not receipt.exists():
            receipt.write_text(str(time.perf_counter() - started))
        return soft, float(receipt.read_text())

    def fit(self, config: str, name: str, corpus: Path, settings: Dict[str, Any]) -> Tuple[Path, float]:
        """One training."""
        values = {**self.settings(), "paths.train": str(corpus), "paths.dev": str(self.corpus("few")), **settings}
        output, seconds = train(CONFIGS / f"{config}.cfg", self.models / name, {**values, "system.seed": self.seed})
        return output / "model-last", seconds

    def settings(self) -> Dict[str, Any]:
        """What all trainings share."""
        values: Dict[str, Any] = {
            "nlp.tokenizer.@tokenizers": TOKENIZER,
            "training.max_steps": self.arguments.steps,
            "training.eval_frequency": self.arguments.steps,
        }
        return values if self.size == "cnn" else {**values, "paths.transformer": self.arguments.encoder}

    def prepare(self) -> None:
        """Make the corpora of this seed."""
        folder, arguments = self.folder, self.arguments
        if (folder / "done").exists():
            return
        name, source = arguments.dataset.split(":")
        data = arguments.data / name
        folder.mkdir(parents=True, exist_ok=True)
        convert(find(data, "test"), self.corpus("test"), tokenizer=TOKENIZER, overwrite=True)
        split = "train" if source == "kb" else f"train-{source}"
        convert(find(data, split), self.corpus("all"), tokenizer=TOKENIZER, source="weak", overwrite=True)
        write_docs(self.corpus("gold"), sample(self.corpus("all"), arguments.train, self.seed)[0])
        aggregate(self.corpus("gold"), self.corpus("weak"), unmatched="outside")
        # spaCy wants something to evaluate on; nothing is chosen by it.
        write_docs(self.corpus("few"), sample(self.corpus("weak"), 10, 0)[0])
        (folder / "done").touch()


if __name__ == "__main__":
    main()
