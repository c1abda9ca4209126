"""NEEDLE and its baselines: a few gold sentences, many weakly labelled ones.

    python benchmarks/needle.py --data DIR [--dataset bc5cdr-chem:dictionary] [--encoder cnn|FOLDER|NAME]
        [--seeds 0,1,2] [--methods supervised,sst,wsl,partial_wsl,needle] [--strong 250] [--weak 4000]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped), where train has weak labels,
and perhaps weak.jsonl with more of them. A data set is named FOLDER:SOURCE; "dictionary" stands for the weak labels of
train itself, others for those of train-SOURCE, and dictionary+SOURCE for both, combined by votes whose weights come
from the strong sentences. Strong are `--strong` sentences of train with gold; weak are the other
sentences of train and those of `weak`, without gold. Rows go to docs/evidence/needle.jsonl as runs end, and
docs/evidence/needle.md is written anew at the end.
"""

import argparse
import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from common import (
    EVIDENCE,
    ROOT,
    Evidence,
    Run,
    count,
    encoder_name,
    evaluate,
    find,
    labels_only,
    line_chart,
    sample,
    train,
    write_page,
)
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.quality.compare import gold_against_weak
from spacy_weakner.quality.scores import Counts
from spacy_weakner.stages.aggregate import aggregate
from spacy_weakner.stages.calibrate import calibrate
from spacy_weakner.stages.complete import complete
from spacy_weakner.stages.convert import convert
from spacy_weakner.stages.crossfit import crossfit
from spacy_weakner.stages.label import label

BENCHMARK = "needle"
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
CONFIGS = ROOT / "configs"
N_DEV = 300
FOLDS = 3
NLL = {"@losses": "spacy_weakner.CRFNegativeLogLikelihood.v1"}
PARTIAL = {"@losses": "spacy_weakner.PartialCRF.v1", "negative_rate": 0.0}
ROBUST = {"@losses": "spacy_weakner.TokenwiseLoss.v1", "loss": {"@losses": "spacy_weakner.MeanSquaredError.v1"}}


class Method(NamedTuple):
    """How a row comes about.

    weak (Optional[str]): Weak corpus that is trained on beside the strong one; None: none.
    loss (Optional[Dict[str, Any]]): Loss of that training; None: that of the config, which is noise-aware.
    initial (Optional[str]): Method that the training starts from; None: the encoder alone.
    finetune (bool): Whether a last training on the strong sentences alone follows.
    """

    weak: Optional[str] = None
    loss: Optional[Dict[str, Any]] = None
    initial: Optional[str] = None
    finetune: bool = False


def weighted(loss: Dict[str, Any], weight: float) -> Dict[str, Any]:
    """A loss with a factor on weak sentences."""
    return {**loss, "weak_weight": weight}


# Complete sentences hold enough "O".
SOFT = {"@losses": "spacy_weakner.SoftLabelCRF.v1", "negative_rate": 0.0}
TOKEN = {"@losses": "spacy_weakner.NoiseAwareCRF.v1", "level": "token"}
METHODS = {
    "supervised": Method(),
    "sst": Method("self-labelled", NLL),
    "wsl": Method("weak-outside", NLL),
    "weighted_wsl_0.5": Method("weak-outside", weighted(NLL, 0.5)),
    "weighted_wsl_0.1": Method("weak-outside", weighted(NLL, 0.1)),
    "weighted_wsl_0.01": Method("weak-outside", weighted(NLL, 0.01)),
    "partial_wsl": Method("weak-missing", PARTIAL),
    "weighted_partial_wsl": Method("weak-missing", weighted(PARTIAL, 0.1)),
    "robust_wsl": Method("weak-outside", ROBUST),
    "needle": Method("completed", None, "supervised", finetune=True),
    "needle_wo_nal": Method("completed", NLL, "supervised", finetune=True),
    "needle_wo_wlc_nal": Method("weak-outside", NLL, "supervised", finetune=True),
    "needle_wo_ft": Method("completed", None, "supervised"),
    "needle_wo_ft_nal": Method("completed", NLL, "supervised"),
    "needle_new_crf": Method("completed", None, None, finetune=True),
    "needle_token": Method("completed-token", TOKEN, "supervised", finetune=True),
    "needle_soft": Method("completed-soft", SOFT, "supervised", finetune=True),
    "needle_estimated": Method("completed-estimated", None, "supervised", finetune=True),
    "needle_twice": Method("completed-again", None, "needle", finetune=True),
}
AGAIN = "needle_twice"
# The term list and a model together: its labels on test, completed by the model.
TOGETHER = {"supervised_and_match": "supervised", "needle_and_match": "needle"}
CURVES = "bc5cdr-chem:dictionary"
CURVE_METHODS = ("supervised", "wsl", "needle", "needle_soft")
ORDER = ["match", *METHODS, *TOGETHER]


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset", default="bc5cdr-chem:dictionary")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--encoder", default="cnn", help="cnn, or name or folder of a Transformer")
    parser.add_argument("--label", help="name of the encoder in the rows (default: from its path)")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--strong", type=int, default=250, help="gold sentences; 0: all of train")
    parser.add_argument("--weak", type=int, default=4000, help="weakly labelled sentences, at most")
    parser.add_argument("--methods", default="match,supervised,sst,wsl,partial_wsl,needle")
    parser.add_argument("--steps", type=int, default=250, help="updates of each training")
    parser.add_argument("--finetune-steps", type=int, default=150)
    parser.add_argument("--dev", action="store_true", help="score on dev instead of test, and keep no rows: to tune")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl")
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            Experiment(arguments, seed, evidence).run()
    if not arguments.dev:
        render(evidence)


class Experiment:
    """All methods with one seed, on one data set. What methods have in common is trained once."""

    def __init__(self, arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
        self.arguments = arguments
        self.seed = seed
        self.evidence = evidence
        self.encoder = arguments.label or encoder_name(arguments.encoder)
        self.size = "cnn" if arguments.encoder == "cnn" else "transformer"
        sizes = f"strong{arguments.strong}-weak{arguments.weak}"
        self.folder = arguments.work / arguments.dataset.replace(":", "-") / sizes / f"seed{seed}"
        self.models = self.folder / f"{self.encoder}-{arguments.steps}"

    def run(self) -> None:
        """Run the methods whose rows are missing."""
        self.prepare()
        n_strong, n_weak = (count(self.corpus(name)) for name in ("strong", "weak-outside"))
        for name in self.arguments.methods.split(","):
            if name == "match":
                run = Run(BENCHMARK, self.arguments.dataset, "-", "quick", name, 0, 0, 0)
                if not self.evidence.has(run) and self.corpus("test-labelled").exists():
                    self.evidence.add(run, gold_against_weak(self.corpus("test-labelled"))[0], 0.0, 0.0)
                continue
            trained = TOGETHER.get(name, name)
            used = n_weak if METHODS[trained].weak else 0
            run = Run(BENCHMARK, self.arguments.dataset, self.encoder, "quick", name, self.seed, n_strong, used)
            if self.evidence.has(run) and not self.arguments.dev:
                continue
            model, seconds = self.train(trained)
            if name in TOGETHER:
                labels = self.corpus("dev-labelled" if self.arguments.dev else "test-labelled")
                completed = self.models / f"{labels.stem}-{name}.spacy"
                complete(labels, completed, model, broken="repair")
                self.report(name, run, gold_against_weak(completed)[0], seconds, 0.0)
                continue
            counts, speed = evaluate(model, self.corpus("dev" if self.arguments.dev else "test"))
            self.report(name, run, counts, seconds, speed)

    def report(self, name: str, run: Run, counts: Counts, seconds: float, speed: float) -> None:
        """Keep a row or, while tuning, print it."""
        if self.arguments.dev:
            print(f"{name} seed {self.seed}: dev P {counts.precision:.1f} R {counts.recall:.1f} F1 {counts.f1:.2f}")
        else:
            self.evidence.add(run, counts, seconds, speed)

    def corpus(self, name: str) -> Path:
        """A corpus of this seed."""
        return self.folder / f"{name}.spacy"

    def train(self, name: str) -> Tuple[Path, float]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, float]): The pipeline, and the seconds of its own trainings.
        """
        method = METHODS[name]
        if method.weak is None:
            output, seconds = train(*self.on_strong("supervised", None))
            return output / "model-best", seconds
        key = next(other for other, own in METHODS.items() if own._replace(finetune=method.finetune) == method)
        initial = None if method.initial is None else self.train(method.initial)[0]
        output, seconds = train(*self.on_both(key, method, initial))
        if initial is None and not method.finetune:
            return output / "model-best", seconds
        # Stage II is not chosen by its own score, as in the paper.
        stage_two = output / "model-last"
        if not method.finetune:
            return stage_two, seconds
        output, more = train(*self.on_strong(f"{key}-finetuned", stage_two))
        return output / ("model-last" if name == AGAIN else "model-best"), seconds + more

    def on_strong(self, name: str, initial: Optional[Path]) -> Tuple[Path, Path, Dict[str, Any]]:
        """Config, output and settings of a training on the strong sentences."""
        values = {**self.settings(), "paths.train": str(self.corpus("strong")), "paths.dev": str(self.corpus("dev"))}
        if initial is None:
            return CONFIGS / "crf_ner" / f"{self.size}.cfg", self.models / name, values
        values.update({"paths.initial": str(initial), "training.max_steps": self.arguments.finetune_steps})
        values["training.eval_frequency"] = 25
        return CONFIGS / "needle" / f"{self.size}_finetune.cfg", self.models / name, values

    def on_both(self, name: str, method: Method, initial: Optional[Path]) -> Tuple[Path, Path, Dict[str, Any]]:
        """Config, output and settings of a training on strong and weak sentences."""
        values = {
            **self.settings(),
            "paths.strong": str(self.corpus("strong")),
            "paths.weak": str(self.weak_corpus(str(method.weak))),
            "paths.dev": str(self.corpus("dev")),
            "training.max_epochs": 0,
            "training.patience": 0,
        }
        if initial is None:
            values["initialize.after_init"] = None
        else:
            values["paths.initial"] = str(initial)
        if method.loss is not None:
            values["components.crf_ner.loss"] = method.loss
        return CONFIGS / "needle" / f"{self.size}_noise_aware.cfg", self.models / name, values

    def settings(self) -> Dict[str, Any]:
        """What all trainings share."""
        values: Dict[str, Any] = {
            "system.seed": self.seed,
            "nlp.tokenizer.@tokenizers": TOKENIZER,
            "training.max_steps": self.arguments.steps,
        }
        return values if self.size == "cnn" else {**values, "paths.transformer": self.arguments.encoder}

    def weak_corpus(self, name: str) -> Path:
        """A weak corpus: by the term list alone, or with a model's predictions."""
        if name.startswith("weak-"):
            return self.corpus(name)
        path = self.models / f"{name}.spacy"
        if path.exists():
            return path
        initial, _ = self.train("needle" if name == "completed-again" else "supervised")
        weak_corpus = self.corpus("weak-missing")
        if name == "self-labelled":
            report = complete(weak_corpus, path, initial, rule="all")
        else:
            calibration = self.calibration({"completed-token": "token"}.get(name, "sentence"))
            if name == "completed-again":
                # Dev selects nothing in the second round, so that it can calibrate.
                calibration = self.models / "calibration-again.json"
                calibrate(calibration, [(initial, self.corpus("dev"))])
            soft = name == "completed-soft"
            estimate = soft or name == "completed-estimated"
            report = complete(
                weak_corpus, path, initial, calibration=calibration, estimate_accuracy=estimate, soft=soft
            )
        print(name, report, flush=True)
        return path

    def calibration(self, unit: str) -> Path:
        """Out-of-fold calibration on the strong sentences."""
        path = self.models / f"calibration-{unit}.json"
        if not path.exists():
            config, _, values = self.on_strong("", None)
            values = {key: value for key, value in values.items() if key not in ("paths.train", "paths.dev")}
            values["training.eval_frequency"] = 10_000
            folds = crossfit(config, self.corpus("strong"), self.models / "folds", folds=FOLDS, overrides=values)
            print(calibrate(path, [(fold.model, fold.corpus) for fold in folds], unit=unit), flush=True)
        return path

    def prepare(self) -> None:
        """Make the corpora of this seed."""
        folder, arguments = self.folder, self.arguments
        if (folder / "done").exists():
            return
        name, source = arguments.dataset.split(":")
        data = arguments.data / name
        folder.mkdir(parents=True, exist_ok=True)
        base = folder.parent.parent
        for split in ("dev", "test"):
            if not (base / f"{split}.spacy").exists():
                convert(find(data, split), base / f"{split}.spacy", tokenizer=TOKENIZER, source="weak")
        first, *others = source.split("+")
        if not (base / "train.spacy").exists():
            split = "train" if first == "dictionary" else f"train-{first}"
            alone = base / "train-first.spacy"
            convert(find(data, split), alone, tokenizer=TOKENIZER, source="weak", overwrite=True)
            files = {name: str(labels_only(find(data, f"train-{name}"), base / f"{name}.jsonl")) for name in others}
            sources = {name: {"file": file_} for name, file_ in files.items()}
            if sources:
                label(alone, base / "train.spacy", sources=sources, tokenizer=TOKENIZER)
            else:
                alone.replace(base / "train.spacy")
        # dev is the same for every seed
        write_docs(self.corpus("dev"), sample(base / "dev.spacy", N_DEV, 0)[0])
        write_docs(self.corpus("test"), read_docs(base / "test.spacy", Vocab()))
        if source == "dictionary":
            for split in ("dev", "test"):
                aggregate(self.corpus(split), self.corpus(f"{split}-labelled"), unmatched="outside")
        strong, rest = sample(base / "train.spacy", arguments.strong, self.seed)
        write_docs(self.corpus("strong"), strong)
        more: List[Doc] = []
        if source == "dictionary" and any(data.glob("weak.jsonl*")):
            if not (base / "more.spacy").exists():
                convert(find(data, "weak"), base / "more.spacy", tokenizer=TOKENIZER, source="weak")
            more = list(read_docs(base / "more.spacy", Vocab()))
        pool = [*rest, *more]
        random.Random(self.seed).shuffle(pool)
        write_docs(self.corpus("sources"), pool[: arguments.weak])
        how = {"method": "weighted", "gold": self.corpus("strong")} if others else {}
        for unmatched in ("outside", "missing"):
            aggregate(self.corpus("sources"), self.corpus(f"weak-{unmatched}"), unmatched=unmatched, **how)
        (folder / "done").touch()


def render(evidence: Evidence) -> None:
    """Write the page and its plots from the rows."""
    rows = [row for row in evidence.rows() if row["benchmark"] == BENCHMARK]
    page = write_page(BENCHMARK, rows, ("dataset", "encoder", "strong"), ORDER)
    curves = [row for row in rows if row["dataset"] == CURVES and row["encoder"] == "cnn" and row["seed"] == 0]
    for axis, fixed, x_label in (("strong", "weak", "gold sentences"), ("weak", "strong", "weakly labelled sentences")):
        lines, text = over(curves, axis, fixed)
        page = page.replace(f"{{curve-{axis}}}", text)
        line_chart(f"{CURVES}, cnn: F1 on test", x_label, lines, EVIDENCE / f"{BENCHMARK}-{axis}.svg")
    (EVIDENCE / f"{BENCHMARK}.md").write_text(page, encoding="utf-8")


def over(rows: List[Dict[str, Any]], axis: str, fixed: str) -> Tuple[Dict[str, List[Tuple[float, float]]], str]:
    """F1 of methods over the number of sentences, for plot and page.

    rows (List[Dict[str, Any]]): Rows of one data set, encoder and seed.
    axis (str): "strong" or "weak"; the other one is as in the headline.
    fixed (str): The other one.
    RETURNS (Tuple[Dict[str, List[Tuple[float, float]]], str]): Points by method, and a table.
    """
    headline = {"strong": 250, "weak": 4000}[fixed]
    found = {
        (method, row[axis]): row["f1"]
        for method in CURVE_METHODS
        for row in rows
        if row["method"] == method and row[fixed] in (headline, 0)
    }
    sizes = sorted({size for _, size in found if size})
    lines = {m: [(float(n), found[m, n]) for n in sizes if (m, n) in found] for m in CURVE_METHODS}
    out = [f"| {axis} | " + " | ".join(map(str, sizes)) + " |", "|" + "---|" * (len(sizes) + 1)]
    for method in (m for m in CURVE_METHODS if lines[m]):
        cells = [f"{found[method, n]:.1f}" if (method, n) in found else "" for n in sizes]
        out.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return {method: points for method, points in lines.items() if points}, "\n".join(out)


if __name__ == "__main__":
    main()
