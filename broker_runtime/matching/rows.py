"""Decides how long rows of bits lie in memory, and how slots are read out of them; never what a row means."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

CELL_SLOTS: Final = 16
# Keeps a slab below 4 MB: from there on numpy asks for huge pages, and one touch fills two megabytes.
ROWS_PER_SLAB = 64
SLOTS_SHOWN_FIRST = 4096
# Rows whose distance is a power of two would compete for the same few lines of the processor's cache.
PADDING_WORDS: Final = 8

Words = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.bool_]


class Rows:
    """Rows of equal length, in slabs, so that a new row moves no other. All are cut off at what is in use."""

    __slots__ = ("_shown", "_slabs", "_words", "shown")

    def __init__(self, words: int) -> None:
        self._words = words
        self._shown = min(words, SLOTS_SHOWN_FIRST // 64)
        self._slabs: list[Words] = []
        self.shown: list[Words] = []

    def add(self) -> int:
        number = len(self.shown)
        slab, row = divmod(number, ROWS_PER_SLAB)
        if not row:
            # Memory that was never touched is not there: neither unused rows nor unused slots take any.
            self._slabs.append(np.zeros((ROWS_PER_SLAB, self._words + PADDING_WORDS), np.uint64))
        self.shown.append(self._slabs[slab][row, : self._shown])
        return number

    def show(self, words: int) -> None:
        self._shown = words
        for number in range(len(self.shown)):
            slab, row = divmod(number, ROWS_PER_SLAB)
            self.shown[number] = self._slabs[slab][row, :words]

    def write(self, cell: int, bits: Bits) -> None:
        """Set the cell in all rows, to one line of bits for each."""
        column = np.packbits(bits, axis=None, bitorder="little").view(np.uint16)
        for number, slab in enumerate(self._slabs):
            part = column[number * ROWS_PER_SLAB : (number + 1) * ROWS_PER_SLAB]
            slab.view(np.uint16)[: len(part), cell] = part


def slots_in(row: Words) -> list[int]:
    """The numbers of the bits that are set, ascending."""
    slots: list[int] = _places(row).tolist()
    return slots


def keys_in(row: Words, keys: npt.NDArray[Any]) -> list[Any]:
    """The keys of the slots whose bits are set."""
    found: list[Any] = keys[_places(row)].tolist()
    return found


def _places(row: Words) -> npt.NDArray[np.intp]:
    # The methods, and booleans for words: `flatnonzero` takes three times as long on so few.
    words = row.astype(np.bool_).nonzero()[0]
    if 2 * len(words) > len(row):
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        return bits.view(np.bool_).nonzero()[0]
    bits = np.unpackbits(row[words].view(np.uint8), bitorder="little")
    places = bits.view(np.bool_).nonzero()[0]
    slots: npt.NDArray[np.intp] = words[places >> 6] << 6 | places & 63
    return slots


def put(row: Words, slots: list[int]) -> None:
    row_bytes = row.view(np.uint8)
    for slot in slots:
        row_bytes[slot >> 3] |= 1 << (slot & 7)


def clear(row: Words, slots: list[int]) -> None:
    row_bytes = row.view(np.uint8)
    for slot in slots:
        row_bytes[slot >> 3] &= ~(1 << (slot & 7)) & 0xFF
