"""All formats by name: what commands, messages and docs list. It imports nothing, so that commands start fast."""

from typing import Dict, FrozenSet, NamedTuple, Tuple

# What a format may hold beside gold entities: documents without annotation, missing tokens, labels of weak sources,
# spans that are known to be wrong, categories, and ids of concepts.
UNKNOWN = "unknown"
MISSING = "missing"
WEAK = "weak"
WRONG = "wrong"
CATS = "cats"
IDS = "ids"
EVERYTHING = frozenset([UNKNOWN, MISSING, WEAK, WRONG, CATS, IDS])


class Format(NamedTuple):
    """A format: its name in `--format` and `--to`, the tool or layout, the endings of files that are read and of those
    that are written, what it can hold when it is written, and if some lines of a file can be read without the rest."""

    name: str
    title: str
    inputs: Tuple[str, ...]
    outputs: Tuple[str, ...] = ()
    holds: FrozenSet[str] = frozenset()
    blocks: bool = False


FORMATS: Dict[str, Format] = {
    format_.name: format_
    for format_ in (
        Format("jsonl", "our own rows", (".jsonl",), (".jsonl",), EVERYTHING, blocks=True),
        Format(
            "conll",
            "columns of tokens and tags",
            (".conll", ".iob", ".bio", ".tsv"),
            (".conll", ".iob", ".bio", ".tsv"),
            frozenset([UNKNOWN, MISSING]),
            blocks=True,
        ),
        Format("text", "raw text, one a line", (".txt",), blocks=True),
        Format("spacy", "spaCy's DocBin", (".spacy",), (".spacy",), EVERYTHING),
        Format("prodigy", "Prodigy", (".jsonl", ".json"), (".jsonl",), frozenset([UNKNOWN, MISSING, WRONG, WEAK, IDS])),
        Format("label-studio", "Label Studio", (".json", ".jsonl"), (".json",), frozenset([UNKNOWN, WEAK, IDS])),
        Format("doccano", "doccano", (".jsonl", ".json"), (".jsonl",)),
        Format("dataturks", "Dataturks", (".json", ".jsonl")),
        Format("brat", "brat", (".ann",)),
        Format(
            "huggingface",
            "Hugging Face datasets, AutoTrain",
            (".parquet", ".jsonl", ".json"),
            (".parquet", ".jsonl"),
            frozenset([UNKNOWN, MISSING]),
            blocks=True,
        ),
        Format("gliner", "GLiNER", (".json", ".jsonl"), (".json", ".jsonl")),
        Format(
            "spacy-json",
            "spaCy's (text, annotations)",
            (".json", ".jsonl"),
            (".json", ".jsonl"),
            frozenset([UNKNOWN, CATS]),
        ),
    )
}
INPUTS = tuple(FORMATS)
OUTPUTS = tuple(name for name, format_ in FORMATS.items() if format_.outputs)
# The first format of each ending; where there are several, the contents of a file decide.
SUFFIXES: Dict[str, str] = {}
for _format in FORMATS.values():
    for _suffix in _format.inputs:
        SUFFIXES.setdefault(_suffix, _format.name)
# What is JSON may be of several tools.
JSON_SUFFIXES = (".jsonl", ".json")
