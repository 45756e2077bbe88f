"""The schedule as a picture of a few lines: a scale, what happens when, faults as bars, and now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.widgets import Static

from panda_tui.escaping import one_line
from panda_tui.model import Snapshot, StepRow

LANES_MAX = 6
LABEL_WIDTH = 9
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
TICK_WIDTH = 12


@dataclass(frozen=True, slots=True)
class Scale:
    """Seconds since phase 2 began, on so many columns."""

    end_s: float
    width: int

    def column(self, at_s: float) -> int:
        return min(self.width - 1, max(0, int(at_s / self.end_s * (self.width - 1))))

    def tick_s(self) -> float:
        fitting = (tick for tick in TICKS if self.end_s / tick * TICK_WIDTH <= self.width)
        return next(fitting, TICKS[-1])


class Timeline(Static):
    def __init__(self) -> None:
        super().__init__("")
        self._drawn: object = None

    def show(self, snapshot: Snapshot) -> None:
        width = max(20, self.size.width - 2 * 1 - LABEL_WIDTH)
        now_s = snapshot.since_t0_s if snapshot.state in ("running", "schedule done") else None
        end_s = max([step.at_s + (step.for_s or 0.0) for step in snapshot.steps] or [0.0])
        if now_s is not None and snapshot.state == "schedule done":
            end_s = max(end_s, now_s)
        scale = Scale(max(1.0, end_s * 1.02), width)
        drawn = (snapshot.steps, snapshot.marks, width, None if now_s is None else scale.column(now_s))
        if drawn != self._drawn:
            self._drawn = drawn
            self.update(picture(snapshot.steps, scale, now_s))


def picture(steps: Sequence[StepRow], scale: Scale, now_s: float | None) -> Text:
    rows = [_axis(scale)]
    started = [step for step in steps if step.action in ("add", "remove", "kill", "restart")]
    rows.append(("processes", _points(started, scale)))
    faults: dict[tuple[object, ...], StepRow] = {}
    for step in steps:  # a fault on a link is a step at either end
        if step.for_s or step.action in ("fault", "pause", "heal", "resume"):
            faults.setdefault((step.ends or step.process, step.text.split(" ", 1)[0], step.at_s), step)
    shown = list(faults.values())[-LANES_MAX:]
    rows += [("fault" if step.action == "fault" else step.action, _bar(step, scale)) for step in shown]
    marks = [step for step in steps if step.action == "mark"]
    if marks:
        rows.append(("marks", _labels(marks, scale)))
    text = Text(no_wrap=True, overflow="crop")
    at = None if now_s is None else scale.column(now_s)
    for label, line in rows:
        text.append(f"{label[:LABEL_WIDTH]:<{LABEL_WIDTH}}", "dim")
        if at is not None and at < len(line.plain):
            before = line.plain[at]
            line = Text.assemble(line[:at], ("│" if before in " ─" else before, "bold red"), line[at + 1 :])
        text.append_text(line)
        text.append("\n")
    return text


def _axis(scale: Scale) -> tuple[str, Text]:
    cells = ["─"] * scale.width
    tick_s, at_s = scale.tick_s(), 0.0
    while at_s <= scale.end_s:
        label = f"┬{at_s:g}"
        column = scale.column(at_s)
        if column + len(label) <= scale.width:
            cells[column : column + len(label)] = label
        at_s = round(at_s + tick_s, 6)
    return "seconds", Text("".join(cells))


def _points(steps: Sequence[StepRow], scale: Scale) -> Text:
    signs = {"add": "+", "remove": "-", "kill": "×", "restart": "↻"}
    cells: dict[int, tuple[str, str]] = {}
    for step in steps:
        style = "red" if step.error else "green" if step.actual_s is not None else ""
        column = scale.column(step.at_s)
        cells[column] = (signs[step.action] if column not in cells else "*", style)
    return _line(cells, scale.width)


def _bar(step: StepRow, scale: Scale) -> Text:
    begin = step.at_s if step.actual_s is None else step.actual_s
    first, last = scale.column(begin), scale.column(begin + (step.for_s or 0.0))
    style = "dim" if step.actual_s is None else "yellow"
    cells = dict.fromkeys(range(first, max(last, first) + 1), ("█" if step.for_s else "◆", style))
    text = one_line(step.text)
    fits = last + 2 + len(text) <= scale.width  # behind it; else before it
    start = last + 2 if fits else first - 1 - len(text)
    for number, letter in enumerate(text):
        if start + number >= 0:
            cells.setdefault(start + number, (letter, style))
    return _line(cells, scale.width)


def _labels(steps: Sequence[StepRow], scale: Scale) -> Text:
    cells: dict[int, tuple[str, str]] = {}
    for step in steps:
        style = "cyan" if step.actual_s is not None else "dim"
        for number, letter in enumerate(one_line(step.text.removeprefix("MARK ")) + " "):
            cells[scale.column(step.at_s) + number] = (letter, style)
    return _line(cells, scale.width)


def _line(cells: dict[int, tuple[str, str]], width: int) -> Text:
    text = Text()
    for column in range(width):
        letter, style = cells.get(column, (" ", ""))
        text.append(letter, style)
    return text
