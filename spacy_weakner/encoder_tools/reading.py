"""Reading of the text of corpora."""

from itertools import chain, islice
from pathlib import Path
from typing import Iterator, Optional

from spacy.language import Language
from spacy.tokens import Doc

from ..corpus.counts import RowCounts
from ..corpus.formats.reading import FileReader, Reading, by_lines, input_files
from ..files import read_lines

# Labels are not used, so annotated text is split like other text.
_READING = Reading(misaligned="drop", documents=True)
# Lines whose words are in memory at a time.
_BLOCK = 5000


def stream_text(path: Path, nlp: Language, counts: RowCounts, format: Optional[str] = None) -> Iterator[Doc]:
    """Stream the Docs of a corpus in any format, so that the vocabulary does not grow with the text. A Doc must not be
    used after the next one was requested. What is remarkable about the rows is added to `counts`."""
    for file_, format_ in input_files(path, format):
        reader = FileReader(file_, format_, nlp, _READING, counts, strict=True)
        if by_lines(file_, format_):
            lines = enumerate(read_lines(file_), start=1)
            for first in lines:
                with nlp.memory_zone():
                    yield from reader.of_lines(chain([first], islice(lines, _BLOCK - 1)))
        else:
            with nlp.memory_zone():
                yield from reader.docs()
        counts.groups.clear()  # labels, of which no reader of text needs to know
