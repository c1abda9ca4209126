"""Conversion of text to word pieces."""

from array import array
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Tuple

from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus.sentences import sentence_key
from ..progress import Progress
from ..runtime.hashes import hash_text

_BATCH_SIZE = 1000


@dataclass
class PieceCounts:
    """Counts of a corpus."""

    texts: int = 0  # texts to train on
    held_out: int = 0  # texts that were held out
    words: int = 0  # tokens of all texts
    pieces: int = 0  # pieces of all texts, without special ones
    split: int = 0  # texts that were split because they were too long


class Pieces:
    """Sequences of pieces, as a data set for a `Trainer`, with four bytes per piece."""

    def __init__(self) -> None:
        self._ids, self._starts = array("i"), array("q", [0])

    def add(self, ids: List[int]) -> None:
        self._ids.extend(ids)
        self._starts.append(len(self._ids))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, i: int) -> Dict[str, List[int]]:
        return {"input_ids": self._ids[self._starts[i] : self._starts[i + 1]].tolist()}


def cut_pieces(
    docs: Iterable[Doc], tokenizer: Any, *, max_length: int, eval_share: float, seed: int, progress: bool = False
) -> Tuple[Pieces, Pieces, PieceCounts]:
    """Convert texts to pieces: return the sequences to train on, those of the held-out texts, and the counts.

    Texts longer than `max_length`, special pieces included, are split. Texts are held out by their contents and the
    seed, so that equal texts are all held out or all trained on.
    """
    train, held_out, counts = Pieces(), Pieces(), PieceCounts()
    n_special = tokenizer.num_special_tokens_to_add()
    docs = Progress(docs, desc="pieces", unit="text", enabled=progress)
    for texts in minibatch(_counted(docs, counts), _BATCH_SIZE):
        for text, sequences in zip(texts, _encode(texts, tokenizer, max_length), strict=True):
            is_held_out = int(hash_text(f"{seed} {sentence_key(text)}")[:8], 16) < eval_share * 2**32
            counts.held_out += bool(sequences) and is_held_out
            counts.texts += bool(sequences) and not is_held_out
            counts.split += len(sequences) > 1
            for ids in sequences:
                counts.pieces += len(ids) - n_special
                (held_out if is_held_out else train).add(ids)
    return train, held_out, counts


def _counted(docs: Iterable[Doc], counts: PieceCounts) -> Iterator[str]:
    for doc in docs:
        text = doc.text.strip()
        if text:
            counts.words += len(doc)
            yield text


def _encode(texts: List[str], tokenizer: Any, max_length: int) -> List[List[List[int]]]:
    """Return the sequences of ids of each text; none if the tokenizer leaves nothing of the text."""
    found = tokenizer(texts, truncation=True, max_length=max_length, return_overflowing_tokens=True)
    result: List[List[List[int]]] = [[] for _ in texts]
    for ids, text in zip(found["input_ids"], found["overflow_to_sample_mapping"], strict=True):
        if len(ids) > tokenizer.num_special_tokens_to_add():
            result[text].append(ids)
    return result
