"""What is fuzzed: per kind a valid set of files, which of them is damaged, and what then reads them.

A new format is one entry in `KINDS`.
"""

import io
import json
from contextlib import redirect_stdout
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, List, Tuple

import spacy
import srsly

from spacy_weakner.project.rules import Facts, Settings

from . import exports, questions
from .kind import OUT, ROWS, Files, Kind, command, function, gold, inside_spacy, jsonl, text
from .mutators import mutate, mutate_binary, mutate_json

# Valid files

CONLL = "-DOCSTART- O\n\nNew B-CITY\nYork I-CITY\nrocks O\n\nAnna B-PER\nx O\n"
TEXT = "New York rocks. Anna took aspirin.\n\nBob met Anna in Paris.\n"
TERMS = {
    "terms.csv": 'label,term\nDRUG,aspirin\nCITY,"New York"\nPER,Anna\n',
    "terms.tsv": "label\tterm\nDRUG\taspirin\nCITY\tNew York\n",
    "terms.jsonl": '{"label": "DRUG", "term": "aspirin"}\n{"label": "CITY", "pattern": [{"LOWER": "new"}]}\n',
    "terms.txt": "aspirin\nNew York\n",
}
PATTERNS = (
    '{"label": "DRUG", "pattern": "aspirin"}\n'
    '{"label": "CITY", "pattern": [{"LOWER": {"IN": ["new"]}}, {"TEXT": {"REGEX": "^Y"}, "OP": "?"}]}\n'
)
SOURCES = (
    '[paths]\nhere = "terms.csv"\n\n[sources.drugs]\nterms = ${paths.here}\n# so\nreliability = 0.9\nmin_length = 2\n'
    'stop = ["x"]\nlabels = {"DRUG": "MED"}\n\n[sources.file]\nfile = "answers.jsonl"\nmisaligned = "drop"\n'
    'complete = true\nmin_score = 0.1\n\n[sources.rules]\npatterns = "patterns.jsonl"\nattr = "LOWER"\n'
)
ANSWERS: List[Dict[str, Any]] = [
    {"id": "s1", "text": "New York rocks .", "spans": [[0, 8, "CITY", 0.9]]},
    {"tokens": ["Anna", "took", "aspirin"], "weak_ents": {"file": [[2, 3, "DRUG"]]}},
    {"text": "Bob met Anna in Paris.", "ents": [{"text": "Anna", "label": "PER"}]},
    {"text": "Bob met Anna in Paris.", "entities": [["Bob", "PER"], {"text": "Anna", "label": "PER"}]},
]
WIKI = "'''Anna''' met [[Bob|Bobby]] in [[Paris]].<ref>x [[y]]</ref>\n* {{t|[[z]]}} & [[Rome]]\n{|\n| a\n|}\n"
DUMP = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"><siteinfo><namespaces><namespace key="6">File'
    "</namespace></namespaces></siteinfo><page><title>A</title><ns>0</ns><revision><text>[[Anna]] met [[Bob]].</text>"
    "</revision></page></mediawiki>"
)


def _labeled(**files: str) -> Callable[[], Files]:
    return lambda: {"gold.spacy": gold(), **text(**files)()}


_ALL_SOURCES = {"sources__cfg": SOURCES, "answers__jsonl": jsonl(ANSWERS), "patterns__jsonl": PATTERNS}
_ALL_SOURCES["terms__csv"] = TERMS["terms.csv"]


@cache
def _folder(make: Callable[[Path], Any]) -> Tuple[Tuple[str, bytes], ...]:
    with TemporaryDirectory() as folder:
        make(Path(folder))
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return tuple((path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths)


def _pipeline(folder: Path) -> None:
    nlp = spacy.blank("xx")
    ruler: Any = nlp.add_pipe("gazetteer_ruler", config={"annotate_ents": True})
    ruler.add_terms({"DRUG": ["aspirin", "big aspirin"], "CITY": ["New York"], "A": ["aspirin", "IBM"]})
    crf: Any = nlp.add_pipe("crf_ner", config={"model": _small_model()})
    crf.add_label("CITY")
    nlp.initialize()
    nlp.to_disk(folder / "nlp")


def _small_model() -> Dict[str, Any]:
    from tests.util import TOK2VEC

    return {"@architectures": "spacy_weakner.CRFTagger.v1", "tok2vec": TOK2VEC}


def _run_pipeline(folder: Path) -> None:
    from spacy_weakner.pipelines import load_pipeline

    nlp = load_pipeline(folder / "nlp")
    for doc in nlp.pipe(["New York rocks, big Aspirin.", "IBM " * 20]):
        assert len(doc)


def _aggregated(folder: Path) -> None:
    (folder / "gold.spacy").write_bytes(gold())
    with redirect_stdout(io.StringIO()):
        _AGGREGATE(folder)


def _made(make: Callable[[Path], Any]) -> Callable[[], Files]:
    return lambda: dict(_folder(make))


# What is within


def _json_inside(random: Random, data: bytes) -> bytes:
    """JSON or msgpack that is sound as such."""
    for load, dump in ((json.loads, json.dumps), (srsly.msgpack_loads, srsly.msgpack_dumps)):
        try:
            found = dump(mutate_json(random, load(data)))
            return found.encode() if isinstance(found, str) else found
        except (ValueError, TypeError, OverflowError):
            continue
    return mutate(random, data)


def _queries(name: str) -> Callable[[Path], Any]:
    from spacy_weakner.mrc_ner.queries import make_queries

    return function(lambda folder: make_queries(folder / name))


def _config(folder: Path) -> None:
    from spacy_weakner.runs.config import flat_config

    flat_config(folder / "c.cfg", {"training.max_steps": 1})


def _selection(folder: Path) -> None:
    from spacy_weakner.project.selection import Selection
    from spacy_weakner.project.selection_report import selection_section

    selection_section(Selection.load(folder / "v.json"))


def _preparation(folder: Path) -> None:
    from spacy_weakner.project.layout import Corpora
    from spacy_weakner.project.prepare import read_preparation

    read_preparation(Corpora(folder))


def _folds(folder: Path) -> None:
    from spacy_weakner.runs.train import read_folds

    read_folds(folder)


FOLDS = [{"model": "m", "corpus": "c.spacy", "corpus_hash": sha256(b"").hexdigest()}]
_SIZES = ["gold", "dev", "test", "text"]
PREPARED = {**dict.fromkeys(_SIZES, 3), "chosen_by": "dev", "notes": []}
_SCORES: Dict[str, Any] = {
    **{"tp": 8, "fp": 2, "fn": 2, "p": 80.0, "r": 80.0, "f1": 80.0, "words_per_second": 1000},
    "interval": {"low": 70.0, "high": 90.0},
    "difference": {"baseline": "gold", "f1": -5.0, "low": -9.0, "high": 1.0, "p": 0.5},
}
_FACTS = {"size": "linear", "f1": None, "weak": True, "collected": False, "chosen_by": "dev"}
SELECTION = {
    "best": "gold",
    "chosen_by": "dev",
    "candidates": [
        {"name": "gold", "path": "x", "why": "y", "scores": {**_SCORES, "name": "gold", "difference": None}},
        {"name": "list", "path": "z", "why": "y", "scores": {**_SCORES, "name": "list"}},
    ],
    "left_out": [{"name": "weak", "trained": False, "why": "so"}],
    "facts": {**dict.fromkeys(Facts.model_fields, 3), **_FACTS},
    "settings": dict.fromkeys(Settings.model_fields, 1),
    "curve": [{"sentences": 10, "f1": 50.5}, {"sentences": 20, "f1": 60.5}],
    "notes": ["so"],
}
CONFIG = '[paths]\ntrain = "x"\n\n[training]\nmax_steps = 10\nseed = ${vars.seed}\n\n[vars]\nseed = 1\na = [1,2]\n'
_LABEL = ("label", "@gold.spacy", f"@{OUT}.spacy")
_AGGREGATE = command("aggregate", "@gold.spacy", f"@{OUT}.spacy")
_CHECK = ("check", "--output", f"@{OUT}.json")
_TABLE = "nlp/gazetteer_ruler/terms.safetensors"
_RUN = function(_run_pipeline)
_FROM_SPACY = command("convert", "@gold.spacy", f"@{OUT}.jsonl")
_PIPELINE = _made(_pipeline)


def _anchors(name: str, content: str, output: str = f"@{OUT}.spacy") -> Kind:
    run = command("anchors", f"@{name}", output, "--min-anchors", "1")
    return Kind(name.rpartition(".")[2], name, run, lambda: {name: content.encode()})


def _terms(name: str, rows: str) -> Kind:
    run = command(*_LABEL, "--terms", f"@{name}", "--term-label", "X")
    return Kind(f"terms-{name[6:]}", name, run, lambda: {"gold.spacy": gold(), name: rows.encode()})


def _sources(name: str, target: str) -> Kind:
    return Kind(name, target, command(*_LABEL, "--sources", "@sources.cfg"), _labeled(**_ALL_SOURCES))


_KINDS = [
    Kind("jsonl", "a.jsonl", command("convert", "@a.jsonl", f"@{OUT}.spacy"), text(a__jsonl=jsonl(ROWS))),
    Kind("conll", "a.conll", command("convert", "@a.conll", f"@{OUT}.jsonl"), text(a__conll=CONLL)),
    Kind("text", "a.txt", command("convert", "@a.txt", f"@{OUT}"), text(a__txt=TEXT)),
    Kind("spacy", "gold.spacy", _FROM_SPACY, _labeled(), mutate_binary),
    Kind("spacy-inside", "gold.spacy", _FROM_SPACY, _labeled(), inside_spacy),
    Kind("aggregate", "gold.spacy", _AGGREGATE, _labeled(), inside_spacy),
    *(_terms(name, rows) for name, rows in TERMS.items()),
    _sources("sources", "sources.cfg"),
    _sources("patterns", "patterns.jsonl"),
    _sources("answers", "answers.jsonl"),
    Kind("receipt", f"{OUT}.spacy.json", _AGGREGATE, _made(_aggregated), kept=True),
    Kind("receipt-inside", f"{OUT}.spacy.json", _AGGREGATE, _made(_aggregated), _json_inside, kept=True),
    Kind("table", _TABLE, _RUN, _PIPELINE, mutate_binary),
    Kind("cfg-ruler", "nlp/gazetteer_ruler/cfg", _RUN, _PIPELINE, _json_inside),
    Kind("cfg-head", "nlp/crf_ner/cfg", _RUN, _PIPELINE, _json_inside),
    Kind("config-pipeline", "nlp/config.cfg", _RUN, _PIPELINE),
    Kind("meta", "nlp/meta.json", _RUN, _PIPELINE, _json_inside),
    Kind("config", "c.cfg", function(_config), text(c__cfg=CONFIG)),
    _anchors("a.wiki", WIKI, f"@{OUT}"),
    _anchors("a.xml", DUMP),
    Kind("queries-json", "q.json", _queries("q.json"), text(q__json='{"PER": "Who?", "CITY": "Where?"}')),
    Kind("queries-toml", "q.toml", _queries("q.toml"), text(q__toml='PER = "Who?"\nCITY = "Where?"\n')),
    Kind("folds", "folds.json", function(_folds), text(folds__json=json.dumps(FOLDS), c__spacy="")),
    Kind("selection", "v.json", function(_selection), text(v__json=json.dumps(SELECTION))),
    Kind("preparation", "splits.json", function(_preparation), text(splits__json=json.dumps(PREPARED))),
    Kind("check-text", "a.txt", command(*_CHECK, "--text", "@a.txt"), text(a__txt=TEXT)),
    Kind("check-gold", "a.jsonl", command(*_CHECK, "--gold", "@a.jsonl"), text(a__jsonl=jsonl(ROWS))),
    Kind("check-terms", "terms.csv", command(*_CHECK, "--terms", "@terms.csv"), text(terms__csv=TERMS["terms.csv"])),
    Kind("check-sources", "sources.cfg", command(*_CHECK, "--sources", "@sources.cfg"), text(**_ALL_SOURCES)),
]
KINDS: Dict[str, Kind] = {kind.name: kind for kind in [*_KINDS, *exports.KINDS, *questions.KINDS]}
