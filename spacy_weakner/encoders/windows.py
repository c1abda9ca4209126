"""Splits Docs into the subword pieces that a Transformer reads, in one window or several overlapping ones."""

import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..errors import Errors, WeaknerError, check_range
from .queried import spaced

# Minimum number of pieces of a window, and of those that a question must leave for the text.
MIN_LENGTH, MIN_ROOM = 16, 8
USUAL_LENGTH = 256


class WindowSettings(NamedTuple):
    """The length and overlap of windows, in pieces."""

    max_length: int
    stride: int


def check_windows(max_length: Optional[int], stride: int) -> None:
    """Check the settings of an encoder that splits Docs into windows.

    RAISES (WeaknerError): If a setting is out of range.
    """
    check_range("max_length", max_length, MIN_LENGTH, None, optional=True)
    check_range("stride", stride, 0, (max_length or USUAL_LENGTH) // 2)


def window_settings(max_length: Optional[int], stride: int, positions: Optional[int]) -> WindowSettings:
    """Return the length and overlap of windows, given the settings and the number of positions of the Transformer.

    RAISES (WeaknerError): If it has too few positions.
    """
    if max_length is None:
        return WindowSettings(min(USUAL_LENGTH, positions or USUAL_LENGTH), stride)
    check_range("max_length", max_length, MIN_LENGTH, positions)
    return WindowSettings(max_length, stride)


class WindowTokenizer:
    """A tokenizer, with variants that split texts into windows.

    data (str): A tokenizer of the library tokenizers, as JSON.
    """

    def __init__(self, data: str) -> None:
        self.data = data
        marks = [step["replacement"] for step in _metaspaces(json.loads(data)) if step["prepend_scheme"] == "never"]
        # What precedes a word that follows white space.
        self.blank: str = marks[0] if marks else " "
        self.whole = self._make()
        self._cutting: Dict[Tuple[int, int, bool], Any] = {}

    def _make(self) -> Any:
        from tokenizers import Tokenizer

        made = Tokenizer.from_str(self.data)
        made.no_padding()
        made.no_truncation()
        # "[SEP]" in a text is not a separator.
        made.encode_special_tokens = True
        return made

    def cutting(self, max_length: int, stride: int, pairs: bool) -> Any:
        """Return the tokenizer that splits texts, not questions, into windows. Truncation is part of a tokenizer's
        state, which threads share, so there is one tokenizer for each setting."""
        key = (max_length, stride, pairs)
        if key not in self._cutting:
            made = self._make()
            made.enable_truncation(max_length, stride=stride, strategy="only_second" if pairs else "only_first")
            self._cutting[key] = made
        return self._cutting[key]


def mark_only_spaces(data: str) -> str:
    """Change a SentencePiece tokenizer whose pre-tokenizer puts a "▁" before every word that it is given, so that it
    puts none: then tokens without a space before them are read as in running text (see `WindowTokenizer.blank`).

    data (str): A tokenizer, as JSON.
    RETURNS (str): The tokenizer; the same if it is of another kind.
    """
    values = json.loads(data)
    found = _metaspaces(values)
    for step in found:
        step["prepend_scheme"] = "never"
    return json.dumps(values, ensure_ascii=False) if found else data


def _metaspaces(tokenizer: Dict[str, Any]) -> List[Dict[str, Any]]:
    whole = tokenizer["pre_tokenizer"] or {"type": None}
    return [step for step in whole.get("pretokenizers", [whole]) if step["type"] == "Metaspace"]


class Window(NamedTuple):
    """A text, or a part of it, in pieces; after a question, if there is one.

    ids (List[int]): The pieces, including special ones.
    types (List[int]): 0 for the first sequence, 1 for the second, as BERT requires.
    words (NDArray[numpy.int64]): Tokens of the Doc whose vectors come from this window.
    first (NDArray[numpy.int64]): Position of the first piece of each token.
    last (NDArray[numpy.int64]): Position of the last piece of each token.
    """

    ids: List[int]
    types: List[int]
    words: NDArray[numpy.int64]
    first: NDArray[numpy.int64]
    last: NDArray[numpy.int64]


def read_windows(
    tokenizer: WindowTokenizer, docs: List[Doc], queries: Sequence[str], settings: WindowSettings
) -> Iterator[List[List[Window]]]:
    """Split Docs into windows. Every token with pieces is assigned to one window: that with most of its pieces or, of
    several, that in which it is farthest from an edge.

    tokenizer (WindowTokenizer): The tokenizer.
    docs (List[Doc]): The Docs.
    queries (Sequence[str]): Questions, each of which precedes each text; empty: the text alone.
    settings (WindowSettings): Length and overlap of the windows.
    YIELDS (List[List[Window]]): For each question, the windows of each Doc; none if it has no pieces.
    RAISES (WeaknerError): If a question leaves no room for text.
    """
    # White space has no pieces.
    tokens = [numpy.asarray([token.i for token in doc if not token.is_space], dtype="int64") for doc in docs]
    words = [[spaced(doc, i, tokenizer.blank) for i in kept.tolist()] for doc, kept in zip(docs, tokens, strict=True)]
    for query in queries:
        question = [f"{tokenizer.blank}{word}" for word in query.split()]
        used = tokenizer.whole.num_special_tokens_to_add(bool(query))
        if query:
            used += len(tokenizer.whole.encode(question, is_pretokenized=True, add_special_tokens=False).ids)
        room = settings.max_length - used
        if room < MIN_ROOM:
            raise WeaknerError(Errors.WK032.format(query=query[:50], max_length=settings.max_length))
        cutting = tokenizer.cutting(settings.max_length, min(settings.stride, room // 2), bool(query))
        inputs = [(question, text) for text in words] if query else words
        encodings = cutting.encode_batch(inputs, is_pretokenized=True)
        yield [
            _windows([encoding, *encoding.overflowing], kept, int(bool(query)))
            for encoding, kept in zip(encodings, tokens, strict=True)
        ]


def _windows(encodings: List[Any], tokens: NDArray[numpy.int64], sequence: int) -> List[Window]:
    """Make the windows of a Doc. `tokens` maps the tokenizer's words to tokens; `sequence` is the text's number."""
    windows, counts, margins = [], [], []
    for encoding in encodings:
        positions = numpy.flatnonzero([number == sequence for number in encoding.sequence_ids])
        word_ids = encoding.word_ids
        owners = tokens[[word_ids[i] for i in positions.tolist()]]
        words, first, pieces = numpy.unique(owners, return_index=True, return_counts=True)
        windows.append(Window(encoding.ids, encoding.type_ids, words, positions[first], positions[first] + pieces - 1))
        counts.append(pieces)
        margins.append(numpy.minimum(first, len(positions) - first - pieces))
    if len(windows) > 1:
        windows = _best_windows(windows, counts, margins)
    return [window for window in windows if len(window.words)]


def _best_windows(windows: List[Window], counts: List[Any], margins: List[Any]) -> List[Window]:
    """Keep every word in one window only: with most of its pieces, then with the largest margin, then the first."""
    best: Dict[int, Tuple[int, int, int]] = {}
    for number, (window, pieces, distances) in enumerate(zip(windows, counts, margins, strict=True)):
        for word, *rank in zip(window.words.tolist(), pieces.tolist(), distances.tolist(), strict=True):
            best[word] = max(best.get(word, (0, -1, 0)), (rank[0], rank[1], -number))
    kept = [
        numpy.flatnonzero([best[word][2] == -number for word in window.words.tolist()])
        for number, window in enumerate(windows)
    ]
    return [
        window._replace(words=window.words[chosen], first=window.first[chosen], last=window.last[chosen])
        for window, chosen in zip(windows, kept, strict=True)
    ]
