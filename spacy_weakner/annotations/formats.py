"""Which file holds what, and streaming all of them as Docs."""

from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Errors, WeaknerError
from ..files import existing, read_lines
from .conll import read_conll
from .corpus import read_docs
from .jsonl import at_line, read_rows
from .rows import DEFAULT_SOURCE, Row, RowCounts, doc_from_row
from .runs import LONGEST_RUN, longest_run
from .weak import get_id, set_id

SUFFIXES: Dict[str, str] = {
    ".jsonl": "jsonl",
    ".conll": "conll",
    ".iob": "conll",
    ".bio": "conll",
    ".tsv": "conll",
    ".txt": "text",
    ".spacy": "spacy",
}
_ANNOTATIONS = ("ents", "spans", "weak_ents", "cats", "gold")


def file_format(path: Path) -> Optional[str]:
    """Tell the format of a file from its name.

    path (Path): The file; an ending `.gz` is passed over, except that `.spacy` files are compressed already.
    RETURNS (Optional[str]): One of `SUFFIXES`, or None.
    """
    name = path.name.lower()
    plain = Path(name[: -len(".gz")] if name.endswith(".gz") else name)
    format_ = SUFFIXES.get(plain.suffix)
    return None if format_ == "spacy" and name.endswith(".gz") else format_


def input_files(
    path: Path,
    format: Optional[str] = None,
    *,
    suffixes: Dict[str, str] = SUFFIXES,
    tell: Callable[[Path], Optional[str]] = file_format,
) -> List[Tuple[Path, str]]:
    """Find the files of a corpus.

    path (Path): A file, or a folder that is searched with its subfolders.
    format (Optional[str]): The format. None: each file's suffix tells, and other files of a folder are
        passed over.
    suffixes (Dict[str, str]): The formats that there are, by suffix.
    tell (Callable[[Path], Optional[str]]): Tells the format of a file from its name.
    RETURNS (List[Tuple[Path, str]]): Files and their formats, sorted by name.
    RAISES (WeaknerError): If there are none, or the format is unknown.
    """
    path = existing(Path(path))
    formats = list(dict.fromkeys(suffixes.values()))
    if format is not None and format not in formats:
        raise WeaknerError(Errors.WK005.format(setting="format", value=format, expected=", ".join(formats)))
    if path.is_dir():
        inside = sorted(f for f in path.rglob("*") if f.is_file() and f.name[0] != ".")
        found = [(f, format or tell(f)) for f in inside]
        files = [(f, format_) for f, format_ in found if format_ is not None]
        if not files:
            raise WeaknerError(Errors.WK101.format(path=path))
        return files
    wanted = format or tell(path)
    if wanted is None:
        raise WeaknerError(Errors.WK105.format(path=path, suffixes=", ".join(suffixes)))
    return [(path, wanted)]


def read_corpus(
    path: Path,
    nlp: Language,
    *,
    format: Optional[str] = None,
    sentences: bool = True,
    source: str = DEFAULT_SOURCE,
    misaligned: str = "error",
    counts: Optional[RowCounts] = None,
) -> Iterator[Doc]:
    """Stream the Docs of a corpus in any format.

    path (Path): A file or a folder.
    nlp (Language): Its vocabulary and tokenizer are used.
    format (Optional[str]): One of `SUFFIXES`; None: the suffixes tell.
    sentences (bool): Split text without annotations into sentences.
    source (str): Name of the weak source of "weak_ents" that are a plain list.
    misaligned (str): What to do with spans in JSONL text that do not end at token borders: "error", "drop", "expand"
        or "contract".
    counts (Optional[RowCounts]): Where to count. With it, texts of which the tokenizer would take very long are left
        out (see `runs`); without it they are errors.
    YIELDS (Doc): The Docs.
    RAISES (WeaknerError): For anything malformed, with file, line and reason.
    """
    for file_, format_ in input_files(path, format):
        if format_ == "spacy":
            yield from read_docs(file_, nlp.vocab)
        else:
            lines = enumerate(read_lines(file_), start=1)
            yield from docs_of_lines(file_, format_, lines, nlp, sentences, source, misaligned, counts)


def docs_of_lines(
    path: Path,
    format: str,
    lines: Iterable[Tuple[int, str]],
    nlp: Language,
    sentences: bool = True,
    source: str = DEFAULT_SOURCE,
    misaligned: str = "error",
    counts: Optional[RowCounts] = None,
) -> Iterator[Doc]:
    """Stream the Docs of some lines of a file.

    path (Path): The file, for error messages.
    format (str): "jsonl", "conll" or "text".
    lines (Iterable[Tuple[int, str]]): The lines with their numbers.
    nlp, sentences, source, misaligned, counts: See `read_corpus`.
    YIELDS (Doc): The Docs.
    RAISES (WeaknerError): For anything malformed, with file, line and reason.
    """
    skipped, counts = counts, RowCounts() if counts is None else counts
    if format == "conll":
        yield from read_conll(path, nlp, lines=lines)
        return
    splitter = SentenceSplitter(nlp)
    if format == "text":
        short = (line for line in lines if _is_short(path, *line, nlp, skipped))
        yield from _text_docs(short, splitter, sentences, counts)
        return
    for number, row in read_rows(path, lines):
        # With annotations it is not left out.
        if isinstance(row.get("text"), str) and not _is_short(
            path, number, row["text"], nlp, skipped if _is_bare_text(row) else None
        ):
            continue
        with at_line(path, number):
            doc = doc_from_row(row, nlp, source=source, misaligned=misaligned, counts=counts)
        if sentences and _is_bare_text(row):
            yield from splitter.split(row["text"], get_id(doc))
        else:
            yield doc


class SentenceSplitter:
    """Splits raw text into one Doc per sentence, with spaCy's rule-based sentencizer.

    nlp (Language): Its vocabulary and tokenizer are used; the pipeline itself is not changed.
    """

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        # The sentencizer is run apart, since a component of the pipeline would also run on annotated Docs.
        self.sentencizer = nlp.create_pipe("sentencizer")

    def whole(self, text: str) -> Doc:
        """One Doc of a text. Runs of white space become one blank, so that no token is white space."""
        return self.nlp.tokenizer(" ".join(text.split()))

    def split(self, text: str, identifier: Optional[str] = None) -> Iterator[Doc]:
        """Split a text.

        text (str): The text.
        identifier (Optional[str]): Identifier of the text; its sentences become `<identifier>.1`, `.2` and
            so on.
        YIELDS (Doc): One Doc per sentence.
        """
        doc = self.sentencizer(self.whole(text))
        for number, sentence in enumerate(doc.sents, start=1):
            words = [token.text for token in sentence]
            spaces = [bool(token.whitespace_) for token in sentence]
            spaces[-1] = False
            result = Doc(self.nlp.vocab, words=words, spaces=spaces)
            if identifier is not None:
                set_id(result, f"{identifier}.{number}")
            yield result


def _text_docs(
    lines: Iterable[Tuple[int, str]], splitter: SentenceSplitter, sentences: bool, counts: RowCounts
) -> Iterator[Doc]:
    for _, line in lines:
        if not line.strip():
            counts.empty += 1
        elif sentences:
            yield from splitter.split(line)
        else:
            yield splitter.whole(line)


def _is_short(path: Path, number: int, text: str, nlp: Language, counts: Optional[RowCounts]) -> bool:
    """Whether the tokenizer can take a text. One that it cannot take is counted, or an error if nobody counts."""
    found = longest_run(text, nlp)
    if found and counts is None:
        raise WeaknerError(Errors.WK801.format(path=path, line=number, n=found, limit=LONGEST_RUN))
    if found and counts is not None:
        counts.long += 1
    return not found


def _is_bare_text(row: Row) -> bool:
    return "text" in row and all(row.get(key) is None for key in _ANNOTATIONS)
