"""What the benchmark scripts share: evidence rows that are appended as runs end, and training through the command line.

A row that is there already is skipped, so a script that was stopped goes on where it was.
"""

import gzip
import json
import random
import resource
import time
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from charts import bar_chart
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_weakner.configs import encoder_settings, render_config
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.corpus.weak import GOLD_GROUP, doc_entities, group_entities
from spacy_weakner.evaluation.compare import compare
from spacy_weakner.files import write_text
from spacy_weakner.runs.training import LOG, Training, train_all
from spacy_weakner.scores import Counts, count_matches

ROOT = Path(__file__).parent.parent
EVIDENCE = ROOT / "docs" / "evidence"
PACKAGES = ("spacy_weakner", "spacy", "transformers", "thinc", "torch")
CNN = encoder_settings("cnn")
# An encoder over words, or characters where these are the tokens.
BILSTM: Dict[str, Any] = {
    "@architectures": "spacy_weakner.BiLSTMEncoder.v1",
    "width": 256,
    "depth": 1,
    "embed": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 128,
        "attrs": ["ORTH"],
        "rows": [5000],
        "include_static_vectors": False,
    },
}


class Run(NamedTuple):
    """Identity of one row; the fields are explained in docs/evidence/README.md."""

    benchmark: str
    dataset: str
    encoder: str
    preset: str
    method: str
    seed: int
    strong: int
    weak: int


@dataclass(frozen=True)
class Cost:
    """What a training took.

    seconds (float): Wall clock, start of the process included.
    cpu_seconds (float): Of all processes: these survive a machine that is shared.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """RETURNS (Cost): Of both trainings."""
        return Cost(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)

    @classmethod
    def now(cls) -> "Cost":
        """RETURNS (Cost): What the clocks say, with those of the processes that were started here and have ended."""
        cpu_seconds = time.process_time()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.perf_counter(), cpu_seconds + usage.ru_utime + usage.ru_stime)

    @classmethod
    def since(cls, start: "Cost") -> "Cost":
        """RETURNS (Cost): What has passed since `start`."""
        now = cls.now()
        return cls(now.seconds - start.seconds, now.cpu_seconds - start.cpu_seconds)


class Evidence:
    """Rows of a benchmark, one JSON object a line.

    path (Path): The file.
    dev (bool): Whether the scores are on dev: such rows are printed and not kept, and none is there.
    """

    def __init__(self, path: Path, dev: bool = False) -> None:
        self.path = path
        self.dev = dev

    def rows(self) -> List[Dict[str, Any]]:
        """RETURNS (List[Dict[str, Any]]): All rows."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines() if line.strip()]

    def has(self, run: Run) -> bool:
        """RETURNS (bool): Whether the row is there."""
        return not self.dev and any(run._asdict().items() <= row.items() for row in self.rows())

    def add(self, run: Run, counts: Counts, cost: Cost, words_per_second: float) -> None:
        """Print a row, and append it.

        run (Run): What was run.
        counts (Counts): Matches.
        cost (Cost): What the training took.
        words_per_second (float): Speed of prediction.
        """
        scores = {"p": counts.precision, "r": counts.recall, "f1": counts.f1, **asdict(cost)}
        told = f"P {counts.precision:.1f} R {counts.recall:.1f} F1 {counts.f1:.2f}{' on dev' if self.dev else ''}"
        print(f"{run.dataset} {run.encoder} {run.method} seed {run.seed}: {told}", flush=True)
        if self.dev:
            return
        row = {
            **run._asdict(),
            **{key: round(value, 2) for key, value in scores.items()},
            "words_per_second": round(words_per_second),
            "versions": versions(),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file_:
            file_.write(json.dumps(row) + "\n")


def gold_against_weak(labeled: Path) -> Tuple[Counts, Dict[str, Counts]]:
    """Score the labels in `doc.ents` against the gold that stands beside them.

    labeled (Path): Corpus that `aggregate` wrote from a gold corpus.
    RETURNS (Tuple[Counts, Dict[str, Counts]]): Over all labels, and per label.
    """
    docs = read_docs(labeled, Vocab())
    return count_matches((group_entities(doc, GOLD_GROUP), doc_entities(doc)) for doc in docs)


def versions() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): Versions of the packages that matter."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except ModuleNotFoundError:
            continue
    return found


def config_file(recipe: str, size: str) -> Path:
    """Write a config of the package.

    recipe (str): The recipe.
    size (str): Size of the encoder.
    RETURNS (Path): The file; the same for all runs.
    """
    path = ROOT / "corpus" / "configs" / f"{recipe}.{size}.cfg"
    write_text(path, render_config(recipe, size))
    return path


def train(config: Path, output: Path, overrides: Dict[str, Any]) -> Tuple[Path, Cost]:
    """Train a pipeline, and note what it took; a finished one is not trained again.

    config (Path): The config.
    output (Path): Folder for the pipelines.
    overrides (Dict[str, Any]): Values of the config by dotted name.
    RETURNS (Tuple[Path, Cost]): Folder that holds `model-best` and `model-last`, and what it took.
    """
    start = Cost.now()
    (trained,) = train_all([Training(config, output, overrides)])
    return output, remembered(output / "cost.json", start, trained.skipped)


def remembered(path: Path, start: Cost, skipped: bool) -> Cost:
    """What something took when it was done, which a later run finds done.

    path (Path): Where that is kept.
    start (Cost): When it was begun.
    skipped (bool): Whether it was done already.
    RETURNS (Cost): What it took.
    """
    if skipped and not path.exists():
        raise SystemExit(f"nobody knows what {path.parent} has taken, for there is no {path.name}: remove the folder")
    if not skipped:
        write_text(path, json.dumps(asdict(Cost.since(start))))
    return Cost(**json.loads(path.read_text()))


def dev_scores(output: Path) -> List[Tuple[int, float]]:
    """How a training went.

    output (Path): As `train` gave it.
    RETURNS (List[Tuple[int, float]]): Steps, and F1 on dev in 0..100, as spaCy's logger has printed them.
    """
    lines = (line.split() for line in (output / LOG).read_text(encoding="utf-8").splitlines())
    return [(int(part[1]), float(part[3])) for part in lines if len(part) == 7 and part[0].isdigit()]


def evaluate(model: Path, test: Path) -> Tuple[Counts, float]:
    """Score a pipeline.

    model (Path): The pipeline.
    test (Path): Gold corpus.
    RETURNS (Tuple[Counts, float]): Matches, and words per second.
    """
    (result,) = compare(test, {model.name: model})
    return result.counts, result.words_per_second or 0.0


def own_transformer(name: str) -> Dict[str, Any]:
    """A Transformer that a component has to itself.

    name (str): Name or folder.
    RETURNS (Dict[str, Any]): Its architecture, as in a config.
    """
    return {**encoder_settings("transformer"), "name": name}


def find(data: Path, name: str) -> Path:
    """A JSONL file of the data set, gzipped or not."""
    for suffix in (".jsonl", ".jsonl.gz"):
        if (data / f"{name}{suffix}").exists():
            return data / f"{name}{suffix}"
    raise SystemExit(f"{data} holds no {name}.jsonl or {name}.jsonl.gz")


def encoder_name(encoder: str) -> str:
    """Short name of an encoder: cnn, or what its name or folder ends in.

    encoder (str): As it was given to a script.
    RETURNS (str): The name in the rows.
    """
    return "minilm" if "minilm" in encoder.lower() else Path(encoder).name


def sample(path: Path, n: int, seed: int) -> Tuple[List[Doc], List[Doc]]:
    """Sentences drawn at random.

    path (Path): The corpus.
    n (int): How many; 0: all.
    seed (int): Seed of the draw.
    RETURNS (Tuple[List[Doc], List[Doc]]): Those that were drawn, and the others; both in their order.
    """
    docs = list(read_docs(path, Vocab()))
    chosen = set(random.Random(seed).sample(range(len(docs)), min(n, len(docs))) if n else range(len(docs)))
    return [doc for i, doc in enumerate(docs) if i in chosen], [doc for i, doc in enumerate(docs) if i not in chosen]


@cache
def count(path: Path) -> int:
    """Number of sentences of a corpus, which is read once.

    path (Path): A `.spacy` file.
    RETURNS (int): The number.
    """
    return sum(1 for _ in read_docs(path, Vocab()))


def write_page(
    benchmark: str,
    rows: List[Dict[str, Any]],
    group: Tuple[str, ...],
    methods: List[str],
    on_train: Callable[[Dict[str, Any]], bool] = lambda row: False,
) -> str:
    """Fill the tables of a page and draw their bars.

    benchmark (str): Its name; the page is `<benchmark>.template.md`.
    rows (List[Dict[str, Any]]): Evidence rows.
    group (Tuple[str, ...]): Keys of which each combination has a table of its own, where the page has
        "{value-value-...}". Rows of method "match" have no encoder: they come to all tables of their data set.
    methods (List[str]): Order of the methods.
    on_train (Callable[[Dict[str, Any]], bool]): Whether a row was scored on train: such rows are marked in the tables,
        and left out of the plots.
    RETURNS (str): The page.
    """
    page = (EVIDENCE / f"{benchmark}.template.md").read_text(encoding="utf-8")
    for values in sorted({tuple(row[key] for key in group) for row in rows if row["encoder"] != "-"}):
        shown = [
            row
            for row in rows
            if all(
                row[key] == value or (row["encoder"] == "-" and key in ("encoder", "strong"))
                for key, value in zip(group, values, strict=True)
            )
        ]
        name = "-".join(str(value).replace(":", "-") for value in values)
        if f"{{{name}}}" not in page:
            continue
        several = len({row["weak"] for row in shown if row["weak"]}) > 1 or benchmark == "needle"
        named = [{**row, "method": f"{row['method']} (on train)"} if on_train(row) else row for row in shown]
        order = [name for method in methods for name in (method, f"{method} (on train)")]
        columns = ("method", "weak") if several else ("method",)
        page = page.replace(f"{{{name}}}", table(named, columns, order))
        # Bars show one amount of weak labels: that of most rows.
        amounts = Counter(row["weak"] for row in shown if row["weak"]).most_common(1)
        plain = [row for row in shown if row["weak"] in (0, *(amount for amount, _ in amounts))]
        bars = {m: [row["f1"] for row in plain if row["method"] == m and not on_train(row)] for m in methods}
        bars = {method: found for method, found in bars.items() if found}
        bar_chart(f"{' '.join(map(str, values))}: F1 on test", bars, EVIDENCE / f"{benchmark}-{name}.svg")
    return page


def labels_only(path: Path, target: Path) -> Path:
    """The weak labels of a data set as a file of their own, without the gold that stands beside them.

    path (Path): Gzipped JSONL with `weak_ents`.
    target (Path): The file to write.
    RETURNS (Path): `target`.
    """
    with gzip.open(path, "rt", encoding="utf-8") as given, target.open("w", encoding="utf-8") as file_:
        for line in given:
            row = json.loads(line)
            file_.write(json.dumps({"id": row["id"], "tokens": row["tokens"], "ents": row["weak_ents"]}) + "\n")
    return target


def mean_and_spread(values: List[float]) -> str:
    """RETURNS (str): Mean, and the standard deviation if there are several values."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.1f}"
    spread = (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5
    return f"{mean:.1f} ± {spread:.1f}"


def table(rows: List[Dict[str, Any]], group: Tuple[str, ...], methods: Optional[List[str]] = None) -> str:
    """Render rows as a Markdown table, mean and standard deviation over seeds.

    rows (List[Dict[str, Any]]): Evidence rows.
    group (Tuple[str, ...]): Keys that make up one line.
    methods (Optional[List[str]]): Order of the methods.
    RETURNS (str): The table.
    """
    lines: Dict[Tuple, List[Dict[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[key] for key in group), []).append(row)
    if methods is not None:
        at = group.index("method")
        lines = dict(sorted(lines.items(), key=lambda item: (item[0][:at], methods.index(item[0][at]))))
    numbers = {"seconds": "train s", "cpu_seconds": "CPU s", "words_per_second": "words/s"}
    if not any("cpu_seconds" in row for row in rows):
        del numbers["cpu_seconds"]
    heads = [*group, "P", "R", "F1", *numbers.values(), "seeds"]
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for key, found in lines.items():
        cells = [mean_and_spread([r[n] for r in found]) for n in ("p", "r", "f1")]
        for name in numbers:
            known = all(name in r for r in found)
            cells.append(f"{sum(r[name] for r in found) / len(found):.0f}" if known else "")
        out.append("| " + " | ".join([*map(str, key), *cells, str(len(found))]) + " |")
    return "\n".join(out)
