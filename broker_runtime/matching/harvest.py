"""Decides how the keys of surviving slots are read out of rows; never drops or adds one."""

from __future__ import annotations

from typing import Any

import numpy as np

from broker_runtime.matching.block import slots_of

SLOTS_ONE_BY_ONE_MAX = 32


class Harvest:
    """The keys found so far. Rows with many bits wait, to be unpacked in one go."""

    __slots__ = ("_rows", "keys")

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self._rows: list[tuple[int, list[Any]]] = []

    def reap(self, row: int, keys: list[Any]) -> None:
        if row.bit_count() > SLOTS_ONE_BY_ONE_MAX:
            self._rows.append((row, keys))
        else:
            self.keys += [keys[slot] for slot in slots_of(row)]

    def finish(self) -> list[Any]:
        if self._rows:
            self._unpack()
        return self.keys

    def _unpack(self) -> None:
        width = max(len(keys) for _, keys in self._rows) // 8 + 1
        packed = b"".join([row.to_bytes(width, "little") for row, _ in self._rows])
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        places = np.flatnonzero(bits.view(np.bool_))
        ordinals, slots = np.divmod(places, 8 * width)
        ends = np.searchsorted(ordinals, np.arange(1, len(self._rows) + 1)).tolist()
        numbers = slots.tolist()
        start = 0
        for (_, keys), end in zip(self._rows, ends, strict=True):
            self.keys += map(keys.__getitem__, numbers[start:end])
            start = end


def keys_of(row: int, keys: list[Any]) -> list[Any]:
    """What a harvest of this one row gives, for small tables."""
    count = row.bit_count()
    if count == len(keys):
        return keys.copy()
    if count <= SLOTS_ONE_BY_ONE_MAX:
        return [keys[slot] for slot in slots_of(row)]
    harvest = Harvest()
    harvest.reap(row, keys)
    return harvest.finish()
