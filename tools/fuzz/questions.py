"""What `ask` and `suggest` read."""

import json
from typing import Any, Callable, Dict, List

from spacy_weakner.labeling.llm.config import AskConfig

from .kind import OUT, Files, Kind, command, jsonl, text

_TEXTS = ["New York rocks.", "Anna took aspirin.", "Bob met Anna in Paris."]
LABELS = {"PER": "people", "CITY": ""}
_ENTS: List[Any] = [
    [{"text": "New York", "label": "CITY"}],
    [[0, 4, "PER"]],
    [{"text": "Bob", "label": "PER"}, {"text": "Rome", "label": "CITY"}],
]
PROMPT = "Find {{labels}} in this text.\n\n{{text}}\n"
SOURCES = '[sources.model]\nanswers = "answers.jsonl"\nmin_score = 0.5\n'
TERMS = '[sources.list]\nterms = "terms.csv"\n\n[sources.other]\nfile = "other.jsonl"\n'
OTHERS = [{"text": "Anna took aspirin.", "ents": [[0, 4, "CITY"]]}, {"text": "New York rocks.", "ents": []}]
POOL = [{"text": "New York rocks."}, {"text": "Anna took aspirin.", "id": "a"}, {"text": "Bob met Anna in Paris."}]
GOLD = [{"text": "Bob met Anna in Paris.", "ents": [[0, 3, "PER"]]}]


def _answers() -> str:
    rows: List[Dict[str, Any]] = []
    config = AskConfig.read({"url": "", "model": "m", "labels": LABELS, "samples": 2, "max_tokens": 100})
    for sentence, ents in zip(_TEXTS, _ENTS, strict=True):
        for request in config.requests(sentence):
            row = {"key": request.key, "asked": config.asked, "model": "m", "sample": request.sample}
            row.update(text=sentence, ents=ents, others=[["aspirin", "DRUG"]], answer="{}", tokens_in=9, tokens_out=2)
            rows.append(row)
    rows[-1].update(ents=None, cut=50, estimated=True)
    return jsonl(rows)


_PAID = ("--price-in", "1", "--price-out", "2", "--budget", "3", "--max-tokens", "100")


def _dry(*options: str) -> Callable[..., Any]:
    """What would be asked; nothing is sent."""
    where = ("--url", "http://localhost:1/v1", "--model", "m", "--dry-run", "--samples", "2")
    return command("ask", "@texts.txt", "@answers.jsonl", *where, *_PAID, *options)


def _asked(**more: str) -> Callable[[], Files]:
    labels = {"labels__json": json.dumps(LABELS), "texts__txt": "\n".join(_TEXTS)}
    return lambda: text(**{**labels, "answers__jsonl": _answers(), **more})()


_SUGGEST = ("suggest", "@pool.jsonl", f"@{OUT}.jsonl", "--n", "2", "--sources", "@sources.cfg")
_POOL = text(
    pool__jsonl=jsonl(POOL),
    sources__cfg=TERMS,
    terms__csv="label,term\nPER,Anna\nCITY,New York\n",
    other__jsonl=jsonl(OTHERS),
    gold__jsonl=jsonl(GOLD),
)
_LABEL = command("label", "@texts.txt", f"@{OUT}.spacy", "--sources", "@sources.cfg")
KINDS = [
    Kind("answers-label", "answers.jsonl", _LABEL, _asked(sources__cfg=SOURCES)),
    Kind("answers-ask", "answers.jsonl", _dry("--labels", "@labels.json"), _asked()),
    Kind("ask-texts", "texts.txt", _dry("--labels", "PER,CITY"), _asked()),
    Kind("ask-labels", "labels.json", _dry("--labels", "@labels.json"), _asked()),
    Kind("ask-toml", "labels.toml", _dry("--labels", "@labels.toml"), _asked(labels__toml='PER = "x"\nCITY = ""\n')),
    Kind("ask-prompt", "prompt.txt", _dry("--labels", "A", "--prompt", "@prompt.txt"), _asked(prompt__txt=PROMPT)),
    Kind("suggest", "pool.jsonl", command(*_SUGGEST, "--exclude", "@gold.jsonl"), _POOL, to="jsonl"),
    Kind("suggest-exclude", "gold.jsonl", command(*_SUGGEST, "--exclude", "@gold.jsonl"), _POOL, to="jsonl"),
    Kind("suggest-sources", "other.jsonl", command(*_SUGGEST, "--to", "prodigy"), _POOL, to="prodigy"),
]
