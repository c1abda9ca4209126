"""Names of the files in a project's folders: what one command writes and another reads."""

from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from ..corpus.docbin import corpus_files
from ..errors import Errors, WeaknerError


class Corpora:
    """The folder of a project's corpora, and what is in it.

    folder (Path): The folder.
    annotated (Path): The folder of all gold, whose sentences no text may hold.
    gold (Path): Gold to train on.
    dev (Path): Gold to choose by; may not exist.
    test (Path): Gold that nothing is chosen by; may not exist.
    text (Path): Text without labels.
    splits (Path): What `prepare` has found and split.
    labels (Path): What `analyze --tune-terms` measures of the weak labels.
    gold_labelled (Path): The gold with weak labels beside it.
    weak (Path): The text with aggregated weak labels; all other tokens are missing.
    pieces (Path): The table of word pieces, for the sizes "static" and "linear-static".
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.annotated = folder / "annotated"
        self.gold = self.annotated / "gold.spacy"
        self.dev = self.annotated / "dev.spacy"
        self.test = self.annotated / "test.spacy"
        self.text = folder / "text"
        self.splits = folder / "splits.json"
        self.labels = folder / "labels.json"
        self.gold_labelled = folder / "gold-labelled.spacy"
        self.weak = folder / "weak"
        self.pieces = folder / "pieces"


def has_docs(path: Path) -> bool:
    """Whether there is a corpus at a path.

    path (Path): A `.spacy` file, or a folder of them.
    RETURNS (bool): Whether there is a file.
    """
    try:
        return path.exists() and bool(corpus_files(path))
    except WeaknerError:
        return False


@contextmanager
def reading(path: Path, command: str) -> Iterator[None]:
    """Read a JSON file that a command has made.

    path (Path): The file.
    command (str): The command.
    RAISES (WeaknerError): If the file turns out to hold something else.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        raise WeaknerError(Errors.WK681.format(path=path, command=command)) from error
