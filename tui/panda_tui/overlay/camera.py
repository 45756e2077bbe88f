"""Decides which part of a layout is seen, and how large: slots become cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from panda_tui.overlay.layout import Placed, Point

ZOOM_FACTOR: Final = 1.4
"""Between two steps, at most."""
MARGIN_COLUMNS: Final = 4
MARGIN_ROWS: Final = 1


@dataclass(frozen=True, slots=True)
class Slot:
    """Columns and rows of a slot."""

    columns: float
    rows: float


@dataclass(frozen=True, slots=True)
class Camera:
    """Looks at a point, at a step between 0, where all is seen, and `steps`, where slots are full size."""

    x: float
    y: float
    step: int
    steps: int
    fit: Slot
    full: Slot
    width: int
    height: int

    @property
    def slot(self) -> Slot:
        share = self.step / self.steps if self.steps else 1.0
        return Slot(
            self.fit.columns ** (1 - share) * self.full.columns**share,
            self.fit.rows ** (1 - share) * self.full.rows**share,
        )

    def cell(self, point: Point, slot: Slot) -> tuple[int, int]:
        """Column and row; of what is out of sight too. The slot is handed in: it is dear to compute."""
        return (
            math.floor((point[0] - self.x) * slot.columns + self.width / 2),
            math.floor((point[1] - self.y) * slot.rows + self.height / 2),
        )

    def zoomed(self, by: int) -> Camera:
        return replace(self, step=min(self.steps, max(0, self.step + by)))

    def panned(self, columns: float, rows: float) -> Camera:
        slot = self.slot
        return replace(self, x=self.x + columns / slot.columns, y=self.y + rows / slot.rows)

    def at(self, point: Point) -> Camera:
        return replace(self, x=point[0], y=point[1])

    def seeing(self, point: Point) -> Camera:
        """Moved just so far that the point is well in sight."""
        slot = self.slot
        columns = max(0.0, (self.width / 2 - slot.columns / 2 - 1) / slot.columns)
        rows = max(0.0, (self.height / 2 - slot.rows / 2) / slot.rows)
        return replace(
            self,
            x=min(point[0] + columns, max(point[0] - columns, self.x)),
            y=min(point[1] + rows, max(point[1] - rows, self.y)),
        )

    def within(self, box: tuple[float, float, float, float]) -> Camera:
        """Moved so that it does not look past the edges."""
        left, top, right, bottom = box
        return replace(self, x=min(right, max(left, self.x)), y=min(bottom, max(top, self.y)))


def camera_for(placed: Placed, full: Slot, width: int, height: int) -> Camera:
    """One that sees everything."""
    left, top, right, bottom = placed.box
    across, down = right - left, bottom - top
    columns, rows = max(1, width - 2 * MARGIN_COLUMNS), max(1, height - 2 * MARGIN_ROWS)
    fit = Slot(
        min(full.columns, columns / (across + 0.5) if across else full.columns),
        min(full.rows, rows / (down + 0.5) if down else full.rows),
    )
    ratio = max(full.columns / fit.columns, full.rows / fit.rows)
    steps = math.ceil(math.log(ratio) / math.log(ZOOM_FACTOR) - 1e-9)
    return Camera((left + right) / 2, (top + bottom) / 2, 0, steps, fit, full, width, height)
