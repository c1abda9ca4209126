"""Names of the files in a project's folders: what one command writes and another reads."""

from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NamedTuple

from ..annotations.corpus import corpus_files
from ..errors import Errors, WeaknerError


class Corpora(NamedTuple):
    """The folder of a project's corpora.

    folder (Path): The folder.
    """

    folder: Path

    @property
    def annotated(self) -> Path:
        """RETURNS (Path): The folder of all gold, whose sentences no text may hold."""
        return self.folder / "annotated"

    @property
    def gold(self) -> Path:
        """RETURNS (Path): Gold to train on."""
        return self.annotated / "gold.spacy"

    @property
    def dev(self) -> Path:
        """RETURNS (Path): Gold to choose by; may not exist."""
        return self.annotated / "dev.spacy"

    @property
    def test(self) -> Path:
        """RETURNS (Path): Gold that nothing is chosen by; may not exist."""
        return self.annotated / "test.spacy"

    @property
    def text(self) -> Path:
        """RETURNS (Path): Text without labels."""
        return self.folder / "text"

    @property
    def splits(self) -> Path:
        """RETURNS (Path): What `prepare` has found and split."""
        return self.folder / "splits.json"

    @property
    def labels(self) -> Path:
        """RETURNS (Path): What `judge` says of the weak labels."""
        return self.folder / "labels.json"

    @property
    def gold_labelled(self) -> Path:
        """RETURNS (Path): The gold with weak labels beside it."""
        return self.folder / "gold-labelled.spacy"

    @property
    def weak(self) -> Path:
        """RETURNS (Path): The text with aggregated weak labels; all other tokens are missing."""
        return self.folder / "weak"


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
    except (ValueError, TypeError, KeyError, StopIteration) as error:
        raise WeaknerError(Errors.WK681.format(path=path, command=command)) from error
