"""Decides when a subscription that found its block full is written to a sheet; never which it goes to first.

Who comes late waits with a few others, and they are written together: that costs little more than writing
one. Who waits is verified one by one, which is why they are few.
"""

from __future__ import annotations

from broker_runtime.matching.block import Record
from broker_runtime.matching.layout import Layout
from broker_runtime.matching.rows import CELL_SLOTS
from broker_runtime.matching.sheet import Sheet


class Shelf:
    """The sheets of a partition, and who waits to be written."""

    __slots__ = ("_sheet_slots", "_waiting_max", "sheets", "waiting")

    def __init__(self, waiting_max: int, sheet_slots: int) -> None:
        self._waiting_max = min(waiting_max, CELL_SLOTS - 1)
        self._sheet_slots = sheet_slots
        self.waiting: list[Record] = []
        self.sheets: list[Sheet] = []

    def put(self, record: Record, layout: Layout) -> None:
        self.waiting.append(record)
        self._write(layout)

    def take_out(self, record: Record, layout: Layout) -> None:
        if record.holder is None:
            self.waiting.remove(record)
        else:
            self.waiting += record.holder.sheet.take_out(record)
            self._write(layout)

    def _write(self, layout: Layout) -> None:
        while len(self.waiting) > self._waiting_max:
            together, self.waiting = self.waiting[:CELL_SLOTS], self.waiting[CELL_SLOTS:]
            self._sheet_with_room().write(together, layout)

    def _sheet_with_room(self) -> Sheet:
        for sheet in self.sheets:
            if sheet.has_room():
                return sheet
        self.sheets.append(Sheet(self._sheet_slots))
        return self.sheets[-1]
