"""Which file holds what, and streaming all of them as Docs."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...errors import Errors, WeaknerError, check_choice
from ...files import existing, read_lines, visible_files
from ..conll import COLUMNS, read_conll
from ..docbin import SUFFIX, check_whole, read_docs, receipt_path
from ..foreign import tool_of
from ..jsonl import at_line, read_rows
from ..rows import DEFAULT_SOURCE, Row, RowCounts, RowError, doc_from_row, is_blank
from ..runs import LONGEST_RUN, longest_run
from ..sentences import sentence_key
from ..splitting import SentenceSplitter
from ..weak import get_id
from . import brat
from .items import LINES, PARQUET, Items, check_rows, find_layout
from .location import Item, at
from .names import FORMATS, JSON_SUFFIXES, SUFFIXES
from .offsets import AUTO, UNITS
from .records import Record, as_row
from .span_groups import ABSENT, read_groups
from .tool import NOT_TEXT, Context, Tool
from .tools import TOOLS
from .units import find_unit

_ANNOTATIONS = ("ents", "spans", "weak_ents", "cats", "gold", "wrong")
# Records of a file of JSON that are looked at to tell its format.
_LOOKED_AT = 200
_WEBANNO = "#FORMAT=WebAnno"


@dataclass(frozen=True)
class Reading:
    """How corpora are read; see `read_corpus`."""

    sentences: bool = True
    source: str = DEFAULT_SOURCE
    misaligned: str = "error"
    offsets: str = AUTO
    labels: Tuple[str, ...] = ()
    columns: Tuple[int, int] = COLUMNS
    spans_key: Optional[str] = None


def file_format(path: Path) -> Optional[str]:
    """Tell the format of a file: from its name, and of JSON from its first records.

    path (Path): The file; an ending `.gz` is passed over, except that `.spacy` and Parquet files are compressed
        already.
    RETURNS (Optional[str]): One of `FORMATS`, or None.
    """
    name = path.name.lower()
    plain = Path(name[: -len(".gz")] if name.endswith(".gz") else name)
    format_ = SUFFIXES.get(plain.suffix)
    if name.endswith(".gz") and format_ in ("spacy", "huggingface", "brat"):
        return None
    if plain.suffix not in JSON_SUFFIXES or not path.is_file():
        return format_
    return _json_format(path)


def _json_format(path: Path) -> str:
    try:
        for _, row in islice(Items(path), _LOOKED_AT):
            tool = tool_of(row)
            if tool is not None:
                return tool
    except WeaknerError:
        pass  # what is wrong is said where all of it is read
    return "jsonl"


def input_files(
    path: Path,
    format: Optional[str] = None,
    *,
    suffixes: Mapping[str, str] = SUFFIXES,
    tell: Callable[[Path], Optional[str]] = file_format,
) -> List[Tuple[Path, str]]:
    """Find the files of a corpus.

    path (Path): A file, or a folder that is searched with its subfolders.
    format (Optional[str]): The format. None: each file tells, and other files of a folder are passed over.
    suffixes (Mapping[str, str]): The formats that there are, by suffix.
    tell (Callable[[Path], Optional[str]]): Tells the format of a file.
    RETURNS (List[Tuple[Path, str]]): Files and their formats, sorted by name.
    RAISES (WeaknerError): If there are none, or not all of a corpus, or the format is unknown.
    """
    path = existing(Path(path))
    formats = list(FORMATS) if suffixes is SUFFIXES else list(dict.fromkeys(suffixes.values()))
    if format is not None:
        check_choice("format", format, formats)
    check_whole(path)
    if path.is_dir():
        inside = visible_files(path)
        if suffixes is SUFFIXES:
            inside = _without_receipts(_without_texts(inside, format))
        found = [(f, format or tell(f)) for f in inside]
        files = [(f, format_) for f, format_ in found if format_ is not None]
        if not files:
            raise WeaknerError(Errors.WK101.format(path=path))
        return files
    wanted = format or tell(path)
    if wanted is None:
        raise WeaknerError(Errors.WK105.format(path=path, suffixes=", ".join(suffixes)))
    return [(path, wanted)]


def _without_texts(files: Sequence[Path], format: Optional[str]) -> List[Path]:
    """The files of a folder without the texts and settings that belong to brat's annotations."""
    annotated: Set[Path] = {f.with_suffix(brat.TEXT_SUFFIX) for f in files if f.suffix == brat.SUFFIX}
    if format == "brat":
        return [f for f in files if f.suffix == brat.SUFFIX]
    return [f for f in files if f not in annotated]


def _without_receipts(files: Sequence[Path]) -> List[Path]:
    """The files of a folder without what stages have noted about `.spacy` files beside them."""
    noted = {receipt_path(f) for f in files if f.suffix == SUFFIX}
    return [f for f in files if f not in noted]


def has_span_groups(path: Path) -> bool:
    """RETURNS (bool): Whether a corpus holds `.spacy` files, the only ones with span groups."""
    return any(format_ == "spacy" for _, format_ in input_files(path))


def in_blocks(path: Path, format: str) -> bool:
    """Whether a file can be read in blocks of lines.

    path (Path): The file.
    format (str): Its format.
    """
    if format in TOOLS:
        return FORMATS[format].blocks and path.suffix.lower() != PARQUET and find_layout(path) == LINES
    return FORMATS[format].blocks


def check_lines(path: Path, format: str) -> None:
    """Check that a file is what its lines are read as: rows of ours, or columns.

    path (Path): The file.
    format (str): Its format.
    RAISES (WeaknerError): If it holds a JSON array or objects over several lines, or INCEpTION's own columns.
    """
    if format == "jsonl":
        check_rows(path)
    if format == "conll" and next(read_lines(path), "").startswith(_WEBANNO):
        raise WeaknerError(Errors.WK371.format(path=path))


def read_corpus(
    path: Path,
    nlp: Language,
    *,
    format: Optional[str] = None,
    sentences: bool = True,
    source: str = DEFAULT_SOURCE,
    misaligned: str = "error",
    offsets: str = AUTO,
    labels: Sequence[str] = (),
    columns: Tuple[int, int] = COLUMNS,
    spans_key: Optional[str] = None,
    counts: Optional[RowCounts] = None,
) -> Iterator[Doc]:
    """Stream the Docs of a corpus in any format.

    path (Path): A file or a folder.
    nlp (Language): Its vocabulary and tokenizer are used.
    format (Optional[str]): One of `FORMATS`; None: the files tell.
    sentences (bool): Split text without annotations into sentences.
    source (str): Name of the weak source of "weak_ents" that are a plain list.
    misaligned (str): What to do with spans of text that do not end at token borders: "error", "drop", "expand" or
        "contract".
    offsets (str): What the offsets of other tools count: "codepoints", "utf16" or "graphemes"; "auto": what fits the
        texts that the spans say they cover.
    labels (Sequence[str]): Names of the tags of datasets that hold numbers, from 0 on, in the place of those that a
        file has for them. If they are of one type, tags without a type get it.
    columns (Tuple[int, int]): Columns of CoNLL files that hold tokens and tags: from 1 on, or from the end, -1 on.
    spans_key (Optional[str]): Span group of `.spacy` files that is read as the gold, in the place of the entities.
    counts (Optional[RowCounts]): Where to count. With it, texts of which the tokenizer would take very long are left
        out (see `runs`); without it they are errors, as annotated ones always are.
    YIELDS (Doc): The Docs.
    RAISES (WeaknerError): For anything malformed, with file, line and reason, and if no Doc has the span group.
    """
    check_choice("offsets", offsets, (AUTO, *UNITS))
    reading = Reading(sentences, source, misaligned, offsets, tuple(labels), columns, spans_key)
    counts, n = RowCounts() if counts is None and spans_key is not None else counts, 0
    for file_, format_ in input_files(path, format):
        for doc in _file_docs(file_, format_, nlp, reading, counts):
            n += format_ == "spacy"
            yield doc
    if counts is not None and spans_key is not None and counts.notes[ABSENT] == n:
        groups = ", ".join(counts.groups) or "none; only .spacy files have groups"
        raise WeaknerError(Errors.WK372.format(path=path, key=spans_key, groups=groups))


def docs_of_lines(
    path: Path,
    format: str,
    lines: Iterable[Tuple[int, str]],
    nlp: Language,
    reading: Reading = Reading(),
    counts: Optional[RowCounts] = None,
    width: Optional[int] = None,
) -> Iterator[Doc]:
    """Stream the Docs of some lines of a file.

    path (Path): The file, for error messages.
    format (str): A format of which blocks of lines can be read.
    lines (Iterable[Tuple[int, str]]): The lines with their numbers.
    nlp (Language): Its vocabulary and tokenizer are used.
    reading (Reading): How to read them.
    counts (Optional[RowCounts]): Where to count.
    width (Optional[int]): How many columns the file has, if it is CoNLL; None: the lines tell.
    YIELDS (Doc): The Docs.
    RAISES (WeaknerError): For anything malformed, with file, line and reason.
    """
    if format in TOOLS:
        tool = TOOLS[format]
        unit = tool.unit if reading.offsets == AUTO else reading.offsets
        yield from _tool_docs(path, tool, Items(path, lines), unit, nlp, reading, counts)
    elif format == "conll":
        columns, labels = reading.columns, reading.labels
        yield from read_conll(path, nlp, lines=lines, columns=columns, width=width, labels=labels, counts=counts)
    elif format == "text":
        yield from _text_docs(path, lines, nlp, reading.sentences, counts)
    else:
        splitter = SentenceSplitter(nlp)
        for number, row in read_rows(path, lines):
            with at_line(path, number):
                if not _is_short(row, nlp, counts):
                    continue
                doc = doc_from_row(row, nlp, source=reading.source, misaligned=reading.misaligned, counts=counts)
            yield from _split(row, doc, splitter, reading)


def sentence_keys(paths: Iterable[Path], nlp: Language) -> Set[str]:
    """Keys of all sentences of some corpora. Of Docs with several sentences, both the whole and the parts
    count.

    paths (Iterable[Path]): The corpora, in any format.
    nlp (Language): Reads them.
    RETURNS (Set[str]): The keys.
    """
    keys = set()
    for path in paths:
        for doc in read_corpus(Path(path), nlp, misaligned="drop"):
            keys.add(sentence_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(sentence_key(sentence.text) for sentence in doc.sents)
    return keys


def _file_docs(path: Path, format: str, nlp: Language, reading: Reading, counts: Optional[RowCounts]) -> Iterator[Doc]:
    if format == "spacy":
        docs = read_docs(path, nlp.vocab)
        yield from docs if counts is None else read_groups(docs, reading.spans_key, counts)
    elif format in TOOLS:
        tool = TOOLS[format]
        named = not reading.labels
        items: Iterable[Item] = list(brat.items(path)) if format == "brat" else Items(path, named=named)
        unit = reading.offsets
        if unit == AUTO:
            # What is counted now is counted again when the Docs are made.
            context = Context(RowCounts(), reading.labels)
            unit = find_unit(path, lambda: _records(path, tool, items, context), tool, counts or RowCounts())
        yield from _tool_docs(path, tool, items, unit, nlp, reading, counts)
    else:
        check_lines(path, format)
        yield from docs_of_lines(path, format, enumerate(read_lines(path), start=1), nlp, reading, counts)


def _tool_docs(
    path: Path,
    tool: Tool,
    items: Iterable[Item],
    unit: str,
    nlp: Language,
    reading: Reading,
    skipped: Optional[RowCounts],
) -> Iterator[Doc]:
    splitter, counts = SentenceSplitter(nlp), RowCounts() if skipped is None else skipped
    for place, record in _records(path, tool, items, Context(counts, reading.labels)):
        if all(map(is_blank, record.tokens or [record.text or ""])):
            counts.notes[NOT_TEXT] += 1
            continue
        with at(path, place):
            row = as_row(record, unit, counts)
            if not _is_short(row, nlp, skipped):
                continue
            doc = doc_from_row(row, nlp, misaligned=reading.misaligned, counts=counts)
        yield from _split(row, doc, splitter, reading)


def _records(path: Path, tool: Tool, items: Iterable[Item], context: Context) -> Iterator[Tuple[Any, Record]]:
    for place, item in items if tool.gather is None else tool.gather(items):
        with at(path, place):
            record = tool.read(item, context)
        if record is not None:
            yield place, record


def _split(row: Row, doc: Doc, splitter: SentenceSplitter, reading: Reading) -> Iterator[Doc]:
    if reading.sentences and _is_bare_text(row):
        yield from splitter.split(row["text"], get_id(doc), doc)
    else:
        yield doc


def _text_docs(
    path: Path, lines: Iterable[Tuple[int, str]], nlp: Language, sentences: bool, counts: Optional[RowCounts]
) -> Iterator[Doc]:
    splitter = SentenceSplitter(nlp)
    for number, line in lines:
        if not line.strip():
            if counts is not None:
                counts.empty += 1
            continue
        with at_line(path, number):
            if not _is_short({"text": line}, nlp, counts):
                continue
        if sentences:
            yield from splitter.split(line)
        else:
            yield splitter.whole(line)


def _is_short(row: Row, nlp: Language, counts: Optional[RowCounts]) -> bool:
    """Whether the tokenizer can take the text of a row. One without annotations that it cannot take is counted; it is
    an error if nobody counts."""
    text = row.get("text")
    found = longest_run(text, nlp) if isinstance(text, str) else 0
    if found and (counts is None or not _is_bare_text(row)):
        raise RowError(
            f"{found} characters without white space between them, of which a tokenizer takes very long (the limit is "
            f"{LONGEST_RUN}). Leave the text out, or put blanks into it"
        )
    if found and counts is not None:
        counts.long += 1
    return not found


def _is_bare_text(row: Row) -> bool:
    return "text" in row and all(row.get(key) is None for key in _ANNOTATIONS)
