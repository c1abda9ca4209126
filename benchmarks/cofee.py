"""CoFEE: entity spans from links, labels from a term list, types from clusters, and gold last.

    python benchmarks/cofee.py --data DIR [--dataset conll03] [--encoder cnn|bilstm|FOLDER|NAME] [--seeds 0,1,2]
        [--methods match,mrc,wo_fet_esi,wo_fet,full] [--train 2000] [--strong 0]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped), where train has gold and weak
labels, and for the first stage a folder wiki-anchors, with weak.jsonl. Of the gold, 300 sentences of dev choose the
checkpoint of each training but the first; `supervised` and `pretrained` are trained on `--strong` sentences of train.
Names of further methods: `full_k5` and `wo_fet_delta0.3` have another value of one setting, `wo_fet_union` keeps the
weak labels, and `full_anew` begins the types anew at every renewal; `wo_esi` has all stages but the first.
`match` is the weak labels themselves: on test, or on train where test has none.
Rows go to docs/evidence/cofee.jsonl as runs end, and docs/evidence/cofee.md is written anew at the end.
"""

import argparse
import json
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple

from common import (
    BILSTM,
    EVIDENCE,
    ROOT,
    Evidence,
    Run,
    count,
    encoder_name,
    evaluate,
    find,
    sample,
    train,
    write_page,
)
from spacy.vocab import Vocab

from spacy_weakner.annotations.corpus import read_docs, write_docs
from spacy_weakner.quality.compare import gold_against_weak
from spacy_weakner.stages.aggregate import aggregate
from spacy_weakner.stages.convert import convert
from spacy_weakner.stages.pick import pick

BENCHMARK = "cofee"
TOKENIZER = "spacy_weakner.WordTokenizer.v1"
CONFIGS = ROOT / "configs"
N_DEV = 300
PICKING = "components.mrc_ner.relabel"
TYPING = "components.mrc_ner.typing"
QUERIES = {
    "conll03": {
        "PER": "Which persons are named?",
        "ORG": "Which organizations are named, such as companies, agencies, parties or teams?",
        "LOC": "Which places are named, such as countries, cities, regions or rivers?",
        "MISC": "What else is named, such as nationalities, events, languages or works?",
    },
    "ecommerce-zh": {"PROD": "有哪些产品？", "BRAN": "有哪些品牌？"},
}


class Method(NamedTuple):
    """How a row comes about.

    stage (str): The last one: "labels", "picking", "typing" or "finetune".
    anchors (bool): Whether it begins with the links.
    picking, typing (Dict[str, Any]): Settings of these stages.
    """

    stage: str
    anchors: bool = True
    picking: Dict[str, Any] = {}
    typing: Dict[str, Any] = {}


METHODS = {
    "mrc": Method("labels", anchors=False),
    "wo_fet_esi": Method("picking", anchors=False),
    "wo_fet": Method("picking"),
    "wo_esi": Method("typing", anchors=False),
    "full": Method("typing"),
    "wo_fet_union": Method("picking", picking={f"{PICKING}.union": True}),
    "full_anew": Method("typing", typing={f"{TYPING}.realign": False}),
    "pretrained": Method("finetune"),
}
for value in ("0.03", "0.3", "0.5"):
    METHODS[f"wo_fet_delta{value}"] = Method("picking", picking={f"{PICKING}.threshold": float(value)})
for value in ("5", "20", "40"):
    METHODS[f"full_k{value}"] = Method("typing", typing={f"{TYPING}.n_types": int(value)})
ORDER = ["match", *METHODS, "supervised"]


def main() -> None:
    """Run what is missing and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset", default="conll03")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / BENCHMARK)
    parser.add_argument("--encoder", default="cnn", help="cnn, bilstm, or name or folder of a Transformer")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--train", type=int, default=2000, help="training sentences; 0: all")
    parser.add_argument("--strong", type=int, default=0, help="gold sentences of `supervised` and `pretrained`")
    parser.add_argument("--methods", default="match,mrc,wo_fet_esi,wo_fet,full")
    parser.add_argument("--steps", type=int, default=600, help="updates of each training")
    parser.add_argument("--typing-steps", type=int, default=300, help="updates of the third stage, and of the last")
    parser.add_argument("--eval-frequency", type=int, default=100)
    parser.add_argument("--dev", action="store_true", help="score on dev instead of test, and keep no rows: to tune")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    evidence = Evidence(EVIDENCE / f"{BENCHMARK}.jsonl")
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            Experiment(arguments, seed, evidence).run()
    if not arguments.dev:
        rows = [row for row in evidence.rows() if row["benchmark"] == BENCHMARK]
        page = write_page(BENCHMARK, rows, ("dataset", "encoder", "strong"), ORDER, on_train=_on_train)
        (EVIDENCE / f"{BENCHMARK}.md").write_text(page, encoding="utf-8")


def _on_train(row: Dict[str, Any]) -> bool:
    # CoNLL-2003 has weak labels on train only.
    return bool(row["method"] == "match" and row["dataset"] == "conll03")


class Experiment:
    """All methods with one seed, on one data set. What methods have in common is trained once."""

    def __init__(self, arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
        self.arguments = arguments
        self.seed = seed
        self.evidence = evidence
        self.encoder = encoder_name(arguments.encoder)
        self.size = "cnn" if arguments.encoder in ("cnn", "bilstm") else "transformer"
        self.folder = arguments.work / f"{arguments.dataset}-{arguments.train}" / f"seed{seed}"
        settings = (self.encoder, arguments.steps, arguments.typing_steps, arguments.eval_frequency)
        self.models = self.folder / "-".join(map(str, settings))

    def run(self) -> None:
        """Run the methods whose rows are missing."""
        self.prepare()
        arguments, n_weak = self.arguments, count(self.corpus("weak"))
        preset = "quick" if arguments.train else "full"
        for name in arguments.methods.split(","):
            with_gold = name in ("supervised", "pretrained")
            run = Run(BENCHMARK, arguments.dataset, self.encoder, preset, name, self.seed, 0, n_weak)
            if name == "match":
                run = run._replace(encoder="-", seed=0)
            elif with_gold:
                run = run._replace(strong=count(self.gold()), weak=n_weak if name == "pretrained" else 0)
            if name == "match" if arguments.dev else self.evidence.has(run):
                continue
            if name == "match":
                self.evidence.add(run, gold_against_weak(self.match_corpus())[0], 0.0, 0.0)
                continue
            model, seconds = self.train(name)
            counts, speed = evaluate(model, self.corpus("dev" if arguments.dev else "test"))
            if arguments.dev:
                print(
                    f"{name} {self.seed}: P {counts.precision:.1f} R {counts.recall:.1f} F1 {counts.f1:.2f}", flush=True
                )
            else:
                self.evidence.add(run, counts, seconds, speed)

    def corpus(self, name: str) -> Path:
        """A corpus of this seed."""
        return self.folder / f"{name}.spacy"

    def match_corpus(self) -> Path:
        """Where the weak labels are scored."""
        has_labels = any(
            key.startswith("weak:") for doc in read_docs(self.corpus("test"), Vocab()) for key in doc.spans
        )
        if not has_labels:
            return self.corpus("weak")
        aggregate(self.corpus("test"), self.corpus("weak-test"), unmatched="outside")
        return self.corpus("weak-test")

    def gold(self) -> Path:
        """The gold sentences."""
        path = self.corpus(f"gold{self.arguments.strong}")
        if not path.exists():
            write_docs(path, sample(self.corpus("gold"), self.arguments.strong, self.seed)[0])
        return path

    def train(self, name: str) -> Tuple[Path, float]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, float]): The pipeline, and the seconds of all that it needs.
        """
        arguments = self.arguments
        if name == "supervised":
            return self.fit(f"mrc_ner/{self.size}", f"supervised{arguments.strong}", self.gold(), arguments.steps)
        method = METHODS[name]
        if method.stage == "labels":
            return self.fit(f"mrc_ner/{self.size}", name, self.corpus("weak"), arguments.steps)
        # The first method with these settings has the name of what is trained with them.
        names = {other: own for other, own in METHODS.items() if own[1:3] == method[1:3] and own.stage == "picking"}
        variant = next(iter(names))
        model, seconds = self.picking(variant, method)
        if method.stage == "picking":
            return model, seconds
        picked = self.models / variant / "picked.spacy"
        threshold = method.picking.get(f"{PICKING}.threshold", 0.1)
        print(pick(self.corpus("weak"), picked, model, threshold=threshold), flush=True)
        types = "full" if method.stage == "finetune" else name
        config, steps = f"cofee/{self.size}_typing", arguments.typing_steps
        model, more = self.fit(config, f"{variant}/{types}", picked, steps, method.typing, model)
        if method.stage == "finetune":
            config = f"cofee/{self.size}_finetune"
            final, last = self.fit(config, f"pretrained{arguments.strong}", self.gold(), steps, {}, model)
            return final, seconds + more + last
        return model, seconds + more

    def picking(self, variant: str, method: Method) -> Tuple[Path, float]:
        """The second stage, and the first if the method has it."""
        config, steps = f"cofee/{self.size}_picking", self.arguments.steps
        if not method.anchors:
            settings = {**method.picking, "initialize.after_init": None}
            return self.fit(config, f"{variant}/picking", self.corpus("weak"), steps, settings)
        settings = self.settings(steps)
        settings.update({"paths.train": str(self.anchors()), "system.seed": self.seed})
        spans, before = train(CONFIGS / "cofee" / f"{self.size}_spans.cfg", self.models / "anchors", settings)
        initial = spans / "model-last"
        model, seconds = self.fit(config, f"{variant}/picking", self.corpus("weak"), steps, method.picking, initial)
        return model, before + seconds

    def fit(
        self,
        config: str,
        name: str,
        corpus: Path,
        steps: int,
        settings: Optional[Dict[str, Any]] = None,
        initial: Optional[Path] = None,
    ) -> Tuple[Path, float]:
        """One training; the pipeline is the best one on dev."""
        values = {
            **self.settings(steps),
            "paths.train": str(corpus),
            "paths.dev": str(self.corpus("dev")),
            "paths.queries": str(self.folder / "queries.json"),
            "training.patience": 0,
            "system.seed": self.seed,
            **(settings or {}),
        }
        if initial is not None:
            values["paths.initial"] = str(initial)
        output, seconds = train(CONFIGS / f"{config}.cfg", self.models / name, values)
        return output / "model-best", seconds

    def settings(self, steps: int) -> Dict[str, Any]:
        """What all trainings share."""
        values: Dict[str, Any] = {
            "nlp.lang": "xx",
            "nlp.tokenizer.@tokenizers": TOKENIZER,
            "training.max_steps": steps,
            "training.eval_frequency": min(steps, self.arguments.eval_frequency),
        }
        if self.arguments.encoder == "bilstm":
            values["components.mrc_ner.model.encoder.tok2vec"] = BILSTM
        elif self.size == "transformer":
            values["paths.transformer"] = self.arguments.encoder
        return values

    def anchors(self) -> Path:
        """The links of a wiki, in sentences with four or more of them."""
        path = self.arguments.work / "anchors.spacy"
        if not path.exists():
            everything = path.with_name("all-anchors.spacy")
            data = find(self.arguments.data / "wiki-anchors", "weak")
            convert(data, everything, lang="xx", tokenizer=TOKENIZER, source="weak", overwrite=True)
            labelled = path.with_name("labelled-anchors.spacy")
            aggregate(everything, labelled, unmatched="outside")
            docs = [doc for doc in read_docs(labelled, Vocab()) if len(doc.ents) > 3]
            for doc in docs:
                doc.set_ents([type(ent)(doc, ent.start, ent.end, label="Entity") for ent in doc.ents])
            write_docs(path, docs)
        return path

    def prepare(self) -> None:
        """Make the corpora of this seed."""
        folder, arguments = self.folder, self.arguments
        if (folder / "done").exists():
            return
        data = arguments.data / arguments.dataset
        folder.mkdir(parents=True, exist_ok=True)
        for split in ("train", "dev", "test"):
            path = self.corpus(f"all-{split}")
            convert(find(data, split), path, lang="xx", tokenizer=TOKENIZER, source="weak", overwrite=True)
        write_docs(self.corpus("test"), read_docs(self.corpus("all-test"), Vocab()))
        write_docs(self.corpus("dev"), sample(self.corpus("all-dev"), N_DEV, 0)[0])
        write_docs(self.corpus("gold"), sample(self.corpus("all-train"), arguments.train, self.seed)[0])
        aggregate(self.corpus("gold"), self.corpus("weak"), unmatched="outside")
        queries = json.dumps(QUERIES[arguments.dataset], ensure_ascii=False)
        (folder / "queries.json").write_text(queries, encoding="utf-8")
        (folder / "done").touch()


if __name__ == "__main__":
    main()
