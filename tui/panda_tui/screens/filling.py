"""Decides how a table is brought up to date without losing its place."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

Rows = Sequence[tuple[str, Sequence[Text]]]


def fill(table: DataTable[Text], rows: Rows) -> None:
    """Bring a table up to date: cell by cell, unless other rows are in it."""
    keys = [key for key, _ in rows]
    if [str(key.value) for key in table.rows] == keys:
        _update(table, rows)
        return
    at, chosen = table.cursor_row, ""
    if table.row_count:
        chosen = str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)
    table.clear()
    for key, cells in rows:
        table.add_row(*cells, key=key)
    if rows:
        table.move_cursor(row=keys.index(chosen) if chosen in keys else min(at, len(rows) - 1))
        table.call_after_refresh(_touch, table)


def _update(table: DataTable[Text], rows: Rows) -> None:
    columns = list(table.columns)
    for key, cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            if table.get_cell(key, column) != cell:
                table.update_cell(key, column, cell, update_width=True)


def _touch(table: DataTable[Text]) -> None:
    """Lines that were drawn before their columns had their width would be kept as they are."""
    if table.row_count:
        row, column = table.coordinate_to_cell_key(Coordinate(0, 0))
        table.update_cell(row, column, table.get_cell(row, column))
