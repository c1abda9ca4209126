"""The frame of the benchmarks of methods: options, folders, rows and the page; see `Experiment`."""

import argparse
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type

from common import (
    BILSTM,
    EVIDENCE,
    ROOT,
    Cost,
    Evidence,
    Run,
    config_file,
    encoder_name,
    evaluate,
    find,
    gold_against_weak,
    sample,
    table,
    train,
    write_page,
)
from spacy.cli._util import parse_config_overrides

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.runs.config import SEEDS
from spacy_weakner.scores import Counts
from spacy_weakner.ty import PRECISIONS

TOKENIZER = "spacy_weakner.WordTokenizer.v1"
N_DEV = 300
MATCH = "match"
STATIC = "static"
NO_TRANSFORMERS = ("cnn", "bilstm", STATIC)
# Matches, what the trainings took, words per second.
Score = Tuple[Counts, Cost, float]


def options(experiment: Type["Experiment"], description: Optional[str], **defaults: Any) -> argparse.ArgumentParser:
    """The options of all benchmarks.

    experiment (Type[Experiment]): The benchmark.
    description (Optional[str]): Text of the help.
    defaults (Any): Defaults of `dataset`, `methods` and `steps`.
    RETURNS (argparse.ArgumentParser): The parser, to add others.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset")
    parser.add_argument(
        "--output", type=Path, default=EVIDENCE, help="folder for rows and page: needed for a data set of your own"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / experiment.benchmark)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--methods")
    parser.add_argument("--steps", type=int, help="updates of a training, where no other option says it")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="another setting of all trainings"
    )
    parser.add_argument("--dev", action="store_true", help="score on dev instead of test, and keep no rows: to tune")
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.set_defaults(**defaults)
    return parser


def add_encoder(parser: argparse.ArgumentParser) -> None:
    """Add the options of the encoder."""
    parser.add_argument("--encoder", default="cnn", help="cnn, bilstm, static, or name or folder of a Transformer")
    parser.add_argument(
        "--pieces", type=Path, help="for static: the folder that 'spacy weakner encoder distill' has made"
    )
    parser.add_argument("--label", help="name of the encoder in the rows (default: from its path)")
    parser.add_argument("--precision", choices=PRECISIONS, help="of a Transformer's trainings: see MatmulPrecision")


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of this call.

    parser (argparse.ArgumentParser): The parser.
    RETURNS (argparse.Namespace): The options.
    """
    arguments = parser.parse_args()
    for setting in arguments.set:
        name, equals, _ = setting.partition("=")
        if not equals or name in SEEDS:
            raise SystemExit(f"--set {setting}: NAME=VALUE is wanted, and seeds are those of --seeds")
    if arguments.set and not (arguments.dev or arguments.label or arguments.render):
        raise SystemExit("rows do not tell what was --set: give --dev, which keeps none, or a --label of their own")
    return arguments


def load_weights(first: Path, components: Dict[str, List[str]]) -> Dict[str, Any]:
    """A setting of `initialize.after_init`.

    first (Path): The earlier pipeline.
    components (Dict[str, List[str]]): Parts to load by component.
    RETURNS (Dict[str, Any]): `spacy_weakner.LoadWeights.v1`, as in a config.
    """
    return {"@callbacks": "spacy_weakner.LoadWeights.v1", "path": str(first), "components": components}


class Experiment(ABC):
    """All methods with one seed, on one data set. What methods have in common is trained once.

    benchmark (str): Name of the evidence and of the page.
    methods (Sequence[str]): All methods, in their order on the page. "match" are the weak labels themselves, the same
        for every encoder and seed.
    retired (Sequence[str]): Those of them that the package has no more: the page keeps their rows.
    tables (Tuple[str, ...]): Keys of which each combination has a table of its own on the page.
    corpora_in, models_in (str): Folder of the corpora in that of the work, and of the trainings in that of the corpora;
        the options fill in their values, and those of the encoder and the preset are the names in the rows.

    arguments (argparse.Namespace): The options.
    seed (int): Seed of what is drawn, and of the trainings.
    evidence (Evidence): Where the rows go.
    """

    benchmark: str
    methods: Sequence[str]
    retired: Sequence[str] = ()
    tables: Tuple[str, ...] = ("dataset", "encoder", "preset")
    corpora_in: str = "{dataset}/{preset}{train}"
    models_in: str

    def __init__(self, arguments: argparse.Namespace, seed: int, evidence: Evidence) -> None:
        self.arguments = arguments
        self.seed = seed
        self.evidence = evidence
        self.split = "dev" if arguments.dev else "test"
        self.precision: Optional[str] = getattr(arguments, "precision", None)
        names = [arguments.label or encoder_name(arguments.encoder), self.precision]
        self.encoder = "-".join(filter(None, names))
        sizes = {STATIC: STATIC, **dict.fromkeys(("cnn", "bilstm"), "cnn")}
        self.size = sizes.get(arguments.encoder, "transformer")
        name, _, self.source = arguments.dataset.partition(":")
        self.data = arguments.data / name
        dataset = arguments.dataset.replace(":", "-")
        values = {**vars(arguments), "dataset": dataset, "encoder": self.encoder, "preset": self.preset}
        self.base = arguments.work / dataset
        self.folder = arguments.work / self.corpora_in.format(**values) / f"seed{seed}"
        # What was set by hand comes before all settings; the values are read as those of the command line are.
        self.tuned = parse_config_overrides([f"--{setting}" for setting in arguments.set], env_var=None)
        self.models = self.folder / self.models_in.format(**values)
        if self.tuned:
            self.models /= "-".join(setting.replace("/", "_") for setting in arguments.set)

    @property
    def preset(self) -> str:
        """RETURNS (str): "quick" on a part of the sentences, "full" on all."""
        return "quick" if self.arguments.train else "full"

    def run(self) -> None:
        """Run the methods whose rows are missing."""
        if not (self.folder / "done").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self.make_corpora()
            (self.folder / "done").touch()
        for name in self.arguments.methods.split(","):
            run = self.row(name)
            score = None if self.evidence.has(run) else self.score(name)
            if score is not None:
                self.evidence.add(run, *score)

    @abstractmethod
    def make_corpora(self) -> None:
        """Make the corpora of this seed."""

    @abstractmethod
    def sizes(self, name: str) -> Tuple[int, int]:
        """RETURNS (Tuple[int, int]): Number of gold and of weakly labeled sentences that a method is trained on."""

    @abstractmethod
    def train(self, name: str) -> Tuple[Path, Cost]:
        """Train a method, and what it needs.

        name (str): The method.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what its trainings took.
        """

    def row(self, name: str) -> Run:
        """RETURNS (Run): What tells the row of a method from others."""
        encoder, seed = ("-", 0) if name == MATCH else (self.encoder, self.seed)
        return Run(self.benchmark, self.arguments.dataset, encoder, self.preset, name, seed, *self.sizes(name))

    def score(self, name: str) -> Optional[Score]:
        """Train and score a method.

        name (str): The method.
        RETURNS (Optional[Score]): The score; None: there is nothing to score.
        """
        if name == MATCH:
            labeled = self.labeled()
            return None if labeled is None else (gold_against_weak(labeled)[0], Cost(), 0.0)
        model, cost = self.train(name)
        counts, speed = evaluate(model, self.corpus(self.split))
        return counts, cost, speed

    def labeled(self) -> Optional[Path]:
        """RETURNS (Optional[Path]): Corpus where the weak labels are scored against gold."""
        return None

    def corpus(self, name: str) -> Path:
        """RETURNS (Path): A corpus of this seed."""
        return self.folder / f"{name}.spacy"

    def converted(self, name: str, path: Path, **options: Any) -> Path:
        """A file of the data set as a corpus, which is made if it is not there.

        name (str): The file, without its suffixes.
        path (Path): The corpus.
        options (Any): See `convert`.
        RETURNS (Path): `path`.
        """
        if not path.exists():
            convert(find(self.data, name), path, tokenizer=TOKENIZER, **options)
        return path

    def make_dev(self, **options: Any) -> None:
        """Make dev: some sentences, the same for every seed.

        options (Any): See `convert`.
        """
        everything = self.converted("dev", self.corpus("all-dev"), **options)
        write_docs(self.corpus("dev"), sample(everything, N_DEV, 0)[0])

    def settings(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What all trainings share but for the seed, by dotted name."""
        return {"nlp.tokenizer.@tokenizers": TOKENIZER, "training.max_steps": self.arguments.steps}

    def with_encoder(self, tok2vec: str) -> Dict[str, Any]:
        """Settings that put the encoder into a config.

        tok2vec (str): Dotted name of the encoder in configs of CNNs.
        RETURNS (Dict[str, Any]): The settings.
        """
        if self.arguments.encoder == "bilstm":
            vectors = getattr(self.arguments, "vectors", None)
            embed = {**BILSTM["embed"], "include_static_vectors": vectors is not None}
            return {tok2vec: {**BILSTM, "embed": embed}, "paths.vectors": vectors}
        if self.size == STATIC:
            return {"paths.pieces": str(self.arguments.pieces)}
        if self.size == "cnn":
            return {}
        return {"paths.transformer": self.arguments.encoder, "initialize.before_init.precision": self.precision}

    def fit(
        self,
        recipe: str,
        name: str,
        corpus: Optional[Path],
        settings: Dict[str, Any],
        product: str = "model-best",
        size: Optional[str] = None,
    ) -> Tuple[Path, Cost]:
        """One training, if it is not there.

        recipe (str): The recipe of the config.
        name (str): Folder of the training.
        corpus (Optional[Path]): What it learns from, with dev beside it; None: what the settings say.
        settings (Dict[str, Any]): Further settings; they come before all others.
        product (str): "model-best" or "model-last".
        size (Optional[str]): Size of the encoder; None: that of the experiment.
        RETURNS (Tuple[Path, Cost]): The pipeline, and what it took.
        """
        paths = {} if corpus is None else {"paths.train": str(corpus), "paths.dev": str(self.corpus("dev"))}
        values = {**self.settings(), "system.seed": self.seed, **paths, **settings, **self.tuned}
        output, cost = train(config_file(recipe, size or self.size), self.models / name, values)
        return output / product, cost

    @classmethod
    def page(cls, rows: List[Dict[str, Any]]) -> str:
        """Fill the page, and draw its plots.

        rows (List[Dict[str, Any]]): All rows.
        RETURNS (str): The page.
        """
        return write_page(cls.benchmark, rows, cls.tables, list(cls.methods), cls.on_train)

    @staticmethod
    def on_train(row: Dict[str, Any]) -> bool:
        """RETURNS (bool): Whether a row was scored on train."""
        return False


def main(experiment: Type[Experiment], arguments: argparse.Namespace) -> None:
    """Run what is missing and render the page.

    experiment (Type[Experiment]): The benchmark.
    arguments (argparse.Namespace): The options.
    """
    unknown = sorted(set(arguments.methods.split(",")) - {*experiment.methods}.difference(experiment.retired))
    if unknown:
        raise SystemExit(f"no methods of {experiment.benchmark}: {', '.join(unknown)}")
    if arguments.data is None and not arguments.render:
        raise SystemExit("--data says where the data sets are")
    if getattr(arguments, "precision", None) and arguments.encoder in NO_TRANSFORMERS:
        raise SystemExit("--precision is for Transformers")
    evidence = Evidence(arguments.output / f"{experiment.benchmark}.jsonl", dev=arguments.dev)
    if not arguments.dev and not arguments.render and arguments.output == EVIDENCE:
        known = sorted({row["dataset"] for row in evidence.rows()})
        if arguments.dataset not in known:
            raise SystemExit(
                f"no rows of '{arguments.dataset}' in docs/evidence ({', '.join(known)}): give --output DIR"
            )
    arguments.output.mkdir(parents=True, exist_ok=True)
    if not arguments.render:
        for seed in map(int, arguments.seeds.split(",")):
            experiment(arguments, seed, evidence).run()
    if not arguments.dev:
        rows, keys = evidence.rows(), (*experiment.tables, "method")
        plain_page = f"# {experiment.benchmark}\n\n{table(rows, keys, list(experiment.methods))}\n"
        page = experiment.page(rows) if arguments.output == EVIDENCE else plain_page
        (arguments.output / f"{experiment.benchmark}.md").write_text(page, encoding="utf-8")
