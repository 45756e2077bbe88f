"""What the processes say, as one text in the order of corrected time: filtered, searched, followed."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from panda_tui.escaping import plain
from panda_tui.logbook import Line, Logbook, Page
from panda_tui.model import Snapshot
from panda_tui.screens.frame import ConsoleScreen

LINES_MAX = 20_000
READ_EVERY_S = 0.4
READ_EVERY_PROCESS_S = 0.02  # a hundred processes are read every two seconds
SHORT = {"stderr": "err", "stdout": "out", "log": "log"}
STREAMS = tuple(SHORT)


class LogView(ScrollView, can_focus=True):
    """Lines, of which only those that are seen are drawn."""

    def __init__(self, page: Page) -> None:
        super().__init__(id="log")
        self.page = page
        self.at = -1  # the line that was jumped to
        self.zero: float | None = None  # when phase 2 began
        self.width_of_process = 8
        self.following = True

    def redraw(self) -> None:
        longest = max((len(line.text) for line in self.page.shown), default=0)
        self.virtual_size = Size(longest + self.width_of_process + 20, len(self.page.shown))
        if self.following:
            self.scroll_end(animate=False, force=True)
        self.refresh()

    def jump(self, number: int) -> None:
        self.at = number
        self.following = False
        self.scroll_to(y=max(0, number - self.size.height // 2), animate=False, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number = y + round(self.scroll_offset.y)
        if not 0 <= number < len(self.page.shown):
            return Strip.blank(self.size.width, self.rich_style)
        line = self.page.shown[number]
        base = self.rich_style + Style(reverse=number == self.at)
        text = base + Style(color="red", bold=True) if line.wrong else base
        dim = base + Style(dim=True)
        width = self.width_of_process
        time_ = f"{'' if line.timed else '≤'}{self._time(line.at)}"
        segments = [
            Segment(f"{time_:>13} ", dim),
            Segment(f"{line.process[:width]:<{width}} ", base + Style(bold=True)),
            Segment(f"{SHORT[line.stream]} ", dim),
            Segment(line.text, text),
        ]
        x = round(self.scroll_offset.x)
        return Strip(segments).crop_extend(x, x + self.size.width, base)

    def _time(self, at: float) -> str:
        if self.zero is not None:
            return f"{at - self.zero:.3f}"
        return time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at % 1 * 1000):03d}"


class LogsScreen(ConsoleScreen):
    title_ = "Logs"
    manual = (
        "What all processes print, complain about and log, in one order: the times of logs are corrected"
        " by the"
        " clocks that were compared. Times are seconds since phase 2 began. Standard output and error say"
        " no time;"
        " their lines stand where they were read.\n\n"
        "Publications, deliveries and counters are left out until `t` shows them. A filter is words that"
        " all have"
        " to be in the line, its stream or its process: `Bob log link`."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("ctrl+f", "search", "search"),
        Binding("e", "error(1)", "next error"),
        Binding("E", "error(-1)", "error before"),
        Binding("n", "again(1)", "next match", show=False),
        Binding("N", "again(-1)", "match before", show=False),
        Binding("f", "follow", "follow"),
        Binding("t", "traffic", "traffic"),
        Binding("escape", "close", "close", show=False),
    ]

    class Came(Message):
        def __init__(self, lines: list[Line], run: str) -> None:
            super().__init__()
            self.lines = lines
            self.run = run

    def __init__(self) -> None:
        super().__init__()
        self._page = Page(LINES_MAX)
        self._run = ""
        self._processes: dict[str, str] = {}
        self._filter = ""
        self._traffic = False
        self._needle = ""
        self._asked = "filter"
        self._stop = threading.Event()

    def body(self) -> ComposeResult:
        yield LogView(self._page)
        entry = Input(id="entry")
        entry.display = False
        yield entry
        yield Static("", classes="note", id="about")

    def on_mount(self) -> None:
        self.query_one(LogView).focus()

    def on_unmount(self) -> None:
        self._stop.set()

    def only(self, process: str) -> None:
        """What this process says, and nothing else."""
        self._filter = process
        if self.is_mounted:
            self._choose()

    def show(self, snapshot: Snapshot) -> None:
        view = self.query_one(LogView)
        view.zero = snapshot.t0
        processes = {each.id: each.host for each in snapshot.processes}
        if (snapshot.run, processes) != (self._run, self._processes):
            if snapshot.run != self._run:
                self._page = view.page = Page(LINES_MAX)
            self._run, self._processes = snapshot.run, processes
            view.width_of_process = min(16, max(map(len, processes), default=8))
            self._page.choose(self._filter, traffic=self._traffic)
            self._follow_logs(snapshot.run, processes)
        self._tell()

    @work(thread=True, exclusive=True, group="logs")
    def _follow_logs(self, run: str, processes: dict[str, str]) -> None:
        worker, watch = get_current_worker(), self.console_app.watched
        book = Logbook(processes, STREAMS)
        pause_s = max(READ_EVERY_S, READ_EVERY_PROCESS_S * len(processes))
        while not (worker.is_cancelled or self._stop.is_set()) and self.console_app.watched is watch:
            offsets = {host.name: host.offset_s or 0.0 for host in watch.snapshot.hosts}
            if self.is_current:
                came = book.more(watch.read_log, offsets, time.time())
                if came and not worker.is_cancelled:
                    self.post_message(self.Came(came, run))
            self._stop.wait(pause_s)

    def on_logs_screen_came(self, message: Came) -> None:
        if message.run == self._run and self._page.add(message.lines):
            self.query_one(LogView).redraw()
            self._tell()

    def _tell(self) -> None:
        view = self.query_one(LogView)
        said = [f"{len(self._page.shown)} lines of {len(self._processes)} processes"]
        if self._filter:
            said.append(f"with {self._filter!r}")
        if not self._traffic:
            said.append("without traffic")
        said.append("following" if view.following else "not following")
        self.query_one("#about", Static).update(plain(", ".join(said)))

    def _choose(self) -> None:
        view = self.query_one(LogView)
        self._page.choose(self._filter, traffic=self._traffic)
        view.at = -1
        view.redraw()
        self._tell()

    def action_filter(self) -> None:
        self._ask("filter", self._filter, "words that all have to be there")

    def action_search(self) -> None:
        self._ask("search", self._needle, "text to look for")

    def _ask(self, what: str, value: str, placeholder: str) -> None:
        entry = self.query_one("#entry", Input)
        self._asked = what
        entry.placeholder = placeholder
        entry.value = value
        entry.display = True
        entry.focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        if self._asked == "filter":
            self._filter = changed.value
            self._choose()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        if self._asked == "search":
            self._needle = submitted.value
            self.action_again(1)
        self.action_close()

    def action_close(self) -> None:
        self.query_one("#entry", Input).display = False
        self.query_one(LogView).focus()

    def action_error(self, step: int) -> None:
        self._jump(self._page.next_wrong(self._here(step), step), "no error there")

    def action_again(self, step: int) -> None:
        if self._needle:
            self._jump(
                self._page.next_match(self._needle, self._here(step), step), f"no {self._needle!r} there"
            )

    def _here(self, step: int) -> int:
        view = self.query_one(LogView)
        if view.at >= 0:
            return view.at
        return -1 if step > 0 else len(self._page.shown)

    def _jump(self, number: int | None, otherwise: str) -> None:
        if number is None:
            self.console_app.say(otherwise)
        else:
            self.query_one(LogView).jump(number)
            self._tell()

    def action_follow(self) -> None:
        view = self.query_one(LogView)
        view.following = not view.following
        view.redraw()
        self._tell()

    def action_traffic(self) -> None:
        self._traffic = not self._traffic
        self._choose()
