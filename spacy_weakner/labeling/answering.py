"""Answers of a language model as a source: every row of `ask` is one sample of what it says about a text."""

import os
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

from spacy.tokens import Doc

from ..corpus.answers import ASKED, is_answer, is_torn
from ..corpus.jsonl import at_line
from ..corpus.rows import Row, RowError
from ..corpus.sentences import sentence_key
from ..errors import Errors, WeaknerError
from .agreement import vote
from .importing import LabelFile, Lookup, index_labels
from .mentions import Found, find_mentions, read_mentions
from .sources import MAJORITY, Source


class AnswerFile(LabelFile):
    """The rows of a file of answers, by text; the samples of a text are no repetition. Texts without an answer that
    could be read have none; see `LabelFile`.
    """

    def __init__(self, path: Path, folder: Path, key: str, source: str, misaligned: str) -> None:
        super().__init__(path, folder, key, source, misaligned)
        self.repeated = 0

    def look_up(self, docs: Sequence[Doc]) -> Iterator[Lookup]:
        """Let all answers about some Docs vote.

        docs (Sequence[Doc]): The Docs.
        YIELDS (Lookup): One per Doc, with the first of its rows.
        RAISES (WeaknerError): If a marked mention does not fit the tokens, and that is to be an error.
        """
        texts = [sentence_key(doc.text) for doc in docs]
        for doc, text, place in zip(docs, texts, self._text_places(texts), strict=True):
            samples: List[Found] = []
            first = 0
            for line, row in self._rows(place, text=text):
                first = first or line
                with at_line(self.path, line):
                    samples.append(find_mentions(doc, read_mentions(row, self.source) or [], self.misaligned))
            yield Lookup(first, _agree(samples) if samples else None, False)


class _Questions:
    """Chooses the rows that answer one question.

    path (Path): The file.
    source (Source): Whose file it is.
    """

    def __init__(self, path: Path, source: Source) -> None:
        self.path = path
        self.source = source
        self._rows: Counter[str] = Counter()
        self._models: Dict[str, str] = {}

    def __call__(self, row: Row) -> bool:
        if not is_answer(row):
            raise RowError("this is no row of 'ask'. Declare the file as a source with file = ... instead of answers")
        self._rows[row[ASKED]] += 1
        self._models[row[ASKED]] = str(row.get("model"))
        return self.source.asked in (None, row[ASKED])

    def check(self) -> None:
        """RAISES (WeaknerError): If there are answers to several questions, or none to the one that is wanted."""
        wanted = self.source.asked
        if (len(self._rows) > 1 and wanted is None) or (self._rows and wanted not in (None, *self._rows)):
            named = (f'"{asked}" ({self._models[asked][:40]}, {n} rows)' for asked, n in self._rows.most_common(5))
            found = ", ".join(named)
            raise WeaknerError(Errors.WK772.format(path=self.path, source=self.source.name, found=found))


def index_answers(source: Source, folder: Path, key: str) -> None:
    """Check all rows of a file of answers, and write down where they are; see `index_labels`.

    source (Source): The source.
    folder (Path): Where to write.
    key (str): Name of the files there.
    RAISES (WeaknerError): For anything malformed, with file, line and reason; and if it answers several questions, of
        which the source chooses none.
    """
    path = Path(source.path)
    _check_end(path)
    questions = _Questions(path, source)
    index_labels(path, folder, key, source.name, questions)
    questions.check()


def _check_end(path: Path) -> None:
    """Refuse what a killed process has left."""
    if path.suffix.lower() == ".gz":
        return
    last = b""
    with path.open("rb") as lines:
        if lines.seek(0, os.SEEK_END) and lines.seek(-1, os.SEEK_END) and lines.read(1) == b"\n":
            return
        lines.seek(0)
        for raw in lines:
            last = raw
    if is_torn(last):
        raise WeaknerError(Errors.WK773.format(path=path))


def _agree(samples: List[Found]) -> Found:
    entities, scores = vote([found.entities for found in samples])
    uncertain: List[Optional[float]] = [*scores]
    doubtful = sum(bool(found.misaligned or found.not_found) for found in samples)
    return Found(
        entities,
        uncertain,
        misaligned=sum(found.misaligned for found in samples),
        not_found=sum(found.not_found for found in samples),
        # What was lost in fewer samples could not have won.
        is_whole=doubtful < MAJORITY * len(samples),
    )
