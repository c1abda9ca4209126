"""What else can be made of the files of `best.py`: the methods of the papers, each by itself.

    python benchmarks/rivals.py --size cnn --columns bc5cdr,conll03 --gold 250 --seeds 0

It starts where `best.py` has ended, with the corpora of its project, and adds rows to the same table. As there, nothing
is given to choose a checkpoint by: the last one counts. Updates are those that the project has decided on.
"""

import argparse
from pathlib import Path
from typing import Any, Callable, Dict

from best import COLUMNS, add, encoder_of, has, language, page, work_folder
from common import EVIDENCE, ROOT, Cost, Evidence, Run, config_file, train

from spacy_weakner.files import write_text
from spacy_weakner.project.layout import Corpora
from spacy_weakner.project.verdict import Verdict
from spacy_weakner.quality.compare import compare
from spacy_weakner.stages.aggregate import aggregate
from spacy_weakner.stages.calibrate import calibrate
from spacy_weakner.stages.complete import complete
from spacy_weakner.stages.crossfit import crossfit
from spacy_weakner.stages.ensemble import ensemble

FOLDS, MEMBERS = 3, 3
# Settings by dotted name.
Settings = Dict[str, Any]


class Rivals:
    """The methods, on the files of one project.

    folder (Path): What `best.py` has left.
    size (str): Size of the encoder.
    seed (int): Seed of all trainings.
    shared (Settings): Settings of all trainings.
    """

    def __init__(self, folder: Path, size: str, seed: int, shared: Settings) -> None:
        self.project, self.models, self.size = folder / "project", folder / "rivals", size
        self.corpora = Corpora(self.project / "corpus")
        self.gold, self.weak = self.corpora.gold, self.corpora.weak
        self.verdict = Verdict.load(self.project / "training" / "verdict.json")
        self.shared = {"system.seed": seed, "training.patience": 0, **shared}
        self.methods: Dict[str, Callable[[], Path]] = {
            "strong and weak": self.strong_weak,
            "weak, then gold": self.weak_then_gold,
            "span_ner": self.span_ner,
            "NEEDLE": self.needle,
            "NEEDLE, taught by combined": self.needle_of_combined,
            "RoSTER": self.roster,
        }

    def strong_weak(self) -> Path:
        """A CRF on both, unknown tokens marginalised."""
        return self._fit("crf_ner.strong_weak", "strong-weak", self._both(self.weak))

    def weak_then_gold(self) -> Path:
        """A CRF on the weak labels, fine-tuned on all gold."""
        return self._finetune("weak-gold", self._fit("crf_ner", "weak", self._one(self.weak)))

    def span_ner(self) -> Path:
        """A classifier of spans on both, with negative sampling."""
        return self._fit("span_ner.strong_weak", "span_ner", self._both(self.weak))

    def needle(self) -> Path:
        """Labels completed by a CRF of the gold, noise-aware training, fine-tuning on gold."""
        config, values = config_file("crf_ner", self.size), self._values(self.verdict.settings.gold_steps)
        folds = crossfit(config, self.gold, self.models / "folds", folds=FOLDS, overrides=values)
        judges = [(fold.model, fold.corpus) for fold in folds]
        return self._needle("needle", self._gold_alone(), judges, rule="unmatched")

    def needle_of_combined(self) -> Path:
        """The same, but what the combination says of the text."""
        teachers, folds = (self.project / "training" / name for name in ("student1", "folds"))
        judges = [
            (teachers / f"teacher-{n}", folds / f"fold-{n}.spacy")
            for n in range(1, 1 + sum(1 for _ in folds.glob("rest-*.spacy")))
        ]
        return self._needle("needle-combined", teachers / "teacher-whole", judges, rule="all")

    def roster(self) -> Path:
        """Weak labels alone: noise-robust learning, ensemble, self-training."""
        labels, soft = self.models / "outside", self.models / "soft"
        aggregate(self.corpora.folder / "text-labelled", labels, unmatched="outside")
        values = self._values(self.verdict.settings.mixed_steps, self._one(labels))
        seed, config = values.pop("system.seed"), config_file("roster.noise_robust", self.size)
        ensemble(config, labels, self.models / "members", soft, members=MEMBERS, overrides=values, seed=seed)
        first = self._fit("roster.ensemble", "ensemble", self._one(soft))
        return self._fit("roster.self_training", "roster", {**self._one(soft), "paths.initial": str(first)}, half=True)

    def _needle(self, name: str, teacher: Path, judges: Any, *, rule: str) -> Path:
        completed, calibration = self.models / f"{name}-completed", self.models / f"{name}.json"
        calibrate(calibration, judges)
        complete(self.weak, completed, teacher, rule=rule, calibration=calibration)
        settings = {**self._both(completed), "paths.initial": str(self._gold_alone())}
        return self._finetune(f"{name}-tuned", self._fit("needle.noise_aware", name, settings))

    def _gold_alone(self) -> Path:
        return self._fit("crf_ner", "gold", self._one(self.gold), gold=True)

    def _finetune(self, name: str, initial: Path) -> Path:
        return self._fit("needle.finetune", name, {**self._one(self.gold), "paths.initial": str(initial)}, gold=True)

    def _fit(self, recipe: str, name: str, settings: Settings, *, gold: bool = False, half: bool = False) -> Path:
        steps = self.verdict.settings.gold_steps if gold else self.verdict.settings.mixed_steps
        values = self._values(steps // 2 if half else steps, settings)
        return train(config_file(recipe, self.size), self.models / name, values)[0] / "model-last"

    def _values(self, steps: int, settings: Settings = {}) -> Settings:  # noqa: B006
        return {**self.shared, "training.max_steps": steps, "training.eval_frequency": steps, **settings}

    def _one(self, corpus: Path) -> Settings:
        return {"paths.train": str(corpus), "paths.dev": str(self.gold)}

    def _both(self, weak: Path) -> Settings:
        return {"paths.strong": str(self.gold), "paths.weak": str(weak), "paths.dev": str(self.gold)}


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "best", help="where best.py has worked")
    parser.add_argument("--columns", default=",".join(COLUMNS))
    parser.add_argument("--size", default="cnn")
    parser.add_argument("--transformer", default=None, help="folder of the Transformer")
    parser.add_argument("--gold", default="250")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--methods", help="names of methods (default: all)")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / "best.jsonl")
    for column in arguments.columns.split(","):
        for gold in map(int, arguments.gold.split(",")):
            for seed in map(int, arguments.seeds.split(",")):
                run(column, gold, seed, arguments, evidence)
    write_text(EVIDENCE / "best.md", page(evidence.rows()))


def run(column: str, n_gold: int, seed: int, arguments: argparse.Namespace, evidence: Evidence) -> None:
    """The methods whose rows are missing, on one project."""
    folder = work_folder(arguments.work, column, n_gold, seed, arguments.size)
    lang, tokenizer = language(column)
    shared = {"nlp.lang": lang, "nlp.tokenizer.@tokenizers": tokenizer}
    if arguments.transformer:
        shared["paths.transformer"] = arguments.transformer
    rivals = Rivals(folder, arguments.size, seed, shared)
    names = arguments.methods.split(";") if arguments.methods else list(rivals.methods)
    for name in names:
        this = Run("best", column, encoder_of(arguments.size), "quick", name, seed, n_gold, rivals.verdict.facts.text)
        if has(evidence, this):
            continue
        start = Cost.now()
        pipeline = rivals.methods[name]()
        cost = Cost.since(start)
        (row,) = compare(folder / "test.spacy", {name: pipeline}, bootstrap=0)
        add(evidence, this, row, cost, ece=None)


if __name__ == "__main__":
    main()
