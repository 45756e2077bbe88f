"""A topology before it is a run: its text with what is wrong at its lines, and what it would do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Button, Checkbox, DataTable, Input, Static, TabbedContent, TabPane, TextArea

from panda.experiment.folder import RunRefused
from panda.hosts.loopback import NoNetwork
from panda.hosts.sources.refusal import SourceRefused
from panda.topology.problems import Problem, Reading, TopologyRefused
from panda_tui.deploying import Order, preview, variables_of
from panda_tui.escaping import lines, one_line, plain
from panda_tui.screens.frame import ConsoleScreen

AGAIN_EVERY_S = 1.0
SUFFIXES = (".txt", ".yaml", ".yml", ".j2", ".topo")


class PathSuggester(Suggester):
    """The first file or folder that goes on like what was typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return await asyncio.to_thread(suggestion_for, value)


def suggestion_for(value: str) -> str | None:
    typed = Path(value).expanduser()
    folder, begin = (typed, "") if value.endswith("/") else (typed.parent, typed.name)
    try:
        fitting = sorted(each for each in folder.iterdir() if each.name.startswith(begin))
    except OSError:
        return None
    for each in fitting:
        if each.name.startswith(".") or not (each.is_dir() or each.suffix in SUFFIXES):
            continue
        return value + each.name[len(begin) :] + ("/" if each.is_dir() else "")
    return None


class TopologyScreen(ConsoleScreen):
    title_ = "Topology"
    manual = (
        "A topology file, read again whenever it changes on disk. Its problems stand below with line,"
        " column and"
        " hint; Enter on one goes to its line. **Plan** shows exactly what a deployment would do.\n\n"
        "**Local** puts every host of the file on a loopback address of this machine. Otherwise hosts are"
        " reached"
        " over SSH: at the addresses of the file, or as an inventory says."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("ctrl+r", "validate", "validate"),
        Binding("ctrl+l", "plan", "plan"),
        Binding("ctrl+d", "deploy", "deploy", priority=True),
    ]
    CSS = """
    TopologyScreen #form { height: auto; }
    TopologyScreen Horizontal { height: auto; }
    TopologyScreen Input { width: 1fr; }
    TopologyScreen TextArea { height: 1fr; min-height: 4; }
    TopologyScreen TabbedContent { height: 1fr; min-height: 6; }
    TopologyScreen Button { margin-left: 1; min-width: 10; }
    """

    class Understood(Message):
        def __init__(self, reading: Reading, text: str) -> None:
            super().__init__()
            self.reading = reading
            self.text = text

    class Planned(Message):
        def __init__(self, text: str, *, refused: bool = False) -> None:
            super().__init__()
            self.text = text
            self.refused = refused

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self._path = path
        self._seen: object = None
        self._problems: tuple[Problem, ...] = ()
        self._reading: Reading | None = None

    def body(self) -> ComposeResult:
        with Vertical(id="form"):
            with Horizontal():
                path = Input(self._path, placeholder="topology file", suggester=PathSuggester(), id="path")
                path.compact = True
                yield path
                yield Checkbox("local", True, id="local", compact=True)
            with Horizontal():
                variables = Input(placeholder="variables: brokers=5 …", id="variables", compact=True)
                yield variables
                yield Input(placeholder="inventory (or local)", id="inventory", compact=True)
                yield Button("Deploy", variant="primary", id="deploy", compact=True, disabled=True)
        yield TextArea("", read_only=True, show_line_numbers=True, id="text")
        with TabbedContent(id="below"):
            with TabPane("Problems", id="problems"):
                yield DataTable(cursor_type="row", id="problem-table")
            with TabPane("Plan", id="plan"), VerticalScroll():
                yield Static("", id="plan-text")
        yield Static("", classes="note", id="summary")

    def on_mount(self) -> None:
        table = self.query_one("#problem-table", DataTable)
        for name in ("line", "col", "", "problem", "hint"):
            table.add_column(name, key=name or "severity")
        self.set_interval(AGAIN_EVERY_S, self._look)
        self.query_one("#path", Input).focus()
        self._look()

    @property
    def order(self) -> Order:
        """As filled in; ValueError says which variable is none."""
        inventory = self.query_one("#inventory", Input).value.strip()
        return Order(
            Path(self.query_one("#path", Input).value.strip()).expanduser(),
            variables_of(self.query_one("#variables", Input).value),
            local=self.query_one("#local", Checkbox).value,
            inventory=Path(inventory).expanduser() if inventory else None,
        )

    def on_input_changed(self) -> None:
        self._look()

    def on_checkbox_changed(self) -> None:
        self._look()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        self.action_validate()
        self.query_one("#text").focus()

    def _look(self) -> None:
        """Read it again if it, or what was filled in, has changed."""
        if not self.is_current:
            return
        try:
            order = self.order
        except ValueError as error:
            self._say(str(error))
            return
        try:
            there = order.path.stat()
            sign: object = (order, there.st_mtime_ns, there.st_size)
        except OSError:
            sign = (order, None)
        if repr(sign) != self._seen and order.path.name:
            self._seen = repr(sign)
            self._read(order)

    @work(thread=True, exclusive=True, group="read")
    def _read(self, order: Order) -> None:
        try:
            text = order.path.read_text(encoding="utf-8", errors="replace")[:1_000_000]
        except OSError:
            text = ""
        reading = order.read()
        self.post_message(self.Understood(reading, text))
        if not reading.refused:
            self.post_message(_planned(order))

    def on_topology_screen_understood(self, message: Understood) -> None:
        area = self.query_one("#text", TextArea)
        shown = lines(message.text).plain
        if area.text != shown:
            area.load_text(shown)
        self._reading, self._problems = message.reading, message.reading.problems
        table = self.query_one("#problem-table", DataTable)
        table.clear()
        for problem in self._problems:
            style = "bold red" if problem.refuses else "yellow"
            table.add_row(
                str(problem.place.line or ""),
                str(problem.place.column or ""),
                Text(str(problem.severity), style),
                plain(problem.message),
                plain(problem.hint),
            )
        topology = message.reading.topology
        summary = topology.summary() if topology is not None else "not readable"
        count = len(self._problems)
        problems = f"; {count} problem{'s' * (count != 1)}" if count else "; no problems"
        self._say(summary + problems)
        self.query_one("#deploy", Button).disabled = message.reading.refused
        self.query_one("#below", TabbedContent).active = "problems" if count else "plan"
        if message.reading.refused:
            self.query_one("#plan-text", Static).update("There is no plan as long as there are errors.")

    def on_topology_screen_planned(self, message: Planned) -> None:
        self.query_one("#plan-text", Static).update(lines(message.text))
        if message.refused:
            self.query_one("#deploy", Button).disabled = True
            self._say(message.text)

    def on_data_table_row_selected(self, selected: DataTable.RowSelected) -> None:
        place = self._problems[selected.cursor_row].place
        area = self.query_one("#text", TextArea)
        if place.line:
            area.move_cursor((place.line - 1, max(0, place.column - 1)), center=True)
            area.select_line(place.line - 1)
        area.focus()

    def _say(self, text: str) -> None:
        self.query_one("#summary", Static).update(plain(text))

    def on_button_pressed(self) -> None:
        self.action_deploy()

    def action_back(self) -> None:
        self.dismiss()

    def action_validate(self) -> None:
        self._seen = None
        self._look()

    def action_plan(self) -> None:
        self.query_one("#below", TabbedContent).active = "plan"

    def action_deploy(self) -> None:
        if self._reading is None or self._reading.refused:
            self.console_app.say("there are problems: it cannot be deployed", problem=True)
            return
        try:
            order = self.order
        except ValueError as error:
            self.console_app.say(str(error), problem=True)
            return
        assert self._reading.topology is not None
        self.console_app.deploy(order, self._reading.topology.summary())


def _planned(order: Order) -> TopologyScreen.Planned:
    from typer import BadParameter

    from panda.cli.plan import text_of

    try:
        return TopologyScreen.Planned(text_of(preview(order), commands=True))
    except (TopologyRefused, SourceRefused) as refused:
        return TopologyScreen.Planned("; ".join(map(str, refused.problems)), refused=True)
    except (RunRefused, NoNetwork, OSError) as refused:
        return TopologyScreen.Planned(one_line(refused), refused=True)
    except BadParameter as refused:
        return TopologyScreen.Planned(refused.message, refused=True)
