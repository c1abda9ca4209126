"""Text as word pieces on disk, so that a corpus need not fit into memory, and several processes can share it."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List

import numpy
from spacy.tokens import Doc
from spacy.util import minibatch

from ..corpus.sentences import sentence_key
from ..files import parse_json, write_text
from ..progress import Progress
from ..runtime.hashes import hash_text
from ..runtime.stage import Statistics

TRAIN, HELD_OUT = "train", "held-out"
_COUNTS = "counts.json"
_BATCH_SIZE = 1000
_ARRAYS: Dict[str, Any] = {"ids": numpy.int32, "ends": numpy.int64}


@dataclass
class PieceCounts(Statistics):
    """Counts of a corpus."""

    texts: int = 0  # texts to train on
    held_out: int = 0  # texts that were held out
    words: int = 0  # tokens of the corpus in both
    pieces: int = 0  # their pieces, without special ones
    split: int = 0  # texts that were too long, and were split


class Pieces:
    """Sequences of pieces on disk, as `write_pieces` wrote them to a folder: a data set for a `Trainer`."""

    def __init__(self, folder: Path) -> None:
        self._arrays = {name: _open(folder / name, dtype) for name, dtype in _ARRAYS.items()}
        self.lengths = numpy.diff(self._arrays["ends"], prepend=0)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> Dict[str, List[int]]:
        """The ids of a sequence."""
        end = self._arrays["ends"][i]
        return {"input_ids": self._arrays["ids"][end - self.lengths[i] : end].tolist()}


def write_pieces(
    docs: Iterable[Doc],
    tokenizer: Any,
    folder: Path,
    *,
    max_length: int,
    eval_share: float,
    seed: int,
    progress: bool = False,
) -> PieceCounts:
    """Cut texts into pieces, and hold a share of them out. If it was done before, it is not done again.

    Longer texts than `max_length`, special pieces included, are split. What is held out depends on the contents and the
    seed, so that equal texts are all held out or all trained on.
    """
    if not (folder / _COUNTS).exists():
        counts, n_special = PieceCounts(), tokenizer.num_special_tokens_to_add()
        with ExitStack() as stack:
            writers = {name: _Writer(folder / name, stack) for name in (TRAIN, HELD_OUT)}
            docs = Progress(docs, desc="pieces", unit="text", enabled=progress)
            for texts in minibatch(_counted(docs, counts), _BATCH_SIZE):
                for text, sequences in zip(texts, _encode(texts, tokenizer, max_length), strict=True):
                    held_out = int(hash_text(f"{seed} {sentence_key(text)}")[:8], 16) < eval_share * 2**32
                    counts.held_out += bool(sequences) and held_out
                    counts.texts += bool(sequences) and not held_out
                    counts.split += len(sequences) > 1
                    for ids in sequences:
                        counts.pieces += len(ids) - n_special
                        writers[HELD_OUT if held_out else TRAIN].add(ids)
        write_text(folder / _COUNTS, json.dumps(counts.to_json()) + "\n")
    return read_counts(folder)


def read_counts(folder: Path) -> PieceCounts:
    """What `write_pieces` did in a folder."""
    return PieceCounts.from_json(parse_json((folder / _COUNTS).read_bytes()))


def _counted(docs: Iterable[Doc], counts: PieceCounts) -> Iterator[str]:
    for doc in docs:
        text = doc.text.strip()
        if text:
            counts.words += len(doc)
            yield text


def _encode(texts: List[str], tokenizer: Any, max_length: int) -> List[List[List[int]]]:
    """Per text its sequences of ids. A text of which the tokenizer leaves nothing has none."""
    found = tokenizer(texts, truncation=True, max_length=max_length, return_overflowing_tokens=True)
    result: List[List[List[int]]] = [[] for _ in texts]
    for ids, text in zip(found["input_ids"], found["overflow_to_sample_mapping"], strict=True):
        if len(ids) > tokenizer.num_special_tokens_to_add():
            result[text].append(ids)
    return result


class _Writer:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {name: stack.enter_context((folder / name).open("wb")) for name in _ARRAYS}
        self._end = 0

    def add(self, ids: List[int]) -> None:
        self._end += len(ids)
        for (name, dtype), values in zip(_ARRAYS.items(), (ids, [self._end]), strict=True):
            self._files[name].write(numpy.array(values, dtype=dtype).tobytes())


def _open(path: Path, dtype: Any) -> numpy.ndarray:
    # An empty file cannot be mapped.
    return numpy.memmap(path, dtype, mode="r") if path.stat().st_size else numpy.zeros(0, dtype)
