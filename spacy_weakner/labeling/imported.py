"""Labels made elsewhere (by an LLM, by GLiNER, by hand), aligned with the Docs of a corpus.

The file is JSONL in any order; rows are found by "id" or by their text. They are stored in an SQLite database, which
processes share.
"""

import json
import sqlite3
from collections import Counter, deque
from contextlib import closing
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, Span

from ..corpus.answers import ASKED, is_answer, is_torn
from ..corpus.counts import RowError, at_line
from ..corpus.jsonl import Row, read_rows
from ..corpus.records import read_identifier
from ..corpus.sentences import sentence_key
from ..corpus.weak import get_id
from ..errors import Errors, WeaknerError
from ..ty import Entity
from .alignment import Alignment, align_mentions, find_weak_name, join_alignments, read_mentions, row_text
from .labelers import Labeler
from .report import SourceCounts
from .sources import MAJORITY, AnswersSource, FileSource

F = TypeVar("F", bound=FileSource)
_TABLES = """
CREATE TABLE rows (line INTEGER PRIMARY KEY, row TEXT);
CREATE TABLE keys (key BLOB, line INTEGER, is_first BOOLEAN);
CREATE TABLE weak (name TEXT);
"""
_COUNTS = "SELECT count(*), count(DISTINCT key) FROM keys WHERE is_first"
_FIND = "SELECT line, row FROM keys JOIN rows USING (line) WHERE key = ? ORDER BY line"


class Lookup(NamedTuple):
    """The row found for a Doc."""

    found: Optional[Alignment]  # None: no row
    other_text: bool = False  # the row with the Doc's id was skipped because it has another text


class FileLabeler(Labeler[F]):
    """A labeler that looks up rows of a file. Of several rows for a Doc, the first in the file is used."""

    def __init__(self, source: F, nlp: Language, folder: Path, key: str) -> None:
        super().__init__(source, nlp, folder, key)
        # The database is no longer written to; this mode works on file systems without locks.
        uri = (folder / f"{key}.sqlite").resolve().as_uri()
        self._rows = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
        self._sentencizer = Sentencizer()
        (self._weak_name,) = self._rows.execute("SELECT name FROM weak").fetchone()

    @classmethod
    def prepare(cls, source: F, nlp: Language, folder: Path, key: str) -> None:
        path = Path(source.path)
        with at_line(path, "weak_ents"):
            weak_name = find_weak_name((row for _, row in read_rows(path)), source.name)
        with closing(sqlite3.connect(folder / f"{key}.sqlite")) as database, database:
            database.executescript(f"PRAGMA journal_mode = OFF; {_TABLES}")
            database.execute("INSERT INTO weak VALUES (?)", (weak_name,))
            for line, row in read_rows(path):
                with at_line(path, line):
                    hashes = [_hash(row_key) for row_key in cls.row_keys(source, row, weak_name)]
                if hashes:
                    database.execute("INSERT INTO rows VALUES (?, ?)", (line, json.dumps(row)))
                    values = [(hash_, line, number == 0) for number, hash_ in enumerate(hashes)]
                    database.executemany("INSERT INTO keys VALUES (?, ?, ?)", values)
            database.execute("CREATE INDEX by_key ON keys (key, line)")

    @classmethod
    def row_keys(cls, source: F, row: Row, weak_name: Optional[str]) -> List[str]:
        """Return the keys under which a row is found, or none if it has no labels. The whole row is checked."""
        mentions = read_mentions(row, weak_name)
        id_, text = read_identifier(row.get("id")), row_text(row)
        if id_ is None and text is None:
            raise RowError("the row has neither 'id' nor 'text' nor 'tokens', so it belongs to no document")
        if mentions is None:
            return []
        return [*([] if id_ is None else [_id_key(id_)]), *([] if text is None else [_text_key(text)])]

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Optional[Alignment]]:
        for doc in docs:
            lookup = self.look_up(doc)
            stats.other_text += lookup.other_text
            if lookup.found is not None:
                stats.docs_with_row += 1
                stats.misaligned += lookup.found.misaligned
                stats.not_found += lookup.found.not_found
            yield lookup.found

    def look_up(self, doc: Doc) -> Lookup:
        """Return the row of a Doc, by id or else by text."""
        text, id_ = sentence_key(doc.text), get_id(doc)
        found = None if id_ is None else next(self._rows_of(_id_key(id_)), None)
        other_text = found is not None and row_text(found[1]) not in (None, text)
        if found is None or other_text:
            return Lookup(self.by_text(doc) or self._by_parts(doc), other_text)
        return Lookup(self._align(doc, *found))

    def by_text(self, text: Union[Doc, Span]) -> Optional[Alignment]:
        """Return the labels of a text's row."""
        found = next(self._rows_of(_text_key(sentence_key(text.text))), None)
        return None if found is None else self._align(text, *found)

    def _by_parts(self, doc: Doc) -> Optional[Alignment]:
        """Return the labels of the sentences into which spaCy's sentencizer splits a Doc, if each has a row: other
        programs, and `ask`, which has no lists, also split inside names ("Yahoo! Inc.")."""
        starts = [i for i, is_start in enumerate(self._sentencizer.predict([doc])[0]) if is_start]
        parts = [doc[start:end] for start, end in pairwise([*starts, len(doc)])] if len(starts) > 1 else []
        found = [alignment for alignment in map(self.by_text, parts) if alignment is not None]
        return join_alignments(found, [part.start for part in parts]) if parts and len(found) == len(parts) else None

    def _rows_of(self, key: str) -> Iterator[Tuple[int, Row]]:
        for line, row in self._rows.execute(_FIND, (_hash(key),)):
            yield line, json.loads(row)

    def _align(self, doc: Union[Doc, Span], line: int, row: Row) -> Alignment:
        with at_line(Path(self.source.path), line):
            return align_mentions(doc, read_mentions(row, self._weak_name) or [], self.source.misaligned)

    def counts(self) -> SourceCounts:
        rows, different = self._rows.execute(_COUNTS).fetchone()
        return SourceCounts(rows=different, repeated_rows=rows - different)

    def close(self) -> None:
        self._rows.close()


class AnswersLabeler(FileLabeler[AnswersSource]):
    """A labeler in which the samples of a prompt vote; each row written by `ask` is one sample. If no completion of a
    text could be parsed, the source abstains."""

    @classmethod
    def prepare(cls, source: AnswersSource, nlp: Language, folder: Path, key: str) -> None:
        path = Path(source.path)
        rows: Counter[str] = Counter()
        models: Dict[str, str] = {}
        if _is_torn(path):
            raise WeaknerError(Errors.WK773.format(path=path))
        for line, row in read_rows(path):
            with at_line(path, line):
                if not is_answer(row):
                    reason = "this row was not written by 'ask'. Declare the source with 'file' instead of 'answers'"
                    raise RowError(reason)
            rows[row[ASKED]] += 1
            models[row[ASKED]] = str(row.get("model"))
        if (len(rows) > 1 and source.asked is None) or (rows and source.asked not in (None, *rows)):
            found = ", ".join(f'"{asked}" ({models[asked][:40]}, {n} rows)' for asked, n in rows.most_common(5))
            raise WeaknerError(Errors.WK772.format(path=path, source=source.name, found=found))
        super().prepare(source, nlp, folder, key)

    @classmethod
    def row_keys(cls, source: AnswersSource, row: Row, weak_name: Optional[str]) -> List[str]:
        return super().row_keys(source, row, weak_name) if source.asked in (None, row[ASKED]) else []

    def look_up(self, doc: Doc) -> Lookup:
        return Lookup(self.by_text(doc) or self._by_parts(doc))

    def by_text(self, text: Union[Doc, Span]) -> Optional[Alignment]:
        samples = [self._align(text, *row) for row in self._rows_of(_text_key(sentence_key(text.text)))]
        return _agreement(samples) if samples else None

    def counts(self) -> SourceCounts:
        return SourceCounts(rows=super().counts().rows)  # the samples of a text are not repetitions


def vote(samples: Sequence[Sequence[Entity]]) -> Tuple[List[Entity], List[float]]:
    """Aggregate samples by two-stage voting: first mentions, then types (Xie et al., EMNLP 2023,
    https://arxiv.org/abs/2310.10035). Return each mention of any sample, in text order, with the label that most of the
    samples with this mention assign (in a tie, the one named first), and the share of all samples that have the
    mention, with any label."""
    labels: Dict[Tuple[int, int], Counter[str]] = {}
    found: Counter[Tuple[int, int]] = Counter()
    for sample in samples:
        unique = dict.fromkeys(sample)
        found.update({(start, end) for start, end, _ in unique})
        for start, end, label in unique:
            labels.setdefault((start, end), Counter())[label] += 1
    places = sorted(labels)
    # Of equal counts, most_common returns the first.
    entities = [(*place, labels[place].most_common(1)[0][0]) for place in places]
    return entities, [found[place] / len(samples) for place in places]


def _agreement(samples: List[Alignment]) -> Alignment:
    entities, scores = vote([sample.entities for sample in samples])
    n_lossy = sum(bool(sample.misaligned or sample.not_found) for sample in samples)
    return Alignment(
        entities,
        [*scores],
        misaligned=sum(sample.misaligned for sample in samples),
        not_found=sum(sample.not_found for sample in samples),
        # Mentions lost in fewer samples could not have won the vote.
        is_whole=n_lossy < MAJORITY * len(samples),
    )


def _is_torn(path: Path) -> bool:
    """Return True if a killed process left the last row unfinished."""
    if path.suffix.lower() == ".gz":
        return False
    with path.open("rb") as lines:
        return is_torn(next(iter(deque(lines, maxlen=1)), b""))


def _id_key(id_: str) -> str:
    return f"id {id_}"


def _text_key(text: str) -> str:
    return f"text {text}"


def _hash(key: str) -> bytes:
    return blake2b(key.encode("utf-8"), digest_size=16).digest()
