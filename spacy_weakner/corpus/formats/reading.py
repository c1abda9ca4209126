"""Detection of the format of files, and reading of all formats as streams of Docs."""

import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...errors import Errors, Warnings, WeaknerError, check_choice
from ...files import existing, open_packed, read_lines, unpacked_name, visible_files
from ..conll import COLUMNS, read_conll
from ..counts import Place, RowCounts, RowError, at_line
from ..docbin import SUFFIX, check_whole, read_docs, receipt_path
from ..entities import set_entities, trim_whitespace
from ..foreign import format_of, tool_of
from ..jsonl import BIOC, DEFAULT_SOURCE, MISALIGNED, read_row, read_rows
from ..language import RECORD
from ..overlaps import drop_overlaps
from ..parts import split_sentences
from ..records import Item, Record, a_phrase, is_blank, make_doc, read_identifier, set_notes
from ..sampling import SampledLines
from ..sentences import LONGEST_RUN, LONGEST_TEXT, SentenceSplitter, longest_run, sentence_key
from ..weak import give_ids, group_entities, is_known_group, remove_group, set_id, set_weak
from . import brat, huggingface
from .items import in_lines, read_items
from .names import FORMATS, INPUTS, SUFFIXES
from .offsets import AUTO, UNITS, find_unit, in_code_points
from .tools import ABSENT, GATHERERS, READERS

NOT_TEXT = "records without a text, dropped"
LONG = f"texts with more than {LONGEST_RUN} characters without white space, left out"
MARKS = "byte order marks within lines, kept (were files joined without a line end between them?)"
TAGGED = "lines that end in the tag O (if they are columns of tokens and tags, rename the file to .conll)"
# Formats with span groups.
GROUPED = ("spacy", "spacy-json")
# Records of a JSON file that are read to detect its format.
_LOOKED_AT = 200
# Files of a folder that need no format, and how many of the others a warning names.
_NO_DATA = re.compile(r"^(readme|licen[cs]e)|\.(conf|cfg|py)$", flags=re.IGNORECASE)
_NAMED = 5
# What to do with files that are not read, by suffix; tables are read by functions of pandas.
_TABLES = {".csv": "read_csv", ".xlsx": "read_excel", ".xls": "read_excel", ".ods": "read_excel"}
_RASA = "If it is training data of Rasa, write it as JSON with 'rasa data convert nlu'"
_CURES = {
    ".zip": "Unpack it, and give the file or folder in it",
    ".yml": _RASA,
    ".yaml": _RASA,
    ".xml": f"If it is BioC, {BIOC}",
    ".html": "If it is a page to annotate, open it in a browser, and convert what its button 'Save' downloads",
    ".py": "Code and pickles are not read: write the pairs as JSON (json.dump)",
    ".pkl": "Code and pickles are not read: write the pairs as JSON (json.dump)",
}
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True)
class Reading:
    """Settings for reading corpora.

    sentences (bool): Split text without annotations into sentences.
    documents (bool): With `sentences`, also split annotated text, but not within entities. The sentences of a text
        without an identifier are named after its place in the file, so that they are known as one document.
    source (str): Name of the weak source for "weak_ents" given as a plain list.
    misaligned (str): What to do with spans of text that do not end at token boundaries: "error", "drop", "expand" or
        "contract".
    offsets (str): Unit of the offsets in files of other tools: "codepoints", "utf16" or "bytes"; "auto": the unit in
        which all spans cover their expected text.
    labels (Tuple[str, ...]): Tag names, from 0 on, for datasets with numbers, instead of the names in the file. If all
        names are of one type, tags without a type get that type.
    columns (Tuple[int, int]): Token and tag columns of CoNLL files, counted from 1, or from the end (-1).
    spans_key (Optional[str]): Span group of files of spaCy that is read as gold, instead of the entities.
    """

    sentences: bool = True
    source: str = DEFAULT_SOURCE
    misaligned: str = "error"
    offsets: str = AUTO
    labels: Tuple[str, ...] = ()
    columns: Tuple[int, int] = COLUMNS
    spans_key: Optional[str] = None
    documents: bool = False


class _Lenient(RowCounts):
    """Counts that skip rows that cannot be read. These rows raise errors when the whole file is read."""

    def refuse(self, path: Path, place: str, reason: str, error: Exception) -> None:
        pass


def file_format(path: Path) -> Optional[str]:
    """Return the format of a file: from its name, and for JSON also from its first records."""
    plain = unpacked_name(path)
    format_ = SUFFIXES.get(plain.suffix)
    if plain.name != path.name.lower() and format_ in ("spacy", "huggingface", "brat"):
        return None
    if plain.suffix not in (".json", ".jsonl") or not path.is_file():
        return format_
    with suppress(WeaknerError):  # raised again when the whole file is read
        rows = islice(read_items(path, _Lenient()), _LOOKED_AT)
        return next(filter(None, (tool_of(row) for _, row in rows)), "jsonl")
    return "jsonl"


def input_files(
    path: Path,
    format: Optional[str] = None,
    *,
    suffixes: Mapping[str, str] = SUFFIXES,
    tell: Callable[[Path], Optional[str]] = file_format,
) -> List[Tuple[Path, str]]:
    """Return the files of a corpus, each with its format."""
    path = existing(Path(path))
    check_choice("format", format, INPUTS if suffixes is SUFFIXES else dict.fromkeys(suffixes.values()), optional=True)
    check_whole(path)
    found = visible_files(path) if path.is_dir() else [path]
    found = _corpora(found, format) if path.is_dir() and suffixes is SUFFIXES else found
    formats = [(f, format or tell(f)) for f in found]
    files = [(f, format_) for f, format_ in formats if format_ is not None]
    unknown = [f for f, format_ in formats if format_ is None and not _NO_DATA.search(f.name)]
    if files and unknown:
        names = ", ".join(f.relative_to(path).as_posix() for f in unknown[:_NAMED]) + ", ..." * (len(unknown) > _NAMED)
        warnings.warn(Warnings.WK912.format(path=path, n=len(unknown), names=names), stacklevel=2)
    if not files and path.is_dir():
        raise WeaknerError(Errors.WK101.format(path=path))
    if not files:
        cure = f"Use one of {', '.join(suffixes)}, or --format (if a command lacks this option, convert the file first)"
        cure = cure if suffixes is not SUFFIXES else _advice(path) or cure
        raise WeaknerError(Errors.WK105.format(path=path, cure=cure))
    return files


def _advice(path: Path) -> str:
    """Return what to do with a file that is not read, if its suffix or its beginning shows what it is."""
    with open_packed(path) as file_:
        start = file_.read(100).lstrip()
    suffix = path.suffix.lower()
    if start.startswith((b"[", b"{")):
        return "It seems to contain JSON: rename it to .json, or use --format"
    if start.startswith(b"Sentence #"):
        return "It has one word per line: write words and tags as .conll (docs/formats.md#csv-and-spreadsheets)"
    if suffix in _TABLES:
        new = path.with_suffix(".jsonl").name
        code = f'pandas.{_TABLES[suffix]}({path.name!r})[["text"]].to_json({new!r}, orient="records", lines=True)'
        return f'Write one row {{"text": ...}} per text (with labels: docs/formats.md), for example with pandas: {code}'
    return _CURES.get(suffix, "")


def _corpora(files: Sequence[Path], format: Optional[str]) -> List[Path]:
    """Return the files of a folder that are corpora: without the texts and settings of brat's annotations and the
    receipts of `.spacy` files."""
    annotations = [f for f in files if f.suffix == brat.SUFFIX]
    if format == "brat":
        return annotations
    others = {f.with_suffix(brat.TEXT_SUFFIX) for f in annotations}
    others |= {receipt_path(f) for f in files if f.suffix == SUFFIX}
    return [f for f in files if f not in others and not f.name.endswith(RECORD)]


def has_span_groups(path: Path) -> bool:
    """Return True if a corpus has files of spaCy, the only ones with span groups."""
    return any(format_ in GROUPED for _, format_ in input_files(path))


def by_lines(path: Path, format: str) -> bool:
    """Return True if each line of a file can be read without the others."""
    return format == "text" or (format == "jsonl" and in_lines(path))


def read_corpus(
    path: Path,
    nlp: Language,
    reading: Reading = Reading(),
    *,
    format: Optional[str] = None,
    counts: Optional[RowCounts] = None,
    limit: Optional[int] = None,
    files: Optional[Sequence[Tuple[Path, str]]] = None,
) -> Iterator[Doc]:
    """Stream the Docs of a corpus in any format.

    nlp (Language): Pipeline whose vocabulary and tokenizer are used.
    format (Optional[str]): One of `INPUTS`; None: detected from the files.
    counts (Optional[RowCounts]): Where to count, and how to handle rows that cannot be read: the default raises an
        error, subclasses may collect. Without `counts`, text that the tokenizer would take very long to process is an
        error; with it, such text is left out and counted, unless it is annotated.
    limit (Optional[int]): Read about this number of Docs per file. `counts` then has `sampled` and `total`.
    files (Optional[Sequence[Tuple[Path, str]]]): The result of `input_files` for the corpus, if it is known already.
    RAISES (WeaknerError): For malformed input, with file, line and reason, and if no Doc has the span group.
    """
    check_choice("offsets", reading.offsets, (AUTO, *UNITS))
    check_choice("misaligned", reading.misaligned, MISALIGNED)
    n, key, strict = 0, reading.spans_key, counts is None
    counts = RowCounts() if counts is None else counts
    for file_, format_ in input_files(path, format) if files is None else files:
        reader = FileReader(file_, format_, nlp, reading, counts, strict)
        for doc in reader.docs() if limit is None else reader.sample(limit):
            n += format_ in GROUPED
            yield doc
    if key is not None and counts.notes[ABSENT] == n:
        groups = ", ".join(counts.groups) or "none; only files of spaCy (.spacy, Doc.to_json) have groups"
        raise WeaknerError(Errors.WK372.format(place=f"in {path}", key=key, groups=groups))


def sentence_keys(paths: Iterable[Path], nlp: Language) -> Set[str]:
    """Return the keys of all documents of some corpora, of their sentences, and of the sentences in their texts."""
    keys, splitter = set(), SentenceSplitter(nlp)
    for path in paths:
        for doc in read_corpus(Path(path), nlp, Reading(sentences=False, misaligned="drop")):
            keys.add(sentence_key(doc.text))
            if doc.has_annotation("SENT_START"):
                keys.update(sentence_key(sentence.text) for sentence in doc.sents)
            if not longest_run(doc.text, nlp):
                keys.update(sentence_key(sentence.text) for sentence in splitter.split(doc.text))
    return keys


@dataclass
class FileReader:
    """A reader of a file, or of some of its lines. If it is `strict`, text that the tokenizer would take very long to
    process is an error; otherwise it is left out and counted."""

    path: Path
    format: str
    nlp: Language
    reading: Reading
    counts: RowCounts
    strict: bool = False

    def __post_init__(self) -> None:
        self.labels = self.reading.labels
        self.column: Optional[str] = None  # column of tags
        self._splitter = SentenceSplitter(self.nlp)

    def docs(self) -> Iterator[Doc]:
        path, counts, unit = self.path, self.counts, self.reading.offsets
        if self.format == "spacy":
            yield from read_groups(read_docs(path, self.nlp.vocab), counts, self.reading.spans_key)
        elif self.format in READERS:
            if path.suffix.lower() == huggingface.PARQUET:
                self.column, self.labels = huggingface.table_tags(path, self.labels)
            if unit == AUTO:
                # Everything counted here is counted again when the Docs are made.
                discarded, format_ = type(counts)(), FORMATS[self.format]
                records = self._records(self._items(discarded), discarded)
                unit = find_unit(path, records, format_.unit, format_.sure, counts)
            yield from self._tool_docs(self._items(counts), unit)
        elif self.format == "conll":
            columns, labels = self.reading.columns, self.reading.labels
            yield from read_conll(path, self.nlp, columns=columns, labels=labels, counts=counts)
        elif by_lines(path, self.format):
            yield from self.of_lines(enumerate(read_lines(path), start=1))
        else:
            yield from self._row_docs(read_items(path, counts))

    def sample(self, limit: int) -> Iterator[Doc]:
        """Yield the first Docs of the file, and count all of them, or estimate their number."""
        n, counts = 0, self.counts
        if by_lines(self.path, self.format):
            lines = SampledLines(self.path, limit)
            for doc in self.of_lines(lines):
                n += 1
                yield doc
            counts.sampled, counts.total = lines.note, lines.estimate(n)
            return
        docs = self.docs()
        for doc in islice(docs, limit):
            n += 1
            yield doc
        counts.total = n + sum(1 for _ in docs)
        counts.sampled = f"the first {n:,} documents" if counts.total > n else ""

    def of_lines(self, lines: Iterable[Tuple[Place, str]]) -> Iterator[Doc]:
        """Read lines of raw text or rows."""
        if self.format == "jsonl":
            yield from self._row_docs(read_rows(self.path, lines, self.counts))
        else:
            for number, line in lines:
                yield from self._text_docs(number, line)

    def _items(self, counts: RowCounts) -> Iterator[Item]:
        return brat.items(self.path) if self.format == "brat" else read_items(self.path, counts)

    def _row_docs(self, rows: Iterable[Item]) -> Iterator[Doc]:
        for place, record in self._read(rows, partial(read_row, source=self.reading.source), self.counts):
            yield from self._docs_of(place, record)

    def _tool_docs(self, items: Iterable[Item], unit: str) -> Iterator[Doc]:
        for place, record in self._records(items, self.counts):
            if all(map(is_blank, record.tokens or [record.text or ""])):
                self.counts.notes[NOT_TEXT] += 1
            else:
                yield from self._docs_of(place, in_code_points(record, unit, self.counts))

    def _records(self, items: Iterable[Item], counts: RowCounts) -> Iterator[Tuple[Place, Record]]:
        gather, items = GATHERERS.get(self.format, iter), self._of_tool(items, counts)
        return self._read(gather(items), self._reader(), counts)

    def _read(
        self, items: Iterable[Item], read: Callable[..., Optional[Record]], counts: RowCounts
    ) -> Iterator[Tuple[Place, Record]]:
        for place, item in items:
            record = None
            with at_line(self.path, place, counts):
                record = read(item, counts)
            if record is not None:
                yield place, record

    def _reader(self) -> Callable[..., Optional[Record]]:
        read = READERS[self.format]
        if self.format == "huggingface":
            return partial(read, labels=self.labels, column=self.column)
        return partial(read, key=self.reading.spans_key) if self.format == "spacy-json" else read

    def _of_tool(self, items: Iterable[Item], counts: RowCounts) -> Iterator[Item]:
        """Refuse rows of other formats, whose annotations would be lost."""
        for place, item in items:
            other = format_of(item)
            with at_line(self.path, place, counts):
                # Rows of Prodigy without answers look like ours.
                is_other = other not in (None, self.format) and (self.format != "prodigy" or "spans" not in item)
                fault = self._fault(item) if is_other else None
                if fault is not None:
                    raise RowError(
                        f"a row of the format '{other}' ({FORMATS[str(other)].title}) among rows of the format "
                        f"'{self.format}'. Keep the two in two files of one folder, or convert the others before you "
                        f"join them: spacy weakner convert done.jsonl more.jsonl --format {self.format}{fault}"
                    )
                yield place, item

    def _fault(self, item: Any) -> Optional[str]:
        """Return None if the format finds annotation in a row of another one, whose other keys are then metadata."""
        try:
            record = self._reader()([item] if self.format in GATHERERS else item, RowCounts())
        except RowError as error:
            return f". (As '{self.format}': {error})"
        return "" if record is None or record.is_bare else None

    def _text_docs(self, place: Place, line: str) -> Iterator[Doc]:
        self.counts.empty += not line.strip()
        self.counts.note(MARKS, line.count("\ufeff"))
        self.counts.note(TAGGED, line.rstrip().endswith((" O", "\tO")))
        if line.strip():
            yield from self._docs_of(place, Record(line if self.reading.sentences else " ".join(line.split())))

    def _docs_of(self, place: Place, record: Record) -> Iterator[Doc]:
        """Yield the Doc of a record, or one Doc per sentence; see `Reading`."""
        docs: List[Doc] = []
        with at_line(self.path, place, self.counts):
            if self._is_short(record.text, record.is_bare):
                is_text = self.reading.sentences and record.tokens is None
                if is_text and (record.is_bare or (self.reading.documents and not record.cats)):
                    docs = self._split(place, record)
                else:
                    docs = [make_doc(record, self.nlp, self.reading.misaligned, self.counts)]
        yield from docs

    def _split(self, place: Place, record: Record) -> List[Doc]:
        """Return the sentences of a text."""
        if record.is_bare:
            docs = list(self._splitter.split(a_phrase(record.text)))
            for doc in docs:
                set_notes(doc, record)
        else:
            doc = make_doc(record, self.nlp, self.reading.misaligned, self.counts)
            self._splitter.set_sentences(doc)
            docs = split_sentences(doc)
        name = read_identifier(record.id)
        if len(docs) == 1:  # the text may itself be a sentence of a document
            set_id(docs[0], name)
        elif name is not None or self.reading.documents:
            name = name or f"{self.path.stem}-{_NO_WORD.sub('-', str(place))}"
            for number, doc in enumerate(docs, start=1):
                set_id(doc, f"{name}.{number}")
        return docs

    def _is_short(self, text: Any, is_bare: bool) -> bool:
        """Return True if the tokenizer can process a text. If not, text without annotations is left out and counted."""
        if isinstance(text, str) and len(text) > LONGEST_TEXT:
            reason = f"a text of {len(text):,} characters (the limit is {LONGEST_TEXT:,}). Split it into documents"
            raise RowError(reason)
        found = longest_run(text, self.nlp) if isinstance(text, str) else 0
        if found and (self.strict or not is_bare):
            raise RowError(
                f"{found} characters without white space between them, for which a tokenizer takes very long (the "
                f"limit is {LONGEST_RUN}). Remove the text, or insert spaces"
            )
        self.counts.note(LONG, bool(found))
        return not found


def read_groups(docs: Iterable[Doc], counts: RowCounts, key: Optional[str]) -> Iterator[Doc]:
    """Read a span group of `.spacy` files as gold, instead of the entities, and count all other groups that are not
    from this package: `spancat`, or heads with a `spans_key`, may learn from them."""
    for n, doc in enumerate(docs, start=1):
        counts.place = f"document {n}"
        if key is not None:
            counts.note(ABSENT, key not in doc.spans)
            entities, unclear = drop_overlaps(trim_whitespace(doc, group_entities(doc, key)), counts)
            set_entities(doc, entities, [key in doc.spans] * len(doc), unclear)
            give_ids(doc, {(s.start, s.end, s.label_): [s.kb_id_] for s in doc.spans.get(key, []) if s.kb_id_})
            set_weak(doc, False)
            remove_group(doc, key)
        for name, group in doc.spans.items():
            if group and not is_known_group(name):
                counts.groups[name] += len(group)
        yield doc
