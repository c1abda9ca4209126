"""The running text of a page, and where its anchors are."""

from typing import List, NamedTuple, Optional, Tuple


class Paragraph(NamedTuple):
    """Text that no sentence goes beyond.

    text (str): The text; runs of white space are one blank.
    anchors (List[Tuple[int, int]]): Start and end of each anchor in characters, from left to right, without overlaps.
    """

    text: str
    anchors: List[Tuple[int, int]]


class Mark(NamedTuple):
    """A place in a paragraph that is not finished, to go back to."""

    parts: int
    length: int
    gap: bool
    anchors: int


class Paragraphs:
    """Collects the paragraphs of a page piece by piece."""

    def __init__(self) -> None:
        self._found: List[Paragraph] = []
        self._parts: List[str] = []
        self._length = 0
        self._gap = False  # whether white space was added since the last word
        self._anchors: List[Tuple[int, int]] = []
        self._open = False
        self._start: Optional[Mark] = None  # of the anchor that is open, once it has text

    def add(self, text: str) -> None:
        """Add text.

        text (str): The text. White space at its ends parts it from what stands beside it.
        """
        words = text.split()
        if not words:
            self._gap = self._gap or bool(text)
            return
        if self._length and (self._gap or text[0].isspace()):
            self._append(" ")
        if self._open and self._start is None:
            self._start = self.mark()
        self._append(" ".join(words))
        self._gap = text[-1].isspace()

    def begin_anchor(self) -> bool:
        """Let an anchor begin with the text that is added next.

        RETURNS (bool): False if it would lie in another one, and none begins.
        """
        began = not self._open
        self._open = True
        return began

    def end_anchor(self) -> bool:
        """Let the anchor end with the text that was added last.

        RETURNS (bool): False if there is none: the paragraph has ended within it, or it has no letter and no digit.
        """
        start, self._open, self._start = self._start, False, None
        if start is None or not any(map(str.isalnum, self.since(start))):
            return False
        self._anchors.append((start.length, self._length))
        return True

    def extend_anchor(self, text: str) -> None:
        """Lengthen the anchor that was ended last; nothing must have been added since.

        text (str): Letters, without white space.
        """
        self._append(text)
        start, _ = self._anchors.pop()
        self._anchors.append((start, self._length))

    def mark(self) -> Mark:
        """The end of what the paragraph holds by now."""
        return Mark(len(self._parts), self._length, self._gap, len(self._anchors))

    def since(self, mark: Mark) -> str:
        """What was added after a mark."""
        return "".join(self._parts[mark.parts :])

    def rewind(self, mark: Mark) -> None:
        """Take back what was added after a mark, with an anchor that has begun there."""
        del self._parts[mark.parts :], self._anchors[mark.anchors :]
        self._length, self._gap = mark.length, mark.gap
        self._open, self._start = False, None

    def end(self) -> None:
        """End the paragraph. An anchor that is open is none."""
        if self._parts:
            self._found.append(Paragraph("".join(self._parts), self._anchors))
        self._parts, self._anchors = [], []
        self._length, self._gap = 0, False
        self._open, self._start = False, None

    def finish(self) -> List[Paragraph]:
        """RETURNS (List[Paragraph]): All paragraphs of the page."""
        self.end()
        return self._found

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
