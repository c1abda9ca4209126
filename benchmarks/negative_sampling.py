"""Annotations with holes: a classifier of spans with sampled negatives, against all negatives and a partial CRF.

    python benchmarks/negative_sampling.py --data DIR [--dataset conll03:p0.8]
        [--encoder cnn|bilstm|FOLDER|NAME] [--vectors FOLDER]
        [--seeds 0,1,2] [--methods all_negatives,partial_crf,uniform,weighted] [--train 2000]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped). A data set is named
FOLDER:NOISE. "p0.8" hides each gold entity of train with probability 0.8; "kb" takes the weak labels of train itself
for its annotation, other names those of train-NAME; "ec" is the gold of train together with the weak labels of
weak.jsonl. Rows go to docs/evidence/negative-sampling.jsonl as runs end, and docs/evidence/negative-sampling.md is
written anew at the end.
"""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

from charts import line_chart
from common import EVIDENCE, Cost, Evidence, Run, count, dev_scores, remembered, sample
from experiment import Experiment, add_encoder, load_weights, main, options, parse
from mask import mask
from spacy.vocab import Vocab

from spacy_weakner.calibration.calibrate import calibrate
from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.labeling.aggregate import aggregate

N_OTHERS = 1000
CURVES = "negative-sampling-curves.jsonl"


class Method(NamedTuple):
    """How a row comes about.

    component (str): Folder of the configs.
    config (str): What its config's name ends in.
    settings (Dict[str, Any]): Other settings of the config.
    unmatched (str): What tokens without annotation are to it: "outside" or "missing".
    oracle (bool): Whether the pipeline of `uniform` is its oracle.
    warm (bool): Whether it starts from its oracle.
    length (int): How many times as long as others it is trained.
    """

    component: str
    config: str = ""
    settings: Dict[str, Any] = {}
    unmatched: str = "outside"
    oracle: bool = False
    warm: bool = False
    length: int = 1


# C as in the paper, where it is the number of epochs.
FORTY = {"components.span_ner.sampler.n_epochs": 40.0}
METHODS = {
    "all_negatives": Method(
        "span_ner", settings={"components.span_ner.sampler": {"@misc": "spacy_weakner.AllNegatives.v1"}}
    ),
    "partial_crf": Method("crf_ner", unmatched="missing"),
    "uniform": Method("span_ner"),
    "weighted": Method("span_ner", ".weighted", {**FORTY, "components.span_ner.sampler.include_outside": False}),
    "weighted_with_o": Method("span_ner", ".weighted", {**FORTY, "components.span_ner.sampler.include_outside": True}),
    "uniform_twice": Method("span_ner", length=2),
    "excluded": Method("span_ner", ".oracle", oracle=True),
    "excluded_warm": Method("span_ner", ".oracle", oracle=True, warm=True),
    "weighted_oracle": Method(
        "span_ner", ".weighted", {"components.span_ner.sampler.include_outside": False}, oracle=True
    ),
}
AVERAGED, BIASED = " + averages", " + bias"


class NegativeSampling(Experiment):
    """Classifiers of spans that are trained on few negatives, and what they are compared with."""

    benchmark = "negative-sampling"
    methods = tuple(name + ending for name in METHODS for ending in ("", BIASED, AVERAGED, AVERAGED + BIASED))
    models_in = "{encoder}-{steps}-{eval_frequency}"

    def __init__(self, arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
        super().__init__(arguments, seed, evidence)
        self.split = "other-dev" if arguments.dev else "test"

    def sizes(self, name: str) -> Tuple[int, int]:
        """RETURNS (Tuple[int, int]): Number of gold and of weakly labeled sentences of a method."""
        return 0, count(self.corpus("train-outside"))

    def train(self, name: str) -> Tuple[Path, Cost]:
        """Train a method, and keep its curve.

        name (str): The method.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what its training took.
        """
        if name.endswith(BIASED):
            return self.biased(name[: -len(BIASED)])
        run, averaged = self.row(name), name.endswith(AVERAGED)
        method = METHODS[name[: -len(AVERAGED)] if averaged else name]
        oracle: Dict[str, Any] = {}
        before = Cost()
        if method.oracle:
            path, before = self.train("uniform" + (AVERAGED if averaged else ""))
            oracle = {"initialize.components": {"span_ner": {"oracle": str(path)}}}
            warm = load_weights(path, {"span_ner": ["all"]}) if method.warm else None
            oracle["initialize.after_init"] = warm
        settings = {
            "training.max_steps": method.length * self.arguments.steps,
            "training.eval_frequency": self.arguments.eval_frequency,
            "training.patience": 0,
            "training.optimizer.use_averages": averaged,
            **method.settings,
            **oracle,
            **self.with_encoder(f"components.{method.component}.model.tok2vec"),
        }
        corpus = self.corpus(f"train-{method.unmatched}")
        model, cost = self.fit(f"{method.component}{method.config}", run.method, corpus, settings)
        if self.seed == 0 and not self.arguments.dev:
            keep_curve(run, dev_scores(model.parent), self.arguments.output / CURVES)
        return model, cost + before

    def biased(self, name: str) -> Tuple[Path, Cost]:
        """A method whose bias was chosen on dev."""
        model, cost = self.train(name)
        output, start = model.parent / "biased", Cost.now()
        skipped = output.exists()
        if not skipped:
            bias = calibrate(model, self.corpus("dev"), output, fit=["bias"]).bias
            assert bias is not None
            print(f"    {name}: bias {bias.value:+.1f}, F1 on dev {bias.before:.1f} to {bias.after:.1f}", flush=True)
        return output, cost + remembered(model.parent / "bias.cost.json", start, skipped)

    def make_corpora(self) -> None:
        """Make the corpora of this seed: dev, test, and train with and without the holes marked as such."""
        self.converted("test", self.corpus("test"))
        self.make_dev()
        # To tune on: dev sentences that neither checkpoints nor biases were chosen by.
        chosen = {doc.text for doc in read_docs(self.corpus("dev"), Vocab())}
        others = (doc for doc in read_docs(self.corpus("all-dev"), Vocab()) if doc.text not in chosen)
        write_docs(self.corpus("other-dev"), islice(others, N_OTHERS))
        noise = self.source
        split = "train" if not noise or noise == "kb" or noise.startswith("p0") else f"train-{noise}"
        everything = self.converted(split, self.corpus("all-train"), source="weak")
        gold = self.corpus("gold")
        write_docs(gold, sample(everything, self.arguments.train, self.seed)[0])
        for unmatched in ("outside", "missing"):
            target = self.corpus(f"train-{unmatched}")
            if noise.startswith("p0"):
                mask(gold, target, probability=float(noise[1:]), unmatched=unmatched, seed=self.seed)
            elif noise:
                aggregate(gold, target, unmatched=unmatched)
            else:
                weak = self.corpus(f"weak-{unmatched}")
                aggregate(self.converted("weak", self.corpus("all-weak"), source="weak"), weak, unmatched=unmatched)
                write_docs(target, [*read_docs(gold, Vocab()), *read_docs(weak, Vocab())])

    @classmethod
    def page(cls, rows: List[Dict[str, Any]]) -> str:
        """Fill the page, and draw its plots."""
        page = super().page(rows)
        lines, text = over_datasets([row for row in rows if row["encoder"] == "cnn" and row["seed"] == 0])
        rates = EVIDENCE / f"{cls.benchmark}-rates.svg"
        line_chart("CoNLL-2003, cnn: F1 on test", "share of hidden entities", lines, rates)
        curves: Dict[str, Dict[str, List[Tuple[float, float]]]] = {}
        for row in read_curves(EVIDENCE / CURVES):
            name = f"{row['dataset'].replace(':', '-')}-{row['encoder']}-{row['preset']}"
            curves.setdefault(name, {})[row["method"]] = [(float(step), f1) for step, f1 in row["dev"]]
        for name, lines in curves.items():
            line_chart(f"{name}: F1 on dev", "updates", lines, EVIDENCE / f"{cls.benchmark}-{name}-dev.svg")
        return page.replace("{over-datasets}", text)


def keep_curve(run: Run, points: List[Tuple[int, float]], path: Path) -> None:
    """Keep how F1 on dev went over a training (Figure 3)."""
    row = {"dataset": run.dataset, "encoder": run.encoder, "preset": run.preset, "method": run.method, "dev": points}
    kept = [
        curve
        for curve in read_curves(path)
        if any(curve[key] != row[key] for key in ("dataset", "encoder", "preset", "method"))
    ]
    path.write_text("".join(json.dumps(curve) + "\n" for curve in [*kept, row]), encoding="utf-8")


def read_curves(path: Path) -> List[Dict[str, Any]]:
    """The curves that are kept."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def over_datasets(rows: List[Dict[str, Any]]) -> Tuple[Dict[str, List[Tuple[float, float]]], str]:
    """F1 over shares of hidden entities, as lines, and over all data sets, as a table."""
    datasets = sorted({row["dataset"] for row in rows}, key=lambda name: (":p" not in name, name))
    f1 = {(row["dataset"], row["method"]): row["f1"] for row in rows}
    names = [name.partition(":")[2] for name in datasets]
    table = ["| method | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    lines: Dict[str, List[Tuple[float, float]]] = {}
    for method in METHODS:
        found = [(dataset, f1.get((dataset, method))) for dataset in datasets]
        cells = ["" if value is None else f"{value:.1f}" for _, value in found]
        table.append(f"| {method} | " + " | ".join(cells) + " |")
        lines[method] = [(float(d.partition(":p")[2]), v) for d, v in found if v is not None and ":p" in d]
    return {method: points for method, points in lines.items() if len(points) > 1}, "\n".join(table)


if __name__ == "__main__":
    methods = "all_negatives,partial_crf,uniform,weighted"
    parser = options(NegativeSampling, __doc__, dataset="conll03:p0.8", methods=methods, steps=600)
    add_encoder(parser)
    parser.add_argument(
        "--vectors", help="folder of word vectors of the bilstm; its rows are bilstm-vectors, or --label"
    )
    parser.add_argument("--train", type=int, default=2000, help="training sentences; 0: all")
    parser.add_argument("--eval-frequency", type=int, default=100)
    arguments = parse(parser)
    if arguments.vectors and arguments.encoder != "bilstm":
        raise SystemExit("--vectors are those of --encoder bilstm")
    if arguments.vectors and not arguments.label:
        arguments.label = "bilstm-vectors"
    main(NegativeSampling, arguments)
