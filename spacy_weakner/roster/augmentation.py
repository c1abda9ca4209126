"""Contextual augmentation (Meng et al. 2021, "RoSTER", Equation 7): decides which pieces that a masked language model
predicts for a masked word may replace it, and makes the new word.

The code is independent of the model. A *piece* is an entry of a tokenizer's vocabulary, like "##ing", "Ġnew" or "▁new".
"""

import re
from typing import Collection, Dict, List, NamedTuple, Optional, Sequence

import numpy
from numpy.typing import NDArray

# Markers of word piece, byte-level BPE and sentencepiece that distinguish pieces that begin a word from those that
# continue one. The first marks pieces that continue a word, the others pieces that begin one.
CONTINUES, BYTE_LEVEL, SENTENCE_PIECE = "##", "\u0120", "\u2581"
_BROKEN = "\ufffd"
# Entries without text: single bytes, and reserved places of some vocabularies.
_NO_TEXT = re.compile(r"<0x[0-9A-F]{2}>|[\[<]unused_?[0-9]+[\]>]|madeupword[0-9]+")


class Piece(NamedTuple):
    """The content of a vocabulary entry.

    text (str): Its text; empty if it is only a marker.
    begins (bool): True if it begins a word.
    """

    text: str
    begins: bool


class Slot(NamedTuple):
    """The first piece of a word, which may be replaced.

    number (int): Its index among the pieces of the word.
    piece (int): Its id.
    start (int): Start of its text in the word.
    end (int): End of its text in the word.
    """

    number: int
    piece: int
    start: int
    end: int


def find_marker(tokens: Sequence[Optional[str]]) -> str:
    """Find the marker that a vocabulary uses.

    tokens (Sequence[Optional[str]]): The vocabulary's entries.
    RETURNS (str): `CONTINUES`, `BYTE_LEVEL` or `SENTENCE_PIECE`: the one with which most entries begin.
    """
    counts = {
        marker: sum(token is not None and token.startswith(marker) for token in tokens)
        for marker in (CONTINUES, BYTE_LEVEL, SENTENCE_PIECE)
    }
    return max(counts, key=lambda marker: counts[marker])


def read_piece(token: str, marker: str) -> Piece:
    """Split an entry of the vocabulary into marker and text.

    token (str): The entry.
    marker (str): The marker of the vocabulary.
    RETURNS (Piece): Its content.
    """
    marked = token.startswith(marker)
    text = token[len(marker) :] if marked else token
    if marker == CONTINUES:
        return Piece(text, not marked)
    if marker == BYTE_LEVEL:
        # A piece may contain only a part of a character.
        text = bytes(_BYTES[c] for c in text if c in _BYTES).decode("utf-8", errors="replace")
    return Piece(text, marked)


class Vocabulary:
    """The pieces of a tokenizer by their ids.

    tokens (Sequence[Optional[str]]): The vocabulary's entries by id; None for unused ids.
    special (Collection[int]): Ids of special pieces without text, such as the mask.
    uncased (bool): Whether the tokenizer lower-cases texts.
    """

    def __init__(self, tokens: Sequence[Optional[str]], special: Collection[int], uncased: bool) -> None:
        marker = find_marker(tokens)
        self.uncased = uncased
        self._pieces: List[Optional[Piece]] = [
            None if token is None or i in special or _NO_TEXT.fullmatch(token) else read_piece(token, marker)
            for i, token in enumerate(tokens)
        ]

    def __getitem__(self, i: int) -> Optional[Piece]:
        """Return the piece with an id; None if it has no text. (A model may predict ids that no piece has.)"""
        return self._pieces[i] if 0 <= i < len(self._pieces) else None

    def find_slot(self, ids: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Optional[Slot]:
        """Find the first piece of a word that has text. (Sentencepiece often splits off the marker as a piece.)

        ids (Sequence[int]): The pieces of the word.
        starts (Sequence[int]): Start of each piece in the word.
        ends (Sequence[int]): End of each piece.
        RETURNS (Optional[Slot]): None if it cannot be replaced: it is unknown or special, or ends within a character.
        """
        for i, id_ in enumerate(ids):
            piece = self[id_]
            if piece is None or _BROKEN in piece.text:
                return None
            if piece.text:
                if i + 1 < len(ids) and starts[i + 1] < ends[i]:
                    return None
                return Slot(i, id_, starts[i], ends[i])
        return None

    def replace(self, word: str, slot: Slot, predicted: int) -> Optional[str]:
        """Replace the first piece of a word by a predicted piece. The prediction must begin a word if, and only if, the
        replaced piece does, and must start with an upper-case letter if, and only if, the replaced piece does.

        With an uncased tokenizer, predictions are in lower case, and get the case of the replaced piece.

        word (str): The word.
        slot (Slot): Its first piece.
        predicted (int): Id of the prediction.
        RETURNS (Optional[str]): The new word; None if the prediction is rejected.
        """
        if predicted == slot.piece:
            return word
        old, new = self[slot.piece], self[predicted]
        if old is None or new is None or new.begins != old.begins:
            return None
        if not new.text or _BROKEN in new.text or any(c.isspace() for c in new.text):
            return None
        surface = word[slot.start : slot.end]
        text = restore_case(new.text, surface, word) if self.uncased else new.text
        if not self.uncased and _is_capitalized(text) != _is_capitalized(surface):
            return None
        return word[: slot.start] + text + word[slot.end :]


def restore_case(text: str, surface: str, word: str) -> str:
    """Convert a lower-case text to the case of the text that it replaces.

    text (str): The text.
    surface (str): The replaced text.
    word (str): The word that begins with it, which distinguishes "I" from the "U" of "USA", a word in upper case.
    RETURNS (str): "investment" for "Swiss" becomes "Investment", for "USA" "INVESTMENT".
    """
    if not _is_capitalized(surface):
        return text
    letters = _letters(surface) if len(_letters(surface)) > 1 else _letters(word)
    if len(letters) > 1 and letters.isupper():
        return text.upper()
    return text[:1].upper() + text[1:]


def sample(scores: NDArray[numpy.floating], draws: NDArray[numpy.floating]) -> NDArray[numpy.intp]:
    """Sample from softmax distributions.

    scores (NDArray[numpy.floating]): Scores of the choices, before the softmax. Shape (n, n_choices).
    draws (NDArray[numpy.floating]): Uniform random numbers in [0, 1). Shape (n,).
    RETURNS (NDArray[numpy.intp]): The choices. Shape (n,).
    """
    weights = numpy.exp(scores.astype("float64") - scores.max(axis=1, keepdims=True))
    borders = numpy.cumsum(weights, axis=1)
    found = (borders <= draws[:, None] * borders[:, -1:]).sum(axis=1)
    # Rounding must not lead beyond the last choice.
    return numpy.asarray(numpy.minimum(found, scores.shape[1] - 1))


def _is_capitalized(text: str) -> bool:
    return text[:1].isupper()


def _letters(text: str) -> str:
    return "".join(c for c in text if c.isalpha())


def _byte_characters() -> Dict[str, int]:
    """Return the characters that represent bytes in byte-level vocabularies: printable ones of Latin-1 represent
    themselves, and those from 256 on represent the other bytes, in their order."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(byte): byte for byte in printable}, **{chr(256 + i): byte for i, byte in enumerate(others)}}


_BYTES = _byte_characters()
