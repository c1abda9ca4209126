"""Labels made elsewhere (by an LLM, by GLiNER, by hand), aligned with the Docs of a corpus.

The file is JSONL in any order; rows are found by "id" or by their text. They are stored in an SQLite database, which
processes share.
"""

import json
import sqlite3
from collections import Counter, deque
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

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
from ..runtime.hashes import hash_text
from ..ty import Entity
from .alignment import Alignment, Mention, align_mentions, find_weak_name, join_alignments, read_mentions, row_text
from .labelers import Labeler
from .report import SourceCounts
from .sources import MAJORITY, AnswersSource, FileSource

F = TypeVar("F", bound=FileSource)
# A row with an id and a text has two keys.
_TABLE = "CREATE TABLE rows (key TEXT, line INTEGER, is_first BOOLEAN, text TEXT, mentions TEXT)"
_COUNTS = "SELECT count(*), count(DISTINCT key) FROM rows WHERE is_first"
_FIND = "SELECT line, text, mentions FROM rows WHERE key = ? ORDER BY line"
# Line, hash of the letters of the text, and mentions.
_StoredRow = Tuple[int, Optional[str], List[Mention]]


class FileLabeler(Labeler[F]):
    """A labeler that looks up rows of a file. Of several rows for a Doc, the first in the file is used."""

    def __init__(self, source: F, nlp: Language, folder: Path, key: str) -> None:
        super().__init__(source, nlp, folder, key)
        # The database is no longer written to; this mode works on file systems without locks.
        uri = (folder / f"{key}.sqlite").resolve().as_uri()
        self._rows = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
        self._sentencizer = Sentencizer()

    @classmethod
    def prepare(cls, source: F, nlp: Language, folder: Path, key: str) -> None:
        path = Path(source.path)
        with at_line(path, "weak_ents"):
            weak_name = find_weak_name((row for _, row in read_rows(path)), source.name)
        with closing(sqlite3.connect(folder / f"{key}.sqlite")) as database, database:
            database.executescript(f"PRAGMA journal_mode = OFF; {_TABLE}")
            for line, row in read_rows(path):
                with at_line(path, line):
                    if cls.is_wanted(source, row):
                        values = [(key, line, n == 0, *found) for n, (key, *found) in enumerate(_rows(row, weak_name))]
                        database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", values)
            database.execute("CREATE INDEX by_key ON rows (key, line)")

    @classmethod
    def is_wanted(cls, source: F, row: Row) -> bool:
        return True

    def find(self, docs: List[Doc], stats: SourceCounts) -> Iterator[Optional[Alignment]]:
        for doc in docs:
            found = self.look_up(doc, stats)
            if found is not None:
                stats.docs_with_row += 1
                stats.misaligned += found.misaligned
                stats.not_found += found.not_found
            yield found

    def look_up(self, doc: Doc, stats: SourceCounts) -> Optional[Alignment]:
        """Return the labels of a Doc, by id or else by text."""
        id_ = get_id(doc)
        row = None if id_ is None else next(self._rows_of(f"id {id_}"), None)
        if row is not None and row[1] in (None, hash_text(sentence_key(doc.text))):
            return self._align(doc, row)
        stats.other_text += row is not None
        return self.by_text(doc) or self._by_parts(doc)

    def by_text(self, text: Union[Doc, Span]) -> Optional[Alignment]:
        """Return the labels of a text's row."""
        row = next(self._rows_of(hash_text(sentence_key(text.text))), None)
        return None if row is None else self._align(text, row)

    def _by_parts(self, doc: Doc) -> Optional[Alignment]:
        """Return the labels of the sentences into which spaCy's sentencizer splits a Doc, if each has a row: other
        programs, and `ask`, which has no lists, also split inside names ("Yahoo! Inc.")."""
        starts = [i for i, is_start in enumerate(self._sentencizer.predict([doc])[0]) if is_start]
        parts = [doc[start:end] for start, end in pairwise([*starts, len(doc)])] if len(starts) > 1 else []
        found = [alignment for alignment in map(self.by_text, parts) if alignment is not None]
        return join_alignments(found, [part.start for part in parts]) if parts and len(found) == len(parts) else None

    def _rows_of(self, key: str) -> Iterator[_StoredRow]:
        for line, text, mentions in self._rows.execute(_FIND, (key,)):
            yield line, text, [Mention(*mention) for mention in json.loads(mentions)]

    def _align(self, doc: Union[Doc, Span], row: _StoredRow) -> Alignment:
        with at_line(Path(self.source.path), row[0]):
            return align_mentions(doc, row[2], self.source.misaligned)

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
    def is_wanted(cls, source: AnswersSource, row: Row) -> bool:
        return source.asked in (None, row[ASKED])

    def look_up(self, doc: Doc, stats: SourceCounts) -> Optional[Alignment]:
        # Not by id: all samples of a text vote.
        return self.by_text(doc) or self._by_parts(doc)

    def by_text(self, text: Union[Doc, Span]) -> Optional[Alignment]:
        samples = [self._align(text, row) for row in self._rows_of(hash_text(sentence_key(text.text)))]
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
    return Alignment(
        entities,
        [*scores],
        misaligned=sum(sample.misaligned for sample in samples),
        not_found=sum(sample.not_found for sample in samples),
        # Mentions lost in fewer samples could not have won the vote.
        is_lossy=sum(sample.is_lossy for sample in samples) >= MAJORITY * len(samples),
    )


def _is_torn(path: Path) -> bool:
    """Return True if a killed process left the last row unfinished."""
    if path.suffix.lower() == ".gz":
        return False
    with path.open("rb") as lines:
        return is_torn(next(iter(deque(lines, maxlen=1)), b""))


def _rows(row: Row, weak_name: Optional[str]) -> List[Tuple[str, Optional[str], str]]:
    """Return the key, the hash of the text and the labels of a row that has labels, for each of its keys."""
    mentions = read_mentions(row, weak_name)
    id_, letters = read_identifier(row.get("id")), row_text(row)
    if id_ is None and letters is None:
        raise RowError("the row has neither 'id' nor 'text' nor 'tokens', so it belongs to no document")
    text = None if letters is None else hash_text(letters)
    keys = [key for key in (None if id_ is None else f"id {id_}", text) if key is not None and mentions is not None]
    return [(key, text, json.dumps(mentions)) for key in keys]
