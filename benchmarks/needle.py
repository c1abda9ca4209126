"""NEEDLE and its baselines: a few gold sentences, many weakly labeled ones.

    python benchmarks/needle.py --data DIR [--dataset bc5cdr-chem:dictionary] [--encoder cnn|bilstm|FOLDER|NAME]
        [--seeds 0,1,2] [--methods supervised,sst,wsl,partial_wsl,needle] [--strong 250] [--weak 4000]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped), where train has weak labels,
and perhaps weak.jsonl with more of them. A data set is named FOLDER:SOURCE; "dictionary" stands for the weak labels of
train itself, others for those of train-SOURCE, and dictionary+SOURCE for both, combined by votes whose weights come
from the strong sentences. Strong are `--strong` sentences of train with gold; weak are the other
sentences of train and those of `weak`, without gold. Rows go to docs/evidence/needle.jsonl as runs end, and
docs/evidence/needle.md is written anew at the end.
"""

import random
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from charts import line_chart
from common import EVIDENCE, Cost, config_file, count, find, gold_against_weak, labels_only, sample
from experiment import MATCH, N_DEV, TOKENIZER, Experiment, Score, add_encoder, main, options, parse
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.calibration.confidence import calibrate_confidence
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.labeling.label import label
from spacy_weakner.needle.confidence import Calibration
from spacy_weakner.relabel.complete import complete
from spacy_weakner.runs.train import train_folds

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
    "sst": Method("self-labeled", NLL),
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
    "needle_auto": Method("completed-auto", None, "supervised", finetune=True),
    "needle_workflow": Method("completed-workflow", None, "supervised", finetune=True),
    "needle_twice": Method("completed-again", None, "needle", finetune=True),
}
# How the confidences of weak corpora are calibrated that are not calibrated as in the paper.
CALIBRATIONS: Dict[str, Dict[str, Any]] = {
    "completed-token": {"unit": "token"},
    "completed-workflow": {"score": "log_probability", "method": "isotonic"},
}
BY_FOLDS = ("completed-auto", "completed-workflow")
AGAIN = "needle_twice"
# The term list and a model together: its labels, completed by the model.
TOGETHER = {"supervised_and_match": "supervised", "needle_and_match": "needle"}
# The package has not this variant any more.
ESTIMATED = "needle_estimated"
CURVES = "bc5cdr-chem:dictionary"
CURVE_METHODS = ("supervised", "wsl", "needle", "needle_soft")


class Needle(Experiment):
    """NEEDLE, the parts of it, and its baselines."""

    benchmark = "needle"
    retired = (ESTIMATED,)
    methods = (MATCH, *METHODS, ESTIMATED, *TOGETHER)
    tables = ("dataset", "encoder", "strong")
    corpora_in = "{dataset}/strong{strong}-weak{weak}"
    models_in = "{encoder}-{steps}"

    @property
    def preset(self) -> str:
        """RETURNS (str): "quick", whatever the numbers of sentences are."""
        return "quick"

    def sizes(self, name: str) -> Tuple[int, int]:
        """RETURNS (Tuple[int, int]): Number of gold and of weakly labeled sentences of a method."""
        if name == MATCH:
            return 0, 0
        weak = METHODS[TOGETHER.get(name, name)].weak
        return count(self.corpus("strong")), count(self.corpus("weak-outside")) if weak else 0

    def labeled(self) -> Optional[Path]:
        """RETURNS (Optional[Path]): The split that is scored, if the weak labels are there too."""
        path = self.corpus(f"{self.split}-labeled")
        return path if path.exists() else None

    def score(self, name: str) -> Optional[Score]:
        """Train and score a method, perhaps together with the term list."""
        if name not in TOGETHER:
            return super().score(name)
        model, cost = self.train(TOGETHER[name])
        completed = self.models / f"{self.split}-labeled-{name}.spacy"
        complete(self.corpus(f"{self.split}-labeled"), completed, model, broken="repair")
        return gold_against_weak(completed)[0], cost, 0.0

    def train(self, name: str) -> Tuple[Path, Cost]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what its own trainings took.
        """
        method = METHODS[name]
        if method.weak is None:
            return self.fit("crf_ner", "supervised", self.corpus("strong"), {})
        key = next(other for other, own in METHODS.items() if own._replace(finetune=method.finetune) == method)
        initial = None if method.initial is None else self.train(method.initial)[0]
        model, cost = self.on_both(key, method, initial)
        if not method.finetune:
            return model, cost
        finetuned, more = self.finetune(f"{key}-finetuned", model, "model-last" if name == AGAIN else "model-best")
        return finetuned, cost + more

    def on_both(self, name: str, method: Method, initial: Optional[Path]) -> Tuple[Path, Cost]:
        """A training on strong and weak sentences."""
        settings: Dict[str, Any] = {
            "paths.strong": str(self.corpus("strong")),
            "paths.weak": str(self.weak_corpus(str(method.weak))),
            "paths.dev": str(self.corpus("dev")),
            "training.max_epochs": 0,
            "training.patience": 0,
        }
        if initial is None:
            settings["initialize.after_init"] = None
        else:
            settings["paths.initial"] = str(initial)
        if method.loss is not None:
            settings["components.crf_ner.loss"] = method.loss
        # Stage II is not chosen by its own score, as in the paper.
        product = "model-best" if initial is None and not method.finetune else "model-last"
        return self.fit("needle.noise_aware", name, None, settings, product)

    def finetune(self, name: str, initial: Path, product: str) -> Tuple[Path, Cost]:
        """A last training, on the strong sentences."""
        settings = {"paths.initial": str(initial), "training.max_steps": self.arguments.finetune_steps}
        settings["training.eval_frequency"] = 25
        return self.fit("needle.finetune", name, self.corpus("strong"), settings, product)

    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What all trainings share but for the seed."""
        return {**super().settings(), **self.with_encoder("components.crf_ner.model.tok2vec")}

    def weak_corpus(self, name: str) -> Path:
        """A weak corpus: by the term list alone, or with a model's predictions."""
        if name.startswith("weak-"):
            return self.corpus(name)
        path = self.models / f"{name}.spacy"
        if path.exists():
            return path
        initial, _ = self.train("needle" if name == "completed-again" else "supervised")
        weak_corpus = self.corpus("weak-missing")
        if name == "self-labeled":
            report = complete(weak_corpus, path, initial, rule="all")
        else:
            calibration = self.calibration(**CALIBRATIONS.get(name, {}))
            if name == "completed-again":
                # Dev selects nothing in the second round, so that it can calibrate.
                calibration = calibrate_confidence([(initial, self.corpus("dev"))]).calibration
            soft = name == "completed-soft"
            how: Dict[str, Any] = {"rule": "auto" if name in BY_FOLDS else "unmatched"}
            how.update(calibration=calibration, soft=soft)
            report = complete(weak_corpus, path, initial, **how)
        print(name, report, flush=True)
        return path

    def calibration(self, **how: Any) -> Calibration:
        """Out-of-fold calibration on the strong sentences; see `calibrate_confidence`."""
        config = config_file("crf_ner", self.size)
        values = {**self.settings(), "system.seed": self.seed, "training.eval_frequency": 10_000, **self.tuned}
        folds = train_folds(config, self.corpus("strong"), self.models / "folds", folds=FOLDS, overrides=values)
        report = calibrate_confidence([(fold.model, fold.corpus) for fold in folds], **how)
        print(report, flush=True)
        return report.calibration

    def make_corpora(self) -> None:
        """Make the corpora of this seed."""
        base = self.base
        dev, test = (self.converted(split, base / f"{split}.spacy", source="weak") for split in ("dev", "test"))
        first, *others = self.source.split("+")
        if not (base / "train.spacy").exists():
            split = "train" if first == "dictionary" else f"train-{first}"
            alone = self.converted(split, base / "train-first.spacy", source="weak")
            files = {name: labels_only(find(self.data, f"train-{name}"), base / f"{name}.jsonl") for name in others}
            sources = {name: {"file": str(file_)} for name, file_ in files.items()}
            if sources:
                label(alone, base / "train.spacy", sources=sources, tokenizer=TOKENIZER)
            else:
                alone.replace(base / "train.spacy")
        # dev is the same for every seed
        write_docs(self.corpus("dev"), sample(dev, N_DEV, 0)[0])
        write_docs(self.corpus("test"), read_docs(test, Vocab()))
        if self.source == "dictionary":
            for split in ("dev", "test"):
                aggregate(self.corpus(split), self.corpus(f"{split}-labeled"), unmatched="outside")
        strong, rest = sample(base / "train.spacy", self.arguments.strong, self.seed)
        write_docs(self.corpus("strong"), strong)
        more: List[Doc] = []
        if self.source == "dictionary" and any(self.data.glob("weak.jsonl*")):
            more = list(read_docs(self.converted("weak", base / "more.spacy", source="weak"), Vocab()))
        pool = [*rest, *more]
        random.Random(self.seed).shuffle(pool)
        write_docs(self.corpus("sources"), pool[: self.arguments.weak])
        how: Dict[str, Any] = {"method": "weighted", "gold": self.corpus("strong")} if others else {}
        for unmatched in ("outside", "missing"):
            aggregate(self.corpus("sources"), self.corpus(f"weak-{unmatched}"), unmatched=unmatched, **how)

    @classmethod
    def page(cls, rows: List[Dict[str, Any]]) -> str:
        """Fill the page, and draw its plots."""
        page = super().page(rows)
        curves = [row for row in rows if row["dataset"] == CURVES and row["encoder"] == "cnn" and row["seed"] == 0]
        axes = (("strong", "weak", "gold sentences"), ("weak", "strong", "weakly labeled sentences"))
        for axis, fixed, x_label in axes:
            lines, text = over(curves, axis, fixed)
            page = page.replace(f"{{curve-{axis}}}", text)
            line_chart(f"{CURVES}, cnn: F1 on test", x_label, lines, EVIDENCE / f"{cls.benchmark}-{axis}.svg")
        return page


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
    methods = "match,supervised,sst,wsl,partial_wsl,needle"
    parser = options(Needle, __doc__, dataset="bc5cdr-chem:dictionary", methods=methods, steps=250)
    add_encoder(parser)
    parser.add_argument("--strong", type=int, default=250, help="gold sentences; 0: all of train")
    parser.add_argument("--weak", type=int, default=4000, help="weakly labeled sentences, at most")
    parser.add_argument("--finetune-steps", type=int, default=150)
    main(Needle, parse(parser))
