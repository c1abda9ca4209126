"""What is killed: commands over tiny files, each run in a folder of its own beside the folder of inputs."""

import json
import random
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Union

import spacy
from weasel.cli.run import project_run

from spacy_weakner.configs import render_config
from spacy_weakner.corpus import weak
from spacy_weakner.corpus.docbin import write_docs
from spacy_weakner.project.context import ALONE, WITH_LISTS, config_name
from tests.util import crf_pipeline, make_doc, make_examples, train

NAMES, PLACES = ["Anna", "Bob", "Clara", "Bob Smith"], ["Paris", "New York", "Rome"]
TINY = {
    "components.crf_ner.model.tok2vec.embed.width": 16,
    "components.crf_ner.model.tok2vec.encode.width": 16,
    "components.crf_ner.model.tok2vec.encode.depth": 1,
}
Command = Union[List[str], Callable[[], object]]


class Stage(NamedTuple):
    """Something to kill."""

    commands: List[Command]
    before: Callable[[Path], None] = lambda folder: None
    trains: bool = False  # trainings run in this very process, so that none imports everything anew
    alone: bool = False  # only the process itself is killed or interrupted, and those that it has started have to end


def make_inputs(folder: Path) -> None:
    """Write what the stages read."""
    draw = random.Random(0)
    nlp = spacy.blank("xx")
    rows = [_sentence(draw, i) for i in range(120)]
    docs = [make_doc(nlp, text, entities) for text, entities in rows]
    texts = [doc.text for doc in docs]
    (folder / "text.txt").write_text("".join(f"{text}\n" for text in texts))
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (folder / "terms.csv").write_text("label,term\nPER,Anna\nPER,Bob\nPER,Clara\nLOC,Paris\nLOC,Rome\n")
    link = "[[Anna]] met [[Bob (name)|Bob]] in [[Paris]] and [[Rome]] on day {}. "
    (folder / "pages.wiki").write_text("\n\n".join(link.format(i) * 3 for i in range(150)))
    write_docs(folder / "gold.spacy", docs[:40])
    for name, part in (("gold", docs[40:70]), ("dev", docs[70:100]), ("test", docs[100:])):
        rows_ = [{"tokens": [t.text for t in doc], "ents": weak.doc_entities(doc)} for doc in part]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_))
    for i in range(6):
        own = [make_doc(nlp, text, entities) for text, entities in rows[20 * i : 20 * i + 20]]
        for doc in own:
            weak.set_weak(doc)
            weak.set_spans(doc, weak.weak_group("a"), list(doc.ents), {})
            weak.set_spans(doc, weak.weak_group("b"), list(doc.ents)[:1], {})
        write_docs(folder / "weak" / f"{i}.spacy", own)
    pipeline = crf_pipeline()
    train(pipeline, make_examples(pipeline))
    pipeline.to_disk(folder / "pipeline")
    for recipe in (ALONE, WITH_LISTS):
        path = folder / "configs" / config_name(recipe, "linear")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_config(recipe, "linear", lang="xx"))
    (folder / "crf_ner.cfg").write_text(render_config("crf_ner", "cnn", lang="xx"))


def _sentence(draw: random.Random, i: int) -> "tuple[str, list[tuple[int, int, str]]]":
    name, place = draw.choice(NAMES), draw.choice(PLACES)
    start = len(name.split()) + 2
    text = f"{name} went to {place} on day {i}"
    return text, [(0, len(name.split()), "PER"), (start, start + len(place.split()), "LOC")]


def _earlier(folder: Path) -> None:
    """A corpus of an earlier run, and something else beside it."""
    nlp = spacy.blank("xx")
    for i in range(15):
        write_docs(folder / "out" / f"part-{i:05d}.spacy", [make_doc(nlp, f"old {i}")])
    (folder / "out" / "notes.txt").write_text("mine")


_SHARDS = ["--shard-size", "8"]
_CONVERT = ["convert", "../in/text.jsonl", "out", "--overwrite", "--lang", "xx", *_SHARDS]
_LABEL = ["label", "../in/text.txt", "out", "--terms", "../in/terms.csv", "--lang", "xx", *_SHARDS]
_PREPARE = ["prepare", "out", "--lang", "xx"]
for _name in ("gold", "dev", "test"):
    _PREPARE += [f"--{_name}", f"../in/{_name}.jsonl"]
_PREPARE += ["--text", "../in/text.txt"]
_STEPS = ["--training.max_steps", "4", "--training.eval_frequency", "2"]
_GOLD = ["--paths.train", "../in/gold.spacy"]
_CROSSFIT = ["train", "../in/crf_ner.cfg", "out", "--folds", "2", *_GOLD, *_STEPS]
_ENSEMBLE = ["train", "../in/crf_ner.cfg", "out", "--members", "2", *_GOLD, *_STEPS]
_SWEEP = ["train", "../in/crf_ner.cfg", "out", "--grid", "training.max_steps=2,4", *_GOLD]
_SWEEP += ["--paths.dev", "../in/gold.spacy", "--training.eval_frequency", "2"]
_PACKAGE = ["package", "fit/selection.json", "packages", "--name", "tiny"]
_FIT = ["fit", "corpora", "fit", "--configs", "../in/configs", "--terms", "../in/terms.csv"]
_WHOLE = [
    [*_PREPARE[:1], "corpora", *_PREPARE[2:]],
    ["label", "corpora/annotated/gold.spacy", "corpora/gold-labeled.spacy", *_LABEL[3:7]],
    _FIT,
    _PACKAGE,
]

_TRAIN = "train ../in/crf_ner.cfg --output out --training.max_steps 4 --training.eval_frequency 2 --paths.train"
_TRAIN += " ../in/gold.spacy --paths.dev ../in/gold.spacy"


def _project(folder: Path) -> None:
    command = {"name": "train", "script": [f"python -m spacy {_TRAIN}"], "outputs": ["out/model-last"]}
    project = {"title": "killed", "directories": [], "commands": [command], "workflows": {"all": ["train"]}}
    (folder / "project.yml").write_text(json.dumps(project))


STAGES: Dict[str, Stage] = {
    "convert": Stage([_CONVERT]),
    "convert-again": Stage([_CONVERT], _earlier),
    "convert-file": Stage([["convert", "../in/text.jsonl", "out.jsonl", "--overwrite", "--lang", "xx"]]),
    "anchors": Stage([["anchors", "../in/pages.wiki", "out", "--overwrite", "--min-anchors", "1", "--lang", "xx"]]),
    "label": Stage([_LABEL]),
    "label-workers": Stage([[*_LABEL, "--workers", "2"]], alone=True),
    "aggregate": Stage([["aggregate", "../in/weak", "out", "--method", "label_model"]]),
    "calibrate": Stage(
        [["calibrate", "../in/pipeline", "../in/gold.spacy", "out", "--fit", "bias,temperature", "--overwrite"]]
    ),
    "complete": Stage([["relabel", "complete", "../in/weak", "out", "../in/pipeline", "--soft"]]),
    "clean": Stage([["relabel", "clean", "../in/weak", "out", "../in/pipeline", "--outside", "--list", "list.jsonl"]]),
    "augment": Stage([["relabel", "augment", "../in/weak", "out", "--model", "none"]]),
    "soft": Stage([["relabel", "soften", "../in/weak", "out", "../in/pipeline"]]),
    "prepare": Stage([_PREPARE]),
    "crossfit": Stage([_CROSSFIT], trains=True),
    "ensemble": Stage([_ENSEMBLE], trains=True),
    "sweep": Stage([_SWEEP], trains=True),
    "ensemble-processes": Stage([[*_ENSEMBLE, "--processes", "2"]], alone=True),
    "weasel": Stage([lambda: project_run(Path(), "all")], _project),
    "fit-package": Stage(_WHOLE, trains=True),
}
