"""Which sequences each step of masked-language-model training sees, and with which masks.

All draws come from seed, epoch and sequence, and not from the state of a generator. So a run that was stopped goes on
with the batches and masks that it would have had, and any number of processes train on the same. (With a
`DataCollatorForLanguageModeling` it would not: the first masks after a checkpoint are drawn before its state is read.)
"""

import math
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy

from .pieces import FIRST, SPECIAL, Pieces

# (epoch, number of the sequence): what a mask is drawn for.
Draw = Tuple[int, int]
IGNORED = -100
HELD_OUT_EPOCH = 2**31
# Sequences are sorted by length within so many batches.
_SORTED_BATCHES = 50


class Plan(NamedTuple):
    """How to train.

    steps (int): Number of steps.
    batch_size (int): Sequences per step, all processes together.
    mask_rate, whole_word, seed: See `adapt.adapt`.
    """

    steps: int
    batch_size: int
    mask_rate: float
    whole_word: bool
    seed: int


class Schedule:
    """Which sequences every step trains on.

    lengths (numpy.ndarray): Lengths of the sequences. Batches hold similar ones, which saves padding.
    plan (Plan): Steps, batch size and seed.
    process (int): Number of this process.
    processes (int): How many share the sequences of a step.
    """

    def __init__(self, lengths: numpy.ndarray, plan: Plan, process: int = 0, processes: int = 1) -> None:
        self.lengths = lengths
        self.plan = plan
        self.process, self.processes = process, processes

    def __len__(self) -> int:
        return self.plan.steps

    def __iter__(self) -> Iterator[List[Draw]]:
        """The share of this process in the batch of every step."""
        step = epoch = 0
        while True:
            for batch in self.epoch(epoch):
                if step == self.plan.steps:
                    return
                yield [(epoch, int(i)) for i in batch[self.process :: self.processes]]
                step += 1
            epoch += 1

    def epoch(self, epoch: int) -> List[numpy.ndarray]:
        """The batches of an epoch, which hold every sequence once."""
        size, n = self.plan.batch_size, len(self.lengths)
        rng = numpy.random.default_rng([self.plan.seed, epoch])
        order = rng.permutation(n)
        chunk = size * max(1, min(_SORTED_BATCHES, n // (4 * size)))
        chunks: List[numpy.ndarray] = []
        for start in range(0, n, chunk):
            part = order[start : start + chunk]
            part = part[numpy.argsort(self.lengths[part], kind="stable")]
            # Up and down in turn, so that batches across a border hold similar ones too.
            chunks.append(part[::-1] if len(chunks) % 2 else part)
        batches = numpy.array_split(numpy.concatenate(chunks), math.ceil(n / size))
        return [batches[i] for i in rng.permutation(len(batches))]


class MaskedPieces:
    """Sequences with masks, drawn anew for every epoch. Of the pieces to predict, 80 % become the mask, 10 % a random
    piece, and 10 % stay (Devlin et al. 2019).

    pieces (Pieces): The sequences.
    tokenizer (Any): Tells the ids of special pieces.
    plan (Plan): Rate, whole words, seed.
    """

    def __init__(self, pieces: Pieces, tokenizer: Any, plan: Plan) -> None:
        self.pieces = pieces
        self.plan = plan
        self.mask, self.pad, self.n_ids = tokenizer.mask_token_id, tokenizer.pad_token_id, len(tokenizer)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, draw: Draw) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """Inputs and labels; labels are `IGNORED` where nothing is to be predicted."""
        ids, kinds = self.pieces[draw[1]]
        rng = numpy.random.default_rng([self.plan.seed, *draw])
        units = numpy.cumsum(kinds == FIRST) if self.plan.whole_word else numpy.arange(len(ids))
        chosen = (rng.random(len(ids) + 1) < self.plan.mask_rate)[units] & (kinds != SPECIAL)
        fate = rng.random(len(ids))
        others = rng.integers(self.n_ids, size=len(ids))
        inputs = numpy.where(chosen & (fate < 0.8), self.mask, numpy.where(chosen & (fate >= 0.9), others, ids))
        return inputs, numpy.where(chosen, ids, IGNORED)

    def collate(self, items: List[Tuple[numpy.ndarray, numpy.ndarray]]) -> Dict[str, numpy.ndarray]:
        """A batch, padded to its longest sequence."""
        width = max(len(ids) for ids, _ in items)
        shape = (len(items), width)
        inputs, labels, mask = numpy.full(shape, self.pad), numpy.full(shape, IGNORED), numpy.zeros(shape, dtype=int)
        for row, (ids, wanted) in enumerate(items):
            inputs[row, : len(ids)], labels[row, : len(ids)], mask[row, : len(ids)] = ids, wanted, 1
        return {"input_ids": inputs, "attention_mask": mask, "labels": labels}
