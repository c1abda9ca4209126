"""A hash table of numbers that looks up many keys at once."""

from dataclasses import dataclass
from typing import Optional

import numpy
from numpy.typing import NDArray

Ids = NDArray[numpy.uint64]
Ints = NDArray[numpy.uint32]

# Odd, near 2**64 / golden ratio: spreads keys that lie close together (Knuth, The Art of Computer Programming 3, 6.4).
_SPREAD = numpy.uint64(0x9E3779B97F4A7C15)
_HALF = numpy.uint64(32)


@dataclass(frozen=True, eq=False)
class HashTable:
    """A map from uint64 keys to uint32 values, neither of them 0, by open addressing. If a slot is taken, those 1,
    1 + 2, 1 + 2 + 3, ... behind it are tried: with a power of two as the number of slots that reaches them all.

    keys (Ids): Shape (n_slots,), a power of two; 0 where a slot is empty.
    values (Ints): Shape (n_slots,).
    """

    keys: Ids
    values: Ints

    @classmethod
    def build(cls, keys: Ids, values: Optional[Ints] = None) -> "HashTable":
        """Fill a table. At least half of the slots stay empty, which keeps ways short.

        keys (Ids): Different keys, none of them 0.
        values (Optional[Ints]): Their values, none of them 0; None: 1, 2, ...
        RETURNS (HashTable): The table.
        """
        if values is None:
            values = numpy.arange(1, len(keys) + 1, dtype="uint32")
        n_slots = 1 << max(3, (2 * len(keys) - 1).bit_length())
        table = cls(numpy.zeros(n_slots, dtype="uint64"), numpy.zeros(n_slots, dtype="uint32"))
        slots = table._slots(keys)
        waiting, step = numpy.arange(len(keys)), 0
        while len(waiting):
            free = waiting[table.keys[slots[waiting]] == 0]
            # Of keys that want the same slot the first gets it: the last assignment counts.
            table.keys[slots[free[::-1]]] = keys[free[::-1]]
            settled = table.keys[slots[waiting]] == keys[waiting]
            placed = waiting[settled]
            table.values[slots[placed]] = values[placed]
            waiting = waiting[~settled]
            step += 1
            slots[waiting] = (slots[waiting] + step) & (n_slots - 1)
        return table

    def find(self, keys: Ids) -> Ints:
        """Look keys up.

        keys (Ids): Shape (n,).
        RETURNS (Ints): Shape (n,): the values; 0 for keys that are not there.
        """
        slots = self._slots(keys)
        there = self.keys[slots]
        hit = there == keys
        found = numpy.where(hit, self.values[slots], numpy.uint32(0))
        # Where another key sits, other slots are tried, until the key is found or a slot is empty.
        rows = numpy.flatnonzero(~hit & (there != 0))
        slots, step = slots[rows], 0
        while len(rows):
            step += 1
            slots = (slots + step) & (len(self.keys) - 1)
            there = self.keys[slots]
            hit = there == keys[rows]
            found[rows[hit]] = self.values[slots[hit]]
            going_on = ~hit & (there != 0)
            rows, slots = rows[going_on], slots[going_on]
        return found

    def is_sound(self, highest: int) -> bool:
        """Whether look-ups end soon and give no value above `highest`: for tables that come from a file."""
        return (
            len(self.keys) == len(self.values) > 0
            and len(self.keys) & (len(self.keys) - 1) == 0
            and 2 * int(numpy.count_nonzero(self.keys)) <= len(self.keys)
            and bool(((self.keys == 0) == (self.values == 0)).all())
            and int(self.values.max()) <= highest
        )

    def _slots(self, keys: Ids) -> NDArray[numpy.int64]:
        spread = (keys * _SPREAD) >> _HALF
        slots: NDArray[numpy.int64] = ((spread * numpy.uint64(len(self.keys))) >> _HALF).astype("int64")
        return slots
