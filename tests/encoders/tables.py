"""A small table of word pieces."""

import json
from pathlib import Path

import numpy

from spacy_weakner.linear.pieces import PieceTable, half

VOCAB = ["[UNK]", "anna", "bob", "paris", "went", "to", "new", "york", "##s", "##er", "an"]


def tokenizer():
    return json.dumps(
        {
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Lowercase"},
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {piece: i for i, piece in enumerate(VOCAB)},
            },
        }
    )


def table(width=6, seed=0):
    vectors = numpy.random.RandomState(seed).normal(size=(len(VOCAB), width))
    return PieceTable(tokenizer(), half(vectors))


def write_table(folder: Path) -> Path:
    """Write it into a folder that exists."""
    table().save(folder)
    return folder
