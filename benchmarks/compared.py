"""This package beside what else a spaCy user may take, on the same files and test sets.

    nice -n 10 python benchmarks/compared.py --data DIR [--python skweak=PYTHON ...] [--model en_core_web_md=FOLDER ...]

Files are those of best.py with 250 gold sentences. Every peer runs in a process of its own (peers.py), with the Python
of its environment where `--python` gives one. Rows go to docs/evidence/compared.jsonl; a peer whose Python or model is
not given is left out, which is printed. What a project packages is scored by best.py; `--projects` (its `--work`) gives
its speed and size. `--source` trains the project of CoNLL-2003 with `en_core_web_md` as a further source.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import best
import best_page
import weak_labels
from common import EVIDENCE, ROOT, Cost, Evidence, gold_against_weak, versions
from spacy.vocab import Vocab

from spacy_weakner.conversion.convert import convert
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import read_docs
from spacy_weakner.files import write_text
from spacy_weakner.labeling.aggregate import aggregate
from spacy_weakner.pipelines import blank_pipeline
from spacy_weakner.project.new import init_project
from spacy_weakner.project.selection import Selection
from spacy_weakner.scores import Counts, count_matches

GOLD, SEED = 250, 0
ROWS = EVIDENCE / "compared.jsonl"
COLUMNS = ("bc5cdr-half", "conll03", "bc5cdr-chem")
WEAK = ("bc5cdr", "conll03")
# Of OntoNotes, as in en_core_web_md, in the types of CoNLL-2003; dates, amounts and the like are none of these.
ONTONOTES = {"PERSON": "PER", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC"}
ONTONOTES |= dict.fromkeys(("NORP", "EVENT", "PRODUCT", "WORK_OF_ART", "LANGUAGE", "LAW"), "MISC")
SOURCE = "spacy_weakner: project, with `en_core_web_md` as a source"


class Peer(NamedTuple):
    """What is compared.

    label (str): How the page calls it.
    columns (Tuple[str, ...]): Where it is run.
    python (str): Name of its environment; empty: the one that this runs in.
    names (Optional[Dict[str, str]]): Names of its labels here, for a model that is given as a folder.
    """

    label: str
    columns: Tuple[str, ...] = COLUMNS
    python: str = ""
    names: Optional[Dict[str, str]] = None


PEERS = {
    "packaged": Peer("spacy_weakner: project"),
    "gazetteer_ruler": Peer("spacy_weakner: `gazetteer_ruler`, the list alone"),
    "entity_ruler": Peer("spaCy: `entity_ruler`, the list alone"),
    "edsnlp": Peer("EDS-NLP: `eds.matcher`, the list alone", python="edsnlp"),
    "edsnlp_crf": Peer("EDS-NLP: `eds.ner_crf` over MiniLM, gold alone", ("bc5cdr-half",), "edsnlp", names={}),
    "ner": Peer("spaCy: `ner`, gold alone"),
    "ruler_and_ner": Peer("spaCy: `entity_ruler`, then `ner`"),
    "en_core_web_md": Peer("spaCy: `en_core_web_md`", ("conll03",), names=ONTONOTES),
    "en_chem_ner": Peer("`en-chem-ner`", ("bc5cdr-chem",), names={"CHEMICAL": "Chemical"}),
    "skweak": Peer("skweak: HMM, sentence by sentence", (), python="skweak"),
    "skweak_documents": Peer("skweak: HMM, ten sentences a document", (), python="skweak"),
    "snorkel": Peer("Snorkel: LabelModel", (), python="snorkel"),
}


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH", help="Python of a peer")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=PATH", help="folder of a pipeline")
    parser.add_argument("--projects", type=Path, help="--work of best.py, for speed and size of what it has packaged")
    parser.add_argument("--source", action="store_true", help="train the project with en_core_web_md as a source")
    parser.add_argument("--work", type=Path, default=ROOT / "corpus" / "compared")
    parser.add_argument("--render", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    pythons, models = (dict(pair.split("=", 1) for pair in pairs) for pairs in (arguments.python, arguments.model))
    if not arguments.render:
        for column in COLUMNS:
            run_column(column, pythons, models, arguments)
        for dataset in WEAK:
            combine(dataset, pythons, arguments)
        if arguments.source and not has("conll03", SOURCE):
            train_with_source(Path(models["en_core_web_md"]).absolute(), arguments)
    write_text(EVIDENCE / "compared.md", page(read()))


def run_column(column: str, pythons: Dict[str, str], models: Dict[str, str], arguments: argparse.Namespace) -> None:
    """All peers on the files of a column."""
    folder = (arguments.work / column).absolute()
    files, _, _ = best.make_files(arguments.data, column, GOLD, SEED, folder)
    # CoNLL-2003 is the one that is not split at every punctuation mark.
    tokenizer = None if column == "conll03" else blank_pipeline(*best.language(column)).tokenizer
    listed = best.read_rows(folder, "terms")
    split = [row["term"].split() if tokenizer is None else [t.text for t in tokenizer(row["term"])] for row in listed]
    rows = [{"label": row["label"], "tokens": tokens} for row, tokens in zip(listed, split, strict=True)]
    best.write_rows(files["terms"], rows)
    gold = [[tuple(entity) for entity in row["ents"]] for row in best.read_rows(folder, "test")]
    for name, peer in PEERS.items():
        if column not in peer.columns or has(column, peer.label):
            continue
        model = packaged(column, arguments.projects) if name == "packaged" else models.get(name)
        if model is None and (name == "packaged" or peer.names is not None):
            print(f"{column}: {peer.label} left out, there is no --{'projects' if name == 'packaged' else 'model'}")
            continue
        more = [] if model is None else [str(model), *([json.dumps(peer.names)] if peer.names else [])]
        run_peer(column, name, folder, gold, pythons, more)


def packaged(column: str, projects: Optional[Path]) -> Optional[Path]:
    """The pipeline that a project of best.py has packaged, if it is there."""
    if projects is None:
        return None
    project = best.work_folder(projects, column, GOLD, SEED, "linear") / "project"
    path = project / "training" / "selection.json"
    if not path.exists():
        return None
    selection = Selection.load(path)
    return next(Path(each.path) for each in selection.candidates if each.name == selection.best)


def run_peer(
    dataset: str,
    name: str,
    folder: Path,
    gold: List[Any],
    pythons: Dict[str, str],
    more: Sequence[str] = (),
    label: str = "",
    train_cpu: float = 0.0,
) -> None:
    """One peer in a process of its own, and its row."""
    peer = PEERS[name]
    if peer.python and peer.python not in pythons:
        print(f"{dataset}: {peer.label} left out, there is no --python {peer.python}=PATH")
        return
    python = pythons[peer.python] if peer.python else sys.executable
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "" if peer.python else str(ROOT)}
    command = [python, str(Path(__file__).with_name("peers.py")), name, str(folder), *more]
    with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT, env=environment)
    found = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    entities = [[tuple(entity) for entity in sentence] for sentence in found["entities"]]
    words = sum(len(row["tokens"]) for row in best.read_rows(folder, "sources" if not peer.columns else "test"))
    speed = words / max(found["predict_cpu"], 1e-9)
    counts = count_matches(zip(gold, entities, strict=True))[0]
    add(dataset, label or peer.label, counts, train_cpu or found["train_cpu"], speed, found["mb"], found["versions"])


def combine(dataset: str, pythons: Dict[str, str], arguments: argparse.Namespace) -> None:
    """What combines weak labels of several sources, on those of weak_labels.py: all training sentences."""
    folder = weak_labels.prepare(arguments.data / dataset, (arguments.work / "weak" / dataset).absolute())
    docs = list(read_docs(folder / "sources.spacy", Vocab()))
    groups = {name: weak.weak_group(name) for name in weak_labels.SOURCES}
    best.write_rows(
        folder / "sources.jsonl",
        [
            {
                "tokens": [token.text for token in doc],
                "sources": {name: weak.group_entities(doc, group) for name, group in groups.items()},
            }
            for doc in docs
        ],
    )
    scored = f"{dataset}-train"
    for method in ("majority", "label_model"):
        label = f"spacy_weakner: `{method}`"
        if not has(scored, label):
            start, combined = Cost.now(), folder / f"again-{method}.spacy"
            order = list(weak_labels.SOURCES)
            aggregate(folder / "sources.spacy", combined, method=method, sources=order, unmatched="outside")
            took = Cost.since(start).cpu_seconds
            add(scored, label, gold_against_weak(combined)[0], took, 0.0, 0.0, versions())
    gold = [weak.doc_entities(doc) for doc in docs]
    for name in ("skweak", "skweak_documents", "snorkel"):
        if not has(scored, PEERS[name].label):
            run_peer(scored, name, folder, gold, pythons)


def train_with_source(model: Path, arguments: argparse.Namespace) -> None:
    """The project of CoNLL-2003, with the entities of a pipeline as a source beside the list."""
    folder = (arguments.work / "source").absolute()
    files, test, _ = best.make_files(arguments.data, "conll03", GOLD, SEED, folder / "files")
    tokens = dict(zip(("lang", "tokenizer"), best.language("conll03"), strict=True))
    convert(test, folder / "test.spacy", overwrite=True, **tokens)  # type: ignore[arg-type]
    files["sources"] = folder / "sources.cfg"
    write_text(files["sources"], f'[sources.md]\npipeline = "{model}"\nlabels = {json.dumps(ONTONOTES)}\n')
    start = Cost.now()
    if not (folder / "project").exists():
        init_project(folder / "project", size="linear", **tokens, **files)  # type: ignore[arg-type]
    best.run_project(folder)
    took = Cost.since(start).cpu_seconds
    packaged = Selection.load(folder / "project" / "training" / "selection.json").selected.path
    gold = [[tuple(entity) for entity in row["ents"]] for row in best.read_rows(folder / "files", "test")]
    write_text(folder / "test.jsonl", test.read_text(encoding="utf-8"))
    run_peer("conll03", "packaged", folder, gold, {}, [str(packaged)], label=SOURCE, train_cpu=took)


def add(dataset: str, peer: str, counts: Counts, train_cpu: float, speed: float, mb: float, versions: Any) -> None:
    """Print a row, and append it."""
    row = {
        "dataset": dataset,
        "peer": peer,
        "p": round(counts.precision, 2),
        "r": round(counts.recall, 2),
        "f1": round(counts.f1, 2),
        "train_cpu_seconds": round(train_cpu, 1),
        "words_per_cpu_second": round(speed),
        "mb": round(mb, 1),
        "versions": versions,
    }
    print(row, flush=True)
    with ROWS.open("a", encoding="utf-8") as file_:
        file_.write(json.dumps(row) + "\n")


def read() -> List[Dict[str, Any]]:
    """RETURNS (List[Dict[str, Any]]): All rows."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()] if ROWS.exists() else []


def has(dataset: str, peer: str) -> bool:
    """Whether a row is there."""
    return any((row["dataset"], row["peer"]) == (dataset, peer) for row in read())


def page(rows: List[Dict[str, Any]]) -> str:
    """Fill the page."""
    text = (EVIDENCE / "compared.template.md").read_text(encoding="utf-8")
    for column in COLUMNS:
        found = {row["peer"]: row for row in rows if row["dataset"] == column}
        text = text.replace(f"{{{column}}}", table({**found, **project_row(column, found)}))
        for name, peer in PEERS.items():
            if peer.label in found:
                text = text.replace(f"{{{name}}}", " | ".join(speed_and_size(found[peer.label])))
    return text.replace("{weak}", weak_table(rows))


def project_row(column: str, found: Dict[str, Dict[str, Any]]) -> Dict[str, Dict[str, Any]]:
    """The project as best.py has scored it, with the speed and size that were measured here."""
    label = PEERS["packaged"].label
    identity = {"dataset": column, "encoder": "linear", "strong": GOLD, "seed": SEED, "method": best_page.BEST}
    for row in Evidence(EVIDENCE / "best.jsonl").rows():
        if identity.items() <= row.items():
            scores = {key: row[key] for key in ("p", "r", "f1")}
            return {label: {**found.get(label, {}), **scores, "train_cpu_seconds": row["cpu_seconds"]}}
    return {}


def table(found: Dict[str, Dict[str, Any]]) -> str:
    """Peers on a column, the best F1 first."""
    heads = ("", "P", "R", "F1", "training, CPU s", "words per CPU s", "MB")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for peer, row in sorted(found.items(), key=lambda item: -item[1]["f1"]):
        trained = f"{row['train_cpu_seconds']:.0f}" if row["train_cpu_seconds"] else "-"
        scores = [f"{row[key]:.1f}" for key in ("p", "r", "f1")]
        lines.append(f"| {' | '.join([peer, *scores, trained, *speed_and_size(row)])} |")
    return "\n".join(lines)


def speed_and_size(row: Dict[str, Any]) -> List[str]:
    """Two cells, empty where they were not measured."""
    return [f"{row['words_per_cpu_second']:,}", f"{row['mb']:.1f}"] if "mb" in row else ["", ""]


def weak_table(rows: List[Dict[str, Any]]) -> str:
    """What combines weak labels: P, R and F1 of each data set, and CPU seconds."""
    heads = ["", *(f"{dataset}: {head}" for dataset in WEAK for head in ("P", "R", "F1", "CPU s"))]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    found = {(row["peer"], row["dataset"]): row for row in rows}
    peers = {peer: row["f1"] for (peer, dataset), row in found.items() if dataset == f"{WEAK[0]}-train"}
    for peer in sorted(peers, key=lambda peer: -peers[peer]):
        cells = [peer]
        for dataset in WEAK:
            row = found.get((peer, f"{dataset}-train"))
            keys = ("p", "r", "f1", "train_cpu_seconds")
            cells += [f"{row[key]:.1f}" for key in keys] if row else [""] * len(keys)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
