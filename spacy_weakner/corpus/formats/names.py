"""All formats by name, as commands, messages and docs list them. This module imports nothing, so that commands start
fast."""

from typing import Dict, FrozenSet, NamedTuple, Tuple

# What a format may hold beside gold entities: documents without annotation, missing tokens, labels of weak sources,
# spans known to be wrong, categories, concept ids, document ids, and notes shown to annotators.
UNKNOWN = "unknown"
MISSING = "missing"
WEAK = "weak"
WRONG = "wrong"
CATS = "cats"
IDS = "ids"
DOC_IDS = "doc_ids"
META = "meta"
EVERYTHING = frozenset([UNKNOWN, MISSING, WEAK, WRONG, CATS, IDS, DOC_IDS, META])
# Units of offsets into a text; see `offsets`.
CODE_POINTS, UTF16, BYTES = "codepoints", "utf16", "bytes"


class Format(NamedTuple):
    """A format: its name in `--format` and `--to`, the tool or layout, the file suffixes that are read and written,
    what written files can hold, the default unit of offsets, and whether the tool always uses that unit."""

    name: str
    title: str
    inputs: Tuple[str, ...]
    outputs: Tuple[str, ...] = ()
    holds: FrozenSet[str] = frozenset()
    unit: str = CODE_POINTS
    sure: bool = True


_LINES, _JSON, _COLUMNS = (".jsonl",), (".json", ".jsonl"), (".conll", ".iob", ".bio", ".tsv")
_TAGS = frozenset([UNKNOWN, MISSING])
_SUGGESTIONS = frozenset([UNKNOWN, WEAK, IDS, DOC_IDS, META])
_FORMATS = (
    Format("jsonl", "rows of spacy_weakner", _LINES, _LINES, EVERYTHING),
    Format("conll", "columns of tokens and tags", _COLUMNS, _COLUMNS, _TAGS),
    Format("text", "raw text, one per line", (".txt",)),
    Format("spacy", "spaCy's DocBin", (".spacy",), (".spacy",), EVERYTHING),
    Format("prodigy", "Prodigy", (".jsonl", ".json"), _LINES, _SUGGESTIONS | {MISSING, WRONG}),
    Format("html", "page to annotate in a browser", (), (".html",), _SUGGESTIONS),
    Format("label-studio", "Label Studio", _JSON, (".json",), _SUGGESTIONS, unit=UTF16),
    Format("doccano", "doccano", (".jsonl", ".json"), _LINES, frozenset([DOC_IDS]), sure=False),
    Format("brat", "brat", (".ann",)),
    Format(
        "huggingface", "Hugging Face datasets, AutoTrain", (".parquet", ".jsonl", ".json"), _LINES, _TAGS | {DOC_IDS}
    ),
    Format("gliner", "GLiNER", _JSON, _JSON),
    Format("spacy-json", "spaCy's (text, annotations)", _JSON),
)
FORMATS: Dict[str, Format] = {format_.name: format_ for format_ in _FORMATS}
INPUTS = tuple(name for name, format_ in FORMATS.items() if format_.inputs)
OUTPUTS = tuple(name for name, format_ in FORMATS.items() if format_.outputs)
# The first format of each suffix; if there are several, the contents of a file decide.
SUFFIXES: Dict[str, str] = {}
for _format in _FORMATS:
    for _suffix in _format.inputs:
        SUFFIXES.setdefault(_suffix, _format.name)
