"""A million terms: the gazetteer_ruler against spaCy's PhraseMatcher and EntityRuler, in one run on one machine.

    python benchmarks/gazetteer.py --terms gazetteer.jsonl.gz --text unlabeled.jsonl.gz [--sentences 100000]
    python benchmarks/gazetteer.py --terms ... --text ... --shards [--copies 8]
    python benchmarks/gazetteer.py --terms ... --text ... --ids [--before CHECKOUT]

`--text` is JSONL with "tokens". Every engine runs in a process of its own, so that its memory can be told. All see the
same tokenized Docs and the same tokenized terms; their candidates are compared one by one. `--shards` labels the text,
repeated with variation, as raw text in shards, once undisturbed and once killed three times, and compares the bytes.
`--ids` compares the table and its matches without ids and with them (three terms each), and those of an older checkout.
Rows go to docs/evidence/gazetteer.jsonl, and docs/evidence/gazetteer.md is written anew.
"""

import argparse
import gzip
import hashlib
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy
import spacy
from common import EVIDENCE, ROOT, versions
from spacy.language import Language
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_weakner.gazetteer_ruler.columns import ColumnBuilder
from spacy_weakner.gazetteer_ruler.component import GazetteerRuler
from spacy_weakner.gazetteer_ruler.table import TermTable
from spacy_weakner.gazetteer_ruler.terms import read_terms
from spacy_weakner.runtime.hashes import hash_path

TOKENIZER = "spacy_weakner.WordTokenizer.v1"
ENGINES = ("gazetteer_ruler", "phrase_matcher", "entity_ruler")
BLOCK = 10_000


def main() -> None:
    """Run the engines one after another, and render the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terms", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--attrs", default="ORTH,LOWER")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--shards", action="store_true")
    parser.add_argument("--ids", action="store_true")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "gazetteer")
    parser.add_argument("--render", action="store_true", help="only write the page")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--attr", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        print(json.dumps(PARTS[arguments.part](arguments)))
        return
    rows = EVIDENCE / "gazetteer.jsonl"
    if not arguments.render:
        run = run_shards if arguments.shards else run_ids if arguments.ids else run_engines
        found = run(arguments)
        kept = [row for row in read_rows(rows) if row["benchmark"] != found[0]["benchmark"]]
        rows.write_text("".join(json.dumps(row) + "\n" for row in [*kept, *found]), encoding="utf-8")
    render(read_rows(rows))


def read_rows(path: Path) -> List[Dict[str, Any]]:
    """All rows of an evidence file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def run_engines(arguments: argparse.Namespace) -> List[Dict[str, Any]]:
    """Every engine with every attribute, and whether they find the same."""
    rows = []
    arguments.work.mkdir(parents=True, exist_ok=True)
    for attr in arguments.attrs.split(","):
        for engine in ("table", *arguments.engines.split(",")):
            row = run_part(engine, attr, arguments)
            if engine == "phrase_matcher":
                row["same_candidates"] = same_candidates(arguments.work, attr)
            rows.append({"benchmark": "gazetteer", "engine": engine, "attr": attr, **row, **machine()})
            print(json.dumps(rows[-1]), flush=True)
    row = run_part("pass", "LOWER", arguments)
    rows.append({"benchmark": "gazetteer", "engine": "pass", "attr": "LOWER", **row, **machine()})
    print(json.dumps(rows[-1]), flush=True)
    return rows


def run_ids(arguments: argparse.Namespace) -> List[Dict[str, Any]]:
    """The table and its matches, in turn without ids, with them, and by an older checkout; medians."""
    arguments.work.mkdir(parents=True, exist_ok=True)
    with_ids = arguments.work / "with-ids.jsonl.gz"
    with gzip.open(with_ids, "wt", encoding="utf-8", compresslevel=1) as file_:
        for number, term in enumerate(read_terms(arguments.terms)):
            file_.write(json.dumps({"label": term.label, "term": term.text, "id": f"Q{number // 3}"}) + "\n")
    runs = {"without ids": (arguments.terms, ROOT), "with ids": (with_ids, ROOT)}
    if arguments.before is not None:
        runs["before ids"] = (arguments.terms, arguments.before)
    found: Dict[str, List[Dict[str, Any]]] = {name: [] for name in runs}
    for _ in range(arguments.repeat):
        for name, (terms, root) in runs.items():
            given = argparse.Namespace(**{**vars(arguments), "terms": terms})
            parts = [run_part(part, "LOWER", given, root) for part in ("table", "gazetteer_ruler")]
            found[name].append({**parts[0], **parts[1]})
            print(name, json.dumps(found[name][-1]), flush=True)
    return [
        {
            "benchmark": "gazetteer-ids",
            "list": name,
            "runs": arguments.repeat,
            **{key: median(row[key] for row in rows) for key in rows[0]},
            **machine(),
        }
        for name, rows in found.items()
    ]


def run_part(part: str, attr: str, arguments: argparse.Namespace, root: Path = ROOT) -> Dict[str, Any]:
    """One part in a fresh process, of this checkout or another."""
    command = [sys.executable, str(root / "benchmarks" / "gazetteer.py"), "--part", part, "--attr", attr]
    for name in ("terms", "text", "sentences", "work"):
        command += [f"--{name}", str(getattr(arguments, name))]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise SystemExit(f"{part} {attr} failed:\n{done.stderr[-3000:]}")
    row: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def machine() -> Dict[str, Any]:
    """What the row was measured on."""
    return {"cpu": platform.machine(), "cores": os.cpu_count(), "versions": versions()}


def resident() -> float:
    """Resident memory of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def tokenizer_only() -> Language:
    """The pipeline that tokenizes the terms like the text."""
    return spacy.blank("en", config={"nlp": {"tokenizer": {"@tokenizers": TOKENIZER}}})


def sentences(path: Path, n: int) -> Iterator[List[str]]:
    """The tokens of the first sentences."""
    with gzip.open(path, "rt", encoding="utf-8") as file_:
        yield from (json.loads(line)["tokens"] for line in islice(file_, n))


def blocks(nlp: Language, arguments: argparse.Namespace) -> Iterator[List[Doc]]:
    """The text as tokenized Docs, a block at a time."""
    for words in minibatch(sentences(arguments.text, arguments.sentences), size=BLOCK):
        yield [Doc(nlp.vocab, words=w) for w in words]


class Stopwatch:
    """CPU seconds of what is called through it, and the tokens that were there to match."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tokens = 0

    def __call__(self, docs: List[Doc], function: Callable[[], Any]) -> Any:
        started = time.process_time()
        result = function()
        self.seconds += time.process_time() - started
        self.tokens += sum(map(len, docs))
        return result

    @property
    def rate(self) -> int:
        """Tokens per second."""
        return round(self.tokens / self.seconds)


def part_table(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Tokenize and compile the terms, and store them. acronym_length is 0: PhraseMatcher has no such rule."""
    nlp = tokenizer_only()
    strings = len(nlp.vocab.strings)
    ruler: Any = nlp.add_pipe("gazetteer_ruler", config={"attr": arguments.attr, "acronym_length": 0})
    started = time.process_time()
    ruler.initialize(lambda: [], nlp=nlp, terms=lambda: read_terms(arguments.terms))
    total = time.process_time() - started
    seconds = []
    for _ in range(3):
        started = time.process_time()
        TermTable.build(ruler._table.columns, ruler._settings())
        seconds.append(time.process_time() - started)
    started = time.process_time()
    ruler.to_disk(arguments.work / f"table-{arguments.attr}")
    return {
        "terms": len(ruler._table.columns),
        "tokenize_and_build_s": round(total, 2),
        "build_s": round(median(seconds), 2),
        "store_s": round(time.process_time() - started, 2),
        "file_mb": round((arguments.work / f"table-{arguments.attr}" / "terms.safetensors").stat().st_size / 1e6, 1),
        "new_strings": len(nlp.vocab.strings) - strings,
    }


def part_gazetteer_ruler(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Load the table and match."""
    nlp = tokenizer_only()
    TermTable.build(ColumnBuilder().columns(), GazetteerRuler(nlp.vocab)._settings())  # what is used once is loaded
    before = resident()
    started = time.process_time()
    ruler = GazetteerRuler(nlp.vocab, attr=arguments.attr, acronym_length=0)
    ruler.from_disk(arguments.work / f"table-{arguments.attr}")
    load = time.process_time() - started
    loaded = resident() - before
    matched, written = Stopwatch(), Stopwatch()
    found: List[Tuple[numpy.ndarray, ...]] = []
    number, used = 0, loaded
    for docs in blocks(nlp, arguments):
        held = resident()
        results = matched(docs, lambda: [ruler.match_batch(part) for part in minibatch(docs, size=1000)])  # noqa: B023
        used += max(0.0, resident() - held)
        for part in results:
            labels = ruler._table.concepts.labels[part.concepts]
            found.append((part.sequences + number, part.starts, part.ends, labels))
            number += 1000
        written(docs, lambda: [None for _ in ruler.pipe(docs)])  # noqa: B023
    names = ruler._table.concepts.names
    columns = [numpy.concatenate(column) for column in zip(*found, strict=True)]
    store(arguments, "gazetteer_ruler", columns[0], columns[1], columns[2], columns[3], names)
    return {
        "load_s": round(load, 3),
        "memory_mb": round(used),
        "match_tokens_per_s": matched.rate,
        "write_tokens_per_s": written.rate,
        "candidates": len(columns[0]),
    }


def part_phrase_matcher(arguments: argparse.Namespace) -> Dict[str, Any]:
    """spaCy's PhraseMatcher with the same terms."""
    nlp = tokenizer_only()
    before, started = resident(), time.process_time()
    matcher = PhraseMatcher(nlp.vocab, attr=arguments.attr)
    labels: Dict[str, List[str]] = {}
    for term in read_terms(arguments.terms):
        labels.setdefault(term.label, []).append(term.text)
    for label, texts in labels.items():
        for block in minibatch(texts, size=2000):
            # White space tokens inside a term are dropped, as the gazetteer_ruler does.
            terms = ([token.text for token in nlp.make_doc(text) if not token.is_space] for text in block)
            matcher.add(label, [Doc(nlp.vocab, words=words) for words in terms if words])
        texts.clear()
    build = time.process_time() - started
    memory = resident() - before
    names = sorted(labels)
    numbers = {nlp.vocab.strings[name]: i for i, name in enumerate(names)}
    watch = Stopwatch()
    rows: List[Tuple[int, int, int, int]] = []
    number = 0
    for docs in blocks(nlp, arguments):
        for matches in watch(docs, lambda: [matcher(doc) for doc in docs]):  # noqa: B023
            rows.extend((number, start, end, numbers[key]) for key, start, end in matches)
            number += 1
    columns = numpy.asarray(rows, dtype="int64").T
    store(arguments, "phrase_matcher", columns[0], columns[1], columns[2], columns[3], names)
    return {
        "tokenize_and_build_s": round(build, 2),
        "memory_mb": round(memory),
        "match_tokens_per_s": watch.rate,
        "candidates": len(rows),
    }


def part_entity_ruler(arguments: argparse.Namespace) -> Dict[str, Any]:
    """spaCy's EntityRuler with the same terms; it keeps the longest matches only."""
    nlp = tokenizer_only()
    before, started = resident(), time.process_time()
    ruler: Any = nlp.add_pipe("entity_ruler", config={"phrase_matcher_attr": arguments.attr})
    for block in minibatch(read_terms(arguments.terms), size=50_000):
        ruler.add_patterns([{"label": term.label, "pattern": term.text} for term in block])
    build = time.process_time() - started
    memory = resident() - before
    watch = Stopwatch()
    entities = 0
    for docs in blocks(nlp, arguments):
        watch(docs, lambda: [ruler(doc) for doc in docs])  # noqa: B023
        entities += sum(len(doc.ents) for doc in docs)
    return {
        "tokenize_and_build_s": round(build, 2),
        "memory_mb": round(memory),
        "write_tokens_per_s": watch.rate,
        "entities": entities,
    }


def part_pass(arguments: argparse.Namespace) -> Dict[str, Any]:
    """Raw text through a pipeline with spaCy's English tokenizer, without and with the gazetteer_ruler."""
    texts = [" ".join(words) for words in sentences(arguments.text, arguments.sentences // 2)]
    plain, labeling = spacy.blank("en"), spacy.blank("en")
    ruler: Any = labeling.add_pipe("gazetteer_ruler", config={"attr": arguments.attr, "acronym_length": 0})
    ruler.from_disk(arguments.work / f"table-{arguments.attr}")
    seconds: Dict[str, List[float]] = {"plain": [], "labeling": []}
    tokens = 0
    for _ in range(5):
        for name, nlp in (("plain", plain), ("labeling", labeling)):
            started, tokens = time.process_time(), 0
            for block in minibatch(texts, size=BLOCK):
                with nlp.memory_zone():
                    tokens += sum(map(len, nlp.pipe(block)))
            seconds[name].append(time.process_time() - started)
    plain_s, labeling_s = (median(values) for values in seconds.values())
    return {
        "tokens": tokens,
        "tokenize_tokens_per_s": round(tokens / plain_s),
        "pass_tokens_per_s": round(tokens / labeling_s),
        "extra_percent": round(100 * (labeling_s / plain_s - 1), 1),
    }


PARTS: Dict[str, Callable[[argparse.Namespace], Dict[str, Any]]] = {
    "table": part_table,
    "gazetteer_ruler": part_gazetteer_ruler,
    "phrase_matcher": part_phrase_matcher,
    "entity_ruler": part_entity_ruler,
    "pass": part_pass,
}


def store(arguments: argparse.Namespace, engine: str, *columns: Any) -> None:
    """Keep the candidates, sorted, for the comparison."""
    *numbers, names = columns
    order = numpy.lexsort(numbers[::-1])
    table = numpy.stack([column[order] for column in numbers])
    numpy.savez(arguments.work / f"{engine}-{arguments.attr}.npz", table=table, names=numpy.asarray(names))


def same_candidates(work: Path, attr: str) -> bool:
    """Whether PhraseMatcher, which has just run, found the same as the gazetteer_ruler before it."""
    paths = [work / f"{name}-{attr}.npz" for name in ("gazetteer_ruler", "phrase_matcher")]
    a, b = (numpy.load(path, allow_pickle=False) for path in paths)
    return a["names"].tolist() == b["names"].tolist() and bool(numpy.array_equal(a["table"], b["table"]))


# A million sentences in shards


def run_shards(arguments: argparse.Namespace) -> List[Dict[str, Any]]:
    """Label raw text in shards with two workers: undisturbed, and killed three times on the way."""
    arguments.work.mkdir(parents=True, exist_ok=True)
    text = arguments.work / "text.txt"
    lines = write_text(arguments, text)
    n_shards = -(-lines // SHARD)
    rows, hashes = [], []
    for name, kills in (("undisturbed", []), ("killed", [n_shards // 4, n_shards // 2, n_shards * 3 // 4])):
        with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
            output = Path(folder) / "labeled"
            started = time.perf_counter()
            memory: List[float] = []
            for kill in [*kills, None]:
                memory += label_until(arguments, text, output, kill)
            seconds = time.perf_counter() - started
            left = [path.name for path in output.rglob("*") if path.suffix not in (".spacy", ".json")]
            hashes.append(hash_path(output))
            third = len(memory) // 3
            rows.append(
                {
                    "benchmark": "gazetteer-shards",
                    "run": name,
                    "sentences": lines,
                    "shards": n_shards,
                    "workers": 2,
                    "kills": len(kills),
                    "seconds": round(seconds, 1),
                    "sentences_per_s": round(lines / seconds),
                    # of the parent and both workers together, while they run
                    "memory_mb_second_third": round(max(memory[third : 2 * third])),
                    "memory_mb_last_third": round(max(memory[2 * third :])),
                    "left_over_files": left,
                    "sha256": hashes[-1],
                    "same_bytes": hashes[-1] == hashes[0],
                    **machine(),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


SHARD = 5000


def write_text(arguments: argparse.Namespace, path: Path) -> int:
    """Raw text: every sentence several times, each time with one word left out and a word that occurs nowhere else."""
    rng = random.Random(0)
    count = 0
    with path.open("w", encoding="utf-8") as file_:
        for copy in range(arguments.copies):
            for words in sentences(arguments.text, 10**9):
                left_out = rng.randrange(len(words))
                kept = [word for i, word in enumerate(words) if i != left_out]
                file_.write(f"{' '.join(kept)} {hashlib.md5(f'{copy} {count}'.encode()).hexdigest()[:10]}\n")
                count += 1
    return count


def label_until(arguments: argparse.Namespace, text: Path, output: Path, kill: Any) -> List[float]:
    """Label until so many shards are finished, then kill all processes; None: to the end.

    RETURNS (List[float]): Resident memory of all processes together in MB, sampled every half second.
    """
    command = [sys.executable, "-m", "spacy_weakner", "label", str(text), str(output), "--terms", str(arguments.terms)]
    command += ["--tokenizer", TOKENIZER, "--workers", "2", "--shard-size", str(SHARD)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    memory = []
    while process.poll() is None:
        memory.append(group_memory(process.pid))
        if kill is not None and len(list(output.glob("*.spacy.json"))) >= kill:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.5)
    if kill is None and process.returncode != 0:
        raise SystemExit(f"label ended with {process.returncode}")
    return memory


def group_memory(group: int) -> float:
    """Resident memory of all processes of a session, in MB; pages that they share count once for each."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == group:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        except (OSError, IndexError):
            continue
    return total


def render(rows: List[Dict[str, Any]]) -> None:
    """Write the page from the rows."""
    page = (EVIDENCE / "gazetteer.template.md").read_text(encoding="utf-8")
    engines = [row for row in rows if row["benchmark"] == "gazetteer" and row["engine"] in ENGINES]
    columns: Tuple[str, ...] = ("attr", "engine", "tokenize_and_build_s", "load_s", "memory_mb", "match_tokens_per_s")
    columns += ("write_tokens_per_s", "candidates", "entities", "same_candidates")
    tables = [row for row in rows if row.get("engine") == "table"]
    compiled = ("attr", "terms", "tokenize_and_build_s", "build_s", "store_s", "file_mb", "new_strings")
    passes = [row for row in rows if row.get("engine") == "pass"]
    ids = [row for row in rows if row["benchmark"] == "gazetteer-ids"]
    id_columns: Tuple[str, ...] = (
        "list",
        "runs",
        "tokenize_and_build_s",
        "build_s",
        "store_s",
        "file_mb",
        "load_s",
        "memory_mb",
    )
    id_columns += ("match_tokens_per_s", "write_tokens_per_s")
    shards = [row for row in rows if row["benchmark"] == "gazetteer-shards"]
    shard_columns: Tuple[str, ...] = ("run", "sentences", "shards", "workers", "kills", "seconds", "sentences_per_s")
    shard_columns += ("memory_mb_second_third", "memory_mb_last_third", "same_bytes")
    pass_columns = ("tokens", "tokenize_tokens_per_s", "pass_tokens_per_s", "extra_percent")
    for name, found, keys in (
        ("engines", engines, columns),
        ("tables", tables, compiled),
        ("pass", passes, pass_columns),
        ("shards", shards, shard_columns),
        ("ids", ids, id_columns),
    ):
        page = page.replace(f"{{{name}}}", markdown(found, keys))
    (EVIDENCE / "gazetteer.md").write_text(page, encoding="utf-8")


def markdown(rows: List[Dict[str, Any]], keys: Tuple[str, ...]) -> str:
    """Rows as a table."""
    lines = ["| " + " | ".join(key.replace("_", " ") for key in keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(cell(row.get(key)) for key in keys) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    """One cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


if __name__ == "__main__":
    main()
