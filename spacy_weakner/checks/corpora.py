"""Reading annotated corpora for checks: every row that can be read, and what is wrong with the others."""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.conll import COLUMNS
from ..corpus.foreign import with_names
from ..corpus.formats.names import SUFFIXES
from ..corpus.formats.reading import check_lines, file_format, input_files, read_corpus
from ..corpus.gold import missing_tokens
from ..corpus.jsonl import parse_row
from ..corpus.rows import Row, RowCounts, RowError, doc_from_row, show
from ..corpus.weak import doc_entities, is_weak
from ..errors import Errors
from ..ty import Entity
from .findings import FIRST, Findings, listed, plural
from .sampling import LIMIT, SampledLines


class Sentence(NamedTuple):
    """A sentence of an annotated corpus.

    place (str): File and line.
    text (str): Its text.
    words (Tuple[str, ...]): Its tokens.
    entities (List[Entity]): Entities in tokens.
    missing (int): Tokens about which nothing is known.
    weak (bool): Whether the entities are weak labels.
    as_text (bool): Whether it came as text, not as tokens.
    spaced (bool): Whether the spaces between the tokens are known.
    """

    place: str
    text: str
    words: Tuple[str, ...]
    entities: List[Entity]
    missing: int
    weak: bool
    as_text: bool
    spaced: bool

    @property
    def is_annotated(self) -> bool:
        """Whether anything is known about it."""
        return self.missing < len(self.words)


class Misaligned(NamedTuple):
    """A span that does not end at token borders.

    place (str): File and line.
    text (str): What it covers.
    label (str): Its label.
    near (str): The tokens that it touches.
    """

    place: str
    text: str
    label: str
    near: str


@dataclass
class CheckedCorpus:
    """An annotated corpus.

    where (str): The option and the file: "--gold gold.jsonl".
    name (str): "gold", "dev" or "test".
    path (Path): The file or folder.
    sentences (List[Sentence]): What could be read.
    misaligned (List[Misaligned]): Spans that do not end at token borders.
    spans (int): Spans with character offsets.
    broken (int): Rows that could not be read.
    note (str): How much was looked at; empty if it was everything.
    groups (Counter[str]): Spans of groups that are not read.
    """

    where: str
    name: str
    path: Path
    sentences: List[Sentence] = field(default_factory=list)
    misaligned: List[Misaligned] = field(default_factory=list)
    spans: int = 0
    broken: int = 0
    note: str = ""
    groups: "Counter[str]" = field(default_factory=Counter)

    def labels(self) -> Dict[str, int]:
        """RETURNS (Dict[str, int]): Entities per label."""
        return dict(Counter(label for sentence in self.sentences for _, _, label in sentence.entities))


class Problems:
    """Rows that cannot be read, those with the same problem together.

    path (Path): The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.places: Dict[str, List[str]] = {}
        self.reasons: Dict[str, str] = {}

    def add(self, place: str, reason: str) -> None:
        """Note a row."""
        kind = re.sub(r"'[^']*'|\[.*\]|\{.*\}|\d+", "", reason)[:80]
        self.reasons.setdefault(kind, reason)
        self.places.setdefault(kind, []).append(place)

    def report(self, where: str, findings: Findings) -> int:
        """Make findings of them.

        where (str): Option and file.
        findings (Findings): Takes them.
        RETURNS (int): The number of rows.
        """
        for kind, places in self.places.items():
            reason = with_names(self.reasons[kind], self.path).removesuffix(".")
            same = "" if len(places) == 1 else f" The same in {plural(len(places), 'row')}: {_places(places)}."
            findings.error(where, f"{self.path}, {places[0]}: {reason}.{same}")
        return sum(map(len, self.places.values()))


def read_annotated(
    name: str,
    path: Path,
    nlp: Language,
    findings: Findings,
    limit: int = LIMIT,
    columns: Tuple[int, int] = COLUMNS,
    spans_key: Optional[str] = None,
) -> Optional[CheckedCorpus]:
    """Read gold, dev or test.

    name (str): Which of them.
    path (Path): The file or folder, in any format.
    nlp (Language): Its vocabulary and tokenizer are used.
    findings (Findings): Takes what is wrong.
    limit (int): How many lines or Docs are looked at.
    columns (Tuple[int, int]): Columns of CoNLL files that hold tokens and tags.
    spans_key (Optional[str]): Span group of `.spacy` files that is read as the gold.
    RETURNS (Optional[CheckedCorpus]): What could be read; None if nothing.
    """
    corpus = CheckedCorpus(f"--{name} {path}", name, path)
    reader = _Reader(corpus, nlp, findings, limit, columns, spans_key)
    read = False
    if path.is_file() and file_format(path) is None:
        message = Errors.WK105.format(path=path, suffixes=", ".join(SUFFIXES))
        findings.error(corpus.where, message, _suffix_cure(path))
        return None
    with findings.guard(corpus.where):
        for file_, format_ in input_files(path):
            if format_ == "text":
                findings.error(
                    corpus.where,
                    f"{file_} is plain text, which holds no entities.",
                    'Give JSONL rows {"text": ..., "ents": [[start, end, "LABEL"]]}, CoNLL columns or .spacy.',
                )
                continue
            errors = findings.errors
            with findings.guard(corpus.where):
                reader.read(file_, format_)
            corpus.broken += findings.errors > errors and not corpus.broken
            read = True
    if not read:
        return None
    if corpus.note:
        findings.info(corpus.where, f"Large, so it was sampled: {corpus.note}.")
    return corpus


class _Reader:
    def __init__(
        self,
        corpus: CheckedCorpus,
        nlp: Language,
        findings: Findings,
        limit: int,
        columns: Tuple[int, int],
        spans_key: Optional[str],
    ) -> None:
        self.corpus = corpus
        self.nlp = nlp
        self.findings = findings
        self.limit = limit
        self.columns = columns
        self.spans_key = spans_key

    def read(self, path: Path, format: str) -> None:
        left = self.limit - len(self.corpus.sentences)
        if left <= 0:
            self.corpus.note = self.corpus.note or f"looked at the first {len(self.corpus.sentences):,} sentences"
            return
        check_lines(path, format)
        if format == "jsonl":
            self._read_jsonl(path, left)
            return
        counts = RowCounts()
        how: Dict[str, Any] = {"format": format, "misaligned": "expand", "columns": self.columns}
        key = self.spans_key if format == "spacy" else None
        docs = read_corpus(path, self.nlp, **how, spans_key=key, counts=counts)
        unit = "sentence" if format == "conll" else "document"
        for number, doc in enumerate(islice(docs, left), start=1):
            self._add(doc, f"{path}, {unit} {number}", False, format not in ("conll", "huggingface", "gliner"))
        if next(docs, None) is not None:
            self.corpus.note = f"looked at the first {left:,} {unit}s of {path}"
        self._report(path, counts)

    def _report(self, path: Path, counts: RowCounts) -> None:
        self.corpus.groups += counts.groups
        for remark in counts.remarks:
            self.findings.warning(self.corpus.where, f"{path}: {remark}.")

    def _read_jsonl(self, path: Path, left: int) -> None:
        lines, problems = SampledLines(path, left), Problems(path)
        counts = RowCounts()
        for line in lines:
            if not line.text.strip():
                continue
            try:
                row = parse_row(line.text)
                doc = doc_from_row(row, self.nlp, misaligned="expand", counts=counts)
            except RowError as error:
                problems.add(line.place, str(error))
            except UnicodeEncodeError as error:
                problems.add(line.place, f"half of a surrogate pair in a string ({error.reason})")
            else:
                place = f"{path}, {line.place}"
                if "text" in row:
                    self._look_at_spans(row, doc, place)
                self._add(doc, place, "text" in row, row.get("spaces") is not None)
        self.corpus.broken += problems.report(self.corpus.where, self.findings)
        self.corpus.note = lines.note
        self._report(path, counts)
        if counts.suspects and not problems.places:
            self.findings.error(
                self.corpus.where,
                f"No row of {path} has 'ents', but these unknown keys hold lists or objects: "
                f"{', '.join(counts.suspects)}.",
                "If they are the annotations, rename them to 'ents' ([start, end, label]).",
            )

    def _add(self, doc: Doc, place: str, as_text: bool, spaced: bool) -> None:
        missing = len(missing_tokens(doc))
        words = tuple(token.text for token in doc)
        entities = doc_entities(doc)
        self.corpus.sentences.append(
            Sentence(place, doc.text, words, entities, missing, is_weak(doc), as_text, as_text or spaced)
        )

    def _look_at_spans(self, row: Row, doc: Doc, place: str) -> None:
        for start, end, label in _offsets(row.get("ents") or row.get("spans") or []):
            self.corpus.spans += 1
            text = doc.text[start:end]
            left, right = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
            if doc.char_span(left, right) is None:
                touched = doc.char_span(left, right, alignment_mode="expand")
                near = show([] if touched is None else [token.text for token in touched])
                self.corpus.misaligned.append(Misaligned(place, text, label, near))


def _suffix_cure(path: Path) -> str:
    """What to do with a file of unknown suffix, by how it begins."""
    with path.open("rb") as file_:
        start = file_.read(100).lstrip()[:1]
    return "It seems to hold JSON: rename it to .json." if start in (b"[", b"{") else ""


def _places(places: Sequence[str]) -> str:
    if all(place.startswith("line ") for place in places):
        return f"lines {listed([place[len('line ') :] for place in places])}"
    return listed(places)


def _offsets(items: Sequence[Any]) -> Iterator[Tuple[int, int, str]]:
    for item in items:  # the row has been read, so they are well-formed
        yield (item["start"], item["end"], item["label"]) if isinstance(item, dict) else tuple(item[:3])


def examples(places: Sequence[str]) -> str:
    """The first places: the file only once, where it is the same.

    places (Sequence[str]): "FILE, line N".
    RETURNS (str): For example "gold.jsonl, line 3, line 5 and 7 more".
    """
    shown, last = [], ""
    for place in places[:FIRST]:
        file_, _, line = place.rpartition(", ")
        shown.append(line if file_ == last else place)
        last = file_
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
