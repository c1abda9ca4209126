"""RoSTER: distant labels alone, no gold, against training on them as they are.

    python benchmarks/roster.py --data DIR [--dataset conll03:kb] [--encoder cnn|bilstm|static|FOLDER|NAME]
        [--seeds 0,1,2] [--methods match,distant_ce,single,full,supervised] [--train 2000] [--masked-lm FOLDER]

`--data` holds a folder per data set with train, dev and test as JSONL (perhaps gzipped), where train has gold and weak
labels. A data set is named FOLDER:SOURCE; "kb" stands for the weak labels of train itself, others for those of
train-SOURCE. Gold is used by `supervised` alone, which is trained on it, and to score; the product of all is the last
pipeline. `--masked-lm` is what `full` augments sentences with: an encoder with a head for masked words.
`distant_ce_linear`, `distant_ce_same` and `distant_ce_either` are as `distant_ce`, but tokens that are "O" and that a
linear CRF, another model of the same kind or either of them doubts (`crossfit`, `clean`) are missing; `single_linear`
and so on learn the same labels noise-robustly.
Names of further methods: `single_q0.3`, `single_tau0.5` and the like have another value of one setting, and
`wo_augmentation_0` self-trains on all tokens.
`single` is the first member of the ensemble (in rows without `cpu_seconds` a training of its own).
`match` is the weak labels themselves, on train: there are none of test.
Rows go to docs/evidence/roster.jsonl as runs end, and docs/evidence/roster.md is written anew at the end.
"""

from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from common import Cost, config_file, count, remembered, sample, train
from experiment import MATCH, TOKENIZER, Experiment, Score, add_encoder, main, options, parse
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.corpus.docbin import read_docs, write_docs
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.relabel.augment import augment
from spacy_weakner.relabel.clean import clean
from spacy_weakner.relabel.soft import predict_soft_labels
from spacy_weakner.runs.train import train_folds, train_members

OBJECTIVE = "components.token_ner.objective"
CE = {f"{OBJECTIVE}.loss": {"@losses": "spacy_weakner.CategoricalCrossentropy.v1"}}
KEEP_ALL = {f"{OBJECTIVE}.threshold": None}
STAGES = ("single", "ensemble", "self-training")
FOLDS = 3
# Who judges the labels, before they are learned at face value or noise-robustly.
JUDGES = {"linear": ("linear",), "same": ("same",), "either": ("linear", "same")}
CLEANED = [f"{name}_{judges}" for name in ("distant_ce", "single") for judges in JUDGES]


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


class Roster(Experiment):
    """RoSTER, and the parts of it."""

    benchmark = "roster"
    methods = (MATCH, "distant_ce", *METHODS, *CLEANED, "supervised")
    models_in = "{encoder}-{steps}-{members}-{self_training_steps}"

    @staticmethod
    def on_train(row: Dict[str, Any]) -> bool:
        """RETURNS (bool): Whether a row was scored on train: there are weak labels there only."""
        return bool(row["method"] == MATCH)

    def sizes(self, name: str) -> Tuple[int, int]:
        """RETURNS (Tuple[int, int]): Number of gold and of weakly labeled sentences of a method."""
        n = count(self.corpus("weak"))
        return (n, 0) if name == "supervised" else (0, n)

    def labeled(self) -> Optional[Path]:
        """RETURNS (Optional[Path]): Train."""
        return None if self.arguments.dev else self.corpus("weak")

    def score(self, name: str) -> Optional[Score]:
        """Train and score a method; dev is for this alone."""
        if self.arguments.dev and not self.corpus("dev").exists():
            self.make_dev()
        return super().score(name)

    def train(self, name: str) -> Tuple[Path, Cost]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what all that it needs took.
        """
        if name in ("distant_ce", "supervised"):
            corpus = self.corpus("gold" if name == "supervised" else "weak")
            return self.fit_on(corpus, "token_ner", name, {"training.patience": 0})
        if name in CLEANED:
            base, _, judges = name.rpartition("_")
            corpus, before = self.cleaned(judges)
            recipe = "token_ner" if base == "distant_ce" else "roster.noise_robust"
            model, cost = self.fit_on(corpus, recipe, name, {"training.patience": 0})
            return model, before + cost
        method = METHODS[name]
        variant = next(other for other, own in METHODS.items() if own.settings == method.settings)
        if method.stage == "single":
            return self.member(variant, method.settings, 0)
        soft, before = self.ensemble(variant, method.settings)
        model, cost = self.fit_on(soft, "roster.ensemble", f"{variant}/ensemble", {})
        if method.stage == "ensemble":
            return model, before + cost
        if method.augmented:
            if self.arguments.masked_lm == "none":
                raise SystemExit(f"{name} needs --masked-lm")
            augmented = self.models / variant / "augmented.spacy"
            print(augment(soft, augmented, self.arguments.masked_lm, seed=self.seed), flush=True)
            soft = augmented
        settings = {**method.self_training, "paths.initial": str(model)}
        settings["training.max_steps"] = self.arguments.self_training_steps
        final, more = self.fit_on(soft, "roster.self_training", f"{variant}/{name}", settings)
        return final, before + cost + more

    def cleaned(self, judges: str) -> Tuple[Path, Cost]:
        """The weak labels, but for "O" that judges doubt, and what these took.

        judges (str): A name of `JUDGES`.
        RETURNS (Tuple[Path, Cost]): The corpus, and what all its judges took.
        """
        (first, cost), *others = map(self.judged, JUDGES[judges])
        for second, more in others:
            both = self.models / f"judged-{judges}.spacy"
            write_docs(both, without_missing(first, second))
            first, cost = both, cost + more
        return first, cost

    def judged(self, judge: str) -> Tuple[Path, Cost]:
        """The weak labels, but for "O" that a judge doubts which has not seen them, and what it took."""
        if judge == "linear":
            config = config_file("crf_ner", "linear")
            values: Dict[str, Any] = {"nlp.tokenizer.@tokenizers": TOKENIZER, "system.seed": self.seed}
        else:
            config = config_file("token_ner", self.size)
            values = {**self.settings(), "system.seed": self.seed, **self.tuned}
            # As many epochs as a training on all sentences.
            values["training.max_steps"] = self.arguments.steps * (FOLDS - 1) // FOLDS
        path, start = self.models / f"judged-{judge}.spacy", Cost.now()
        weak, folds = self.corpus("weak"), path.with_suffix("")
        models = train_folds(config, weak, folds, folds=FOLDS, seed=self.seed, overrides=values)
        print(judge, clean(weak, path, folds, entities=False, outside=True), flush=True)
        return path, remembered(path.with_suffix(".cost.json"), start, all(fold.skipped for fold in models))

    def member(self, variant: str, settings: Dict[str, Any], n: int) -> Tuple[Path, Cost]:
        """A member of the ensemble, which finds it trained. No two of all seeds share the seed of a member."""
        seed = self.first + n
        values = {"paths.train": str(self.corpus("weak")), "training.patience": 0, **self.robust(settings)}
        values.update({"system.seed": seed, "training.seed": seed})
        output = self.models / variant / "members" / f"member-{n}"
        trained, cost = train(config_file("roster.noise_robust", self.size), output, values)
        return trained / "model-last", cost

    def ensemble(self, variant: str, settings: Dict[str, Any]) -> Tuple[Path, Cost]:
        """The corpus with the averaged probabilities of the members, and what it took."""
        members = range(self.arguments.members)
        cost = sum((self.member(variant, settings, n)[1] for n in members), Cost())
        soft, start = self.models / variant / "soft.spacy", Cost.now()
        folder, weak = soft.parent / "members", self.corpus("weak")
        overrides = {**self.robust(settings), "paths.train": str(weak)}
        config = config_file("roster.noise_robust", self.size)
        train_members(config, folder, members=len(members), seed=self.first, overrides=overrides)
        report = predict_soft_labels(weak, soft, [folder])
        print(variant, f"agreement {report.agreement:.3f}, deviation {report.deviation:.3f}", flush=True)
        return soft, cost + remembered(soft.with_suffix(".cost.json"), start, not report.written)

    @property
    def first(self) -> int:
        """RETURNS (int): Seed of the first member."""
        return 100 * (self.seed + 1)

    def robust(self, settings: Dict[str, Any]) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): All settings of the members but their seeds."""
        return {**self.settings(), "paths.dev": str(self.corpus("few")), **settings, **self.tuned}

    def fit_on(self, corpus: Path, config: str, name: str, settings: Dict[str, Any]) -> Tuple[Path, Cost]:
        """A training on a corpus; the pipeline is the last one."""
        return self.fit(config, name, corpus, {"paths.dev": str(self.corpus("few")), **settings}, "model-last")

    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What all trainings share but for the seed."""
        encoder = self.with_encoder("components.token_ner.model.tok2vec")
        return {**super().settings(), **encoder, "training.eval_frequency": self.arguments.steps}

    def make_corpora(self) -> None:
        """Make the corpora of this seed."""
        self.converted("test", self.corpus("test"))
        split = "train" if self.source == "kb" else f"train-{self.source}"
        everything = self.converted(split, self.corpus("all"), source="weak")
        write_docs(self.corpus("gold"), sample(everything, self.arguments.train, self.seed)[0])
        aggregate(self.corpus("gold"), self.corpus("weak"), unmatched="outside")
        # spaCy wants something to evaluate on; nothing is chosen by it.
        write_docs(self.corpus("few"), sample(self.corpus("weak"), 10, 0)[0])


def without_missing(first: Path, second: Path) -> Iterator[Doc]:
    """The Docs of a corpus where tokens are missing that are missing in another one.

    first (Path): The corpus.
    second (Path): The other one, with the same Docs.
    YIELDS (Doc): The Docs.
    """
    for doc, other in zip(read_docs(first, Vocab()), read_docs(second, Vocab()), strict=True):
        missing = [doc[token.i : token.i + 1] for token in other if token.ent_iob == 0]
        doc.set_ents([], missing=missing, default="unmodified")
        yield doc


if __name__ == "__main__":
    methods = "match,distant_ce,single,wo_self_training,wo_augmentation,supervised"
    parser = options(Roster, __doc__, dataset="conll03:kb", methods=methods, steps=600)
    add_encoder(parser)
    parser.add_argument("--masked-lm", default="none", help="name or folder of an encoder with its head")
    parser.add_argument("--train", type=int, default=2000, help="training sentences; 0: all")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--self-training-steps", type=int, default=300)
    main(Roster, parse(parser))
