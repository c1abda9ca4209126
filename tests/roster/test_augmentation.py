"""What may take the place of a word. Nothing here needs a model."""

import numpy
import pytest

from spacy_weakner.roster.augmentation import (
    BYTE_LEVEL,
    CONTINUES,
    SENTENCE_PIECE,
    Piece,
    Slot,
    Vocabulary,
    find_marker,
    read_piece,
    restore_case,
    sample,
)

WORD_PIECE = ["[MASK]", "paris", "new", "##ing", "##er", "went", ",", "Paris", "London", "to", "I", "##", "[unused7]"]


def marked(mark):
    """Pieces with a mark where words begin."""
    words = [f"{mark}{word}" for word in ("paris", "new", "went", ",", "Paris", "London", "to", "I", "")]
    return ["<mask>", *words[:2], "ing", "er", *words[2:]]


BYTES = [*marked("Ġ"), "ĠÃ©t", "Ã", "Ċ"]
SENTENCE = [*marked("▁"), "北", "<0x0A>"]


def vocabulary(tokens, uncased=False):
    return Vocabulary([*tokens, None], {0}, uncased)


def replace(tokens, word, old, new, start=0, end=None, uncased=False):
    """Replace a piece of a word by another; both as they stand in the vocabulary."""
    slot = Slot(0, tokens.index(old), start, len(word) if end is None else end)
    return vocabulary(tokens, uncased).replace(word, slot, tokens.index(new))


# Pieces


@pytest.mark.parametrize(
    "tokens, marker", [(WORD_PIECE, CONTINUES), (BYTES, BYTE_LEVEL), (SENTENCE, SENTENCE_PIECE), ([None], CONTINUES)]
)
def test_marker(tokens, marker):
    assert find_marker(tokens) == marker


@pytest.mark.parametrize(
    "token, marker, piece",
    [
        ("new", CONTINUES, ("new", True)),
        ("##ing", CONTINUES, ("ing", False)),
        ("##", CONTINUES, ("", False)),
        ("Ġnew", BYTE_LEVEL, ("new", True)),
        ("ing", BYTE_LEVEL, ("ing", False)),
        ("Ġ", BYTE_LEVEL, ("", True)),
        ("ĠÃ©t", BYTE_LEVEL, ("ét", True)),
        ("æĹ¥", BYTE_LEVEL, ("日", False)),
        ("Ã", BYTE_LEVEL, ("\ufffd", False)),
        ("Ċ", BYTE_LEVEL, ("\n", False)),
        ("▁new", SENTENCE_PIECE, ("new", True)),
        ("ing", SENTENCE_PIECE, ("ing", False)),
        ("▁", SENTENCE_PIECE, ("", True)),
    ],
)
def test_pieces(token, marker, piece):
    assert read_piece(token, marker) == Piece(*piece)


def test_what_is_no_text():
    for tokens in (WORD_PIECE, BYTES, SENTENCE):
        words = vocabulary(tokens)
        assert words[0] is None and words[-1] is None and words[len(tokens)] is None and words[1000] is None
    assert vocabulary(WORD_PIECE)[12] is None and vocabulary(SENTENCE)[13] is None


@pytest.mark.parametrize("tokens", [WORD_PIECE, BYTES, SENTENCE])
def test_slots(tokens):
    words = vocabulary(tokens)
    assert words.find_slot([2, 3], [0, 3], [3, 6]) == Slot(0, 2, 0, 3)
    assert words.find_slot([], [], []) is None
    # The mask, as a word of the text.
    assert words.find_slot([0], [0], [6]) is None
    # Two pieces of one character, as after "ﬁ" has become "fi".
    assert words.find_slot([2, 3], [0, 0], [1, 1]) is None


def test_slots_behind_a_bare_marker():
    assert vocabulary(SENTENCE).find_slot([11, 12], [0, 0], [1, 1]) == Slot(1, 12, 0, 1)
    assert vocabulary(SENTENCE).find_slot([11, 12, 3], [0, 0, 1], [0, 1, 4]) == Slot(1, 12, 0, 1)
    assert vocabulary(SENTENCE).find_slot([11], [0], [1]) is None
    # A part of a character has no text, and what follows is not the beginning of the word.
    assert vocabulary(BYTES).find_slot([11, 13, 3], [0, 0, 1], [0, 1, 4]) is None


# The rules


@pytest.mark.parametrize("tokens, marked", [(WORD_PIECE, ""), (BYTES, "Ġ"), (SENTENCE, "▁")])
@pytest.mark.parametrize(
    "word, old, new, expected",
    [
        ("paris", "paris", "new", "new"),
        ("Paris", "Paris", "London", "London"),
        ("Paris", "Paris", "paris", None),
        ("paris", "paris", "Paris", None),
        ("I", "I", "London", "London"),
        ("paris", "paris", ",", ","),
        ("Paris", "Paris", ",", None),
        ("PARIS", "Paris", "Paris", "PARIS"),
    ],
)
def test_capitals(tokens, marked, word, old, new, expected):
    assert replace(tokens, word, marked + old, marked + new) == expected


@pytest.mark.parametrize(
    "tokens, old, new, expected",
    [
        (WORD_PIECE, "new", "##ing", None),
        (WORD_PIECE, "##er", "new", None),
        (WORD_PIECE, "##er", "##ing", "inging"),
        (WORD_PIECE, "new", "[MASK]", None),
        (WORD_PIECE, "new", "[unused7]", None),
        (WORD_PIECE, "##er", "##", None),
        (WORD_PIECE, "[MASK]", "new", None),
        (BYTES, "Ġnew", "ing", None),
        (BYTES, "er", "Ġnew", None),
        (BYTES, "er", "ing", "inging"),
        (BYTES, "Ġnew", "<mask>", None),
        (BYTES, "Ġnew", "Ġ", None),
        (BYTES, "er", "Ã", None),
        (BYTES, "er", "Ċ", None),
        (BYTES, "Ġnew", "ĠÃ©t", "éting"),
        (SENTENCE, "▁new", "ing", None),
        (SENTENCE, "北", "▁new", None),
        (SENTENCE, "北", "er", "ering"),
        (SENTENCE, "▁new", "▁", None),
        (SENTENCE, "er", "<0x0A>", None),
    ],
)
def test_kinds_of_pieces(tokens, old, new, expected):
    word = {"北": "北ing", "##er": "ering", "er": "ering"}.get(old, "newing")
    assert replace(tokens, word, old, new, end=len(word) - 3) == expected


def test_inner_pieces_never_change():
    assert replace(WORD_PIECE, "newing", "new", "went", end=3) == "wenting"
    # What the tokenizer drops from the beginning stays too.
    assert replace(WORD_PIECE, "\u200dnewing", "new", "went", start=1, end=4) == "\u200dwenting"


def test_ids_without_piece_are_refused():
    slot = Slot(0, 1, 0, 5)
    assert vocabulary(WORD_PIECE).replace("paris", slot, 1000) is None


# Uncased tokenizers


@pytest.mark.parametrize(
    "text, surface, word, expected",
    [
        ("investment", "Swiss", "Swiss", "Investment"),
        ("france", "USA", "USA", "FRANCE"),
        ("france", "usa", "usa", "france"),
        ("we", "I", "I", "We"),
        ("uk", "U", "U.S.", "UK"),
        ("al", "Mc", "McDonald", "Al"),
        ("al", "IBM", "IBMer", "AL"),
        ("her", "i", "iPhone", "her"),
        ("last", "2010", "2010", "last"),
        (",", "Anna", "Anna", ","),
        ("f16", "B2", "B2", "F16"),
        ("a", "ÉTÉ", "ÉTÉ", "A"),
    ],
)
def test_case_is_restored(text, surface, word, expected):
    assert restore_case(text, surface, word) == expected


@pytest.mark.parametrize(
    "word, end, expected", [("Paris", 5, "New"), ("PARIS", 5, "NEW"), ("paris", 5, "new"), ("Parisian", 5, "Newian")]
)
def test_uncased(word, end, expected):
    assert replace(WORD_PIECE, word, "paris", "new", end=end, uncased=True) == expected
    assert replace(WORD_PIECE, word, "paris", "paris", end=end, uncased=True) == word


def test_the_same_piece_leaves_the_word_as_it_is():
    # Accents and case are gone in the piece, not in the word.
    assert replace(WORD_PIECE, "PÁris", "paris", "paris", uncased=True) == "PÁris"


# Draws


def test_sampling_follows_the_softmax():
    chances = numpy.array([0.5, 0.3, 0.15, 0.05])
    draws = (numpy.arange(10000) + 0.5) / 10000
    chosen = sample(numpy.tile(numpy.log(chances) + 7, (10000, 1)), draws)
    assert numpy.bincount(chosen) / 10000 == pytest.approx(chances, abs=1e-3)


@pytest.mark.parametrize("draw", [0.0, 0.5, numpy.nextafter(1.0, 0.0)])
def test_sampling_at_the_borders(draw):
    assert sample(numpy.array([[3.0]]), numpy.array([draw])).tolist() == [0]
    assert sample(numpy.array([[0.0, -1e4]], dtype="float32"), numpy.array([draw])).tolist() == [0]
    assert sample(numpy.zeros((1, 7), dtype="float32"), numpy.array([draw]))[0] in range(7)
    assert len(sample(numpy.zeros((0, 5)), numpy.zeros(0))) == 0
