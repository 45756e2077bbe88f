"""One broker: how it fares, whom it is linked with, what its tables hold, what it logs; and steering it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import DataTable, Input, Static, TabbedContent, TabPane

from broker_runtime.client import ClientError
from broker_runtime.language import LanguageError
from panda_tui import steering
from panda_tui.broker_words import facts_of, link_cells, names_of
from panda_tui.escaping import lines, one_line, plain
from panda_tui.failures import words_of_failure
from panda_tui.model import Broker, Snapshot, State
from panda_tui.overlay.details import STATE_STYLE
from panda_tui.routing import Entry, LinkRow, Tables, covered, covering, first_covering, search, tables_of
from panda_tui.screens.filling import fill
from panda_tui.screens.frame import ConsoleScreen
from panda_tui.sparks import METRICS, History, spark

TABLES_EVERY_S = 2.0
LOG_EVERY_S = 1.0
LOG_LINES = 200
SPARK_MIN = 8
ROWS_MAX = 500
STREAM = "log"
ENTRY_COLUMNS = ("id", "from", "text", "covered by")
LINK_COLUMNS = (
    "peer",
    "is a",
    "link",
    "in",
    "out",
    "MB in",
    "MB out",
    "queue",
    "unacked",
    "dropped",
    "waits for",
)

MANUAL = """\
The bars show the last minutes since this screen was opened, each as high as the highest.

**Links** are neighbours and clients. **Subscriptions** and **Advertisements** are the routing tables: where
each came from, and which other covers it; the line below says all about the chosen one. `/` searches them: a
part of an id, a hop or a text, or a publication such as `[class,'STOCK'],[price,20]`, which finds what it
matches. What only concerns brokers being asked and telling of themselves is left out; `v` shows it too.

**Pause** makes the broker hold publications, **resume** lets it go on; **shut down** has it say goodbye and
end. **Restart** and **kill** are done by the agent on its host, when the broker is one of the run. You are
asked first.
"""


@dataclass
class TablesRead(Message):
    tables: Tables
    coverers: dict[str, str]


@dataclass
class LogRead(Message):
    text: str


@dataclass
class ReadFailed(Message):
    """What could not be read, and why."""

    where: str
    why: str


class BrokerScreen(ConsoleScreen):
    title_ = "Broker"
    manual = MANUAL
    pace_s = 0.5
    CSS = """
    BrokerScreen #vitals { height: auto; padding: 0 1; }
    BrokerScreen #facts { height: auto; padding: 0 1; color: $text-muted; }
    BrokerScreen TabbedContent { height: 1fr; }
    BrokerScreen TabPane { padding: 0; }
    BrokerScreen DataTable { height: 1fr; }
    BrokerScreen #chosen { height: auto; max-height: 5; padding: 0 1; background: $surface; }
    BrokerScreen #search { display: none; height: 1; border: none; padding: 0 1; }
    BrokerScreen #log-text { height: auto; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "steer('pause')", "pause"),
        Binding("r", "steer('resume')", "resume"),
        Binding("D", "steer('shutdown')", "shut down"),
        Binding("R", "process('RESTART')", "restart"),
        Binding("K", "process('KILL')", "kill"),
        # At once, by priority: who types fast has typed the first letter already.
        Binding("slash", "search", "search", key_display="/", priority=True),
        Binding("left_square_bracket", "tab(-1)", "previous tab", key_display="[", show=False),
        Binding("right_square_bracket", "tab(1)", "next tab", key_display="]", show=False),
        Binding("v", "control", "control entries too", show=False),
        Binding("escape", "back", "back", show=False),
    ]

    def __init__(self, broker_id: str) -> None:
        super().__init__()
        self.broker_id = broker_id
        self._history = History()
        self._tables = Tables()
        self._coverers: dict[str, str] = {}
        self._listed: dict[str, tuple[Entry, ...]] = {}
        self._problems: dict[str, str] = {}
        self._wanted = ""
        self._control = False  # whether entries about brokers themselves are shown

    def body(self) -> ComposeResult:
        yield Static(id="vitals")
        yield Static(id="facts")
        with TabbedContent(initial="links"):
            with TabPane("Links", id="links"):
                yield DataTable(id="links-table", cursor_type="row", zebra_stripes=True)
            with TabPane("Subscriptions", id="subscriptions"):
                yield DataTable(id="subscriptions-table", cursor_type="row", zebra_stripes=True)
            with TabPane("Advertisements", id="advertisements"):
                yield DataTable(id="advertisements-table", cursor_type="row", zebra_stripes=True)
            with TabPane("Log", id="log-pane"), VerticalScroll(id="log-scroll"):
                yield Static(id="log-text")
        yield Input(id="search", placeholder="a part of it, or [class,'X'],…", compact=True)
        yield Static(id="chosen")

    def on_mount(self) -> None:
        self.table("links").add_columns(*LINK_COLUMNS)
        for kind in ("subscriptions", "advertisements"):
            self.table(kind).add_columns(*ENTRY_COLUMNS)
        self.table("links").focus()
        self.query_one("#log-scroll").anchor()  # stays at the end until somebody scrolls up
        self.run_worker(self._keep_tables(), group="tables", exit_on_error=False)
        self.run_worker(self._keep_log(), group="log", exit_on_error=False)

    def table(self, kind: str) -> DataTable[Text]:
        return self.query_one(f"#{kind}-table", DataTable)

    @property
    def tab(self) -> str:
        return self.query_one(TabbedContent).active

    # How it fares

    def show(self, snapshot: Snapshot) -> None:
        broker = snapshot.overlay.broker(self.broker_id) or Broker(self.broker_id, State.SILENT)
        self._history.take(broker.load, broker.heard_at)
        self.query_one("#vitals", Static).update(self._vitals(broker))
        self.query_one("#facts", Static).update(facts_of(broker, snapshot))

    def on_resize(self) -> None:
        if self.is_mounted:
            self.show(self.console_app.watched.snapshot)

    def _vitals(self, broker: Broker) -> Text:
        """Two figures to a line, or all on fewer lines when there is room."""
        columns = 3 if self.size.width >= 150 else 2
        cell = max(30, (self.size.width - 2) // columns)
        label = max(len(metric.name) for metric in METRICS)
        text = Text(one_line(broker.id), "bold", no_wrap=True, overflow="ellipsis")
        text.append(f"  {broker.state}", f"not bold {STATE_STYLE.get(broker.state, '')}")
        for number, metric in enumerate(METRICS):
            text.append("\n" if number % columns == 0 else " ")
            values = self._history.values(metric)
            last = next((value for value in reversed(values) if value is not None), 0.0)
            shown = metric.text(last)
            text.append(f"{metric.name:<{label}} ", "not bold dim")
            text.append(f"{shown:>7} ", "not bold")
            text.append(spark(values, max(SPARK_MIN, cell - label - 10)), "not bold cyan")
        return text

    # What its tables hold

    async def _keep_tables(self) -> None:
        known: Tables | None = None
        while True:
            try:
                answer = await self.console_app.watched.control(self.broker_id, "tables")
                known = await asyncio.to_thread(tables_of, answer.tables(), known)
                coverers = await asyncio.to_thread(first_covering, known.subscriptions)
                self.post_message(TablesRead(known, coverers))
            except (ClientError, ValueError, OSError) as error:
                self.post_message(ReadFailed("tables", words_of_failure(error)))
            await asyncio.sleep(TABLES_EVERY_S)

    def on_tables_read(self, message: TablesRead) -> None:
        self._tables, self._coverers = message.tables, message.coverers
        self._problems.pop("tables", None)
        self._fill_links(message.tables.links)
        self._fill_entries()

    def on_read_failed(self, message: ReadFailed) -> None:
        self._problems[message.where] = message.why
        if message.where == "log":
            self.query_one("#log-text", Static).update(plain(message.why, "dim"))
        self._show_chosen()

    def _fill_links(self, rows: Iterable[LinkRow]) -> None:
        fill(self.table("links"), [(row.role + row.peer, link_cells(row)) for row in rows])

    def _fill_entries(self) -> None:
        for kind, entries in (
            ("subscriptions", self._tables.subscriptions),
            ("advertisements", self._tables.advertisements),
        ):
            found = self._found(entries)
            shown = found[:ROWS_MAX]
            self._listed[kind] = tuple(shown)
            cells = [
                (
                    f"{entry.hop}\n{entry.id}",
                    (
                        plain(entry.id),
                        plain(entry.hop),
                        plain(entry.text),
                        plain(self._coverers.get(entry.id, ""), "dim"),
                    ),
                )
                for entry in shown
            ]
            fill(self.table(kind), cells)
            total = len(self._of_interest(entries))
            count = f"{len(found)}/{total}" if self._wanted else str(total)
            hidden = len(entries) - total
            label = f"{kind.capitalize()} {count}" + (f" +{hidden} control" if hidden else "")
            self.query_one(TabbedContent).get_tab(kind).label = label
        self._show_chosen()

    def _found(self, entries: tuple[Entry, ...]) -> list[Entry]:
        try:
            found = search(self._of_interest(entries), self._wanted)
        except LanguageError as error:
            self._problems["search"] = error.problems[0].pointing()
            return self._of_interest(entries)
        self._problems.pop("search", None)
        return found

    def _of_interest(self, entries: tuple[Entry, ...]) -> list[Entry]:
        return [entry for entry in entries if self._control or not entry.is_control]

    def action_control(self) -> None:
        self._control = not self._control
        self._fill_entries()

    def _show_chosen(self) -> None:
        self.query_one("#chosen", Static).update(self._chosen())

    def _chosen(self) -> Text:
        for where in ("search", "tables"):
            if where in self._problems:
                return lines(self._problems[where])
        kind = self.tab
        entries = self._listed.get(kind, ())
        at = self.table(kind).cursor_row if entries else -1
        if not 0 <= at < len(entries):
            return Text()
        entry = entries[at]
        every = self._tables.subscriptions if kind == "subscriptions" else self._tables.advertisements
        text = plain(entry.text)
        text.no_wrap = False
        text.append(f"\n{one_line(entry.id)} from {one_line(entry.hop)}", "dim")
        if entry.meaning is None:
            text.append("; it is not understood here", "yellow")
            return text
        for word, others in (("covered by", covering(entry, every)), ("covers", covered(entry, every))):
            if others:
                text.append(f"\n{word} ", "bold")
                text.append(names_of(others))
        return text

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self._show_chosen()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on a neighbour goes there."""
        event.stop()
        key = str(event.row_key.value)
        if self.tab == "links" and key.startswith("broker"):
            self.console_app.open_broker(key.removeprefix("broker"))

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        event.stop()
        if not isinstance(self.focused, Input):
            self._focus_tab()
        self._show_chosen()

    def _focus_tab(self) -> None:
        if self.tab == "log-pane":
            self.query_one("#log-scroll").focus()
        else:
            self.table(self.tab).focus()

    # What it logs

    async def _keep_log(self) -> None:
        told = ""
        while True:
            try:
                text = await self._tail()
                if text != told:
                    told = text
                    self.post_message(LogRead(text))
            except Exception as error:  # whatever keeps us from a remote file is told where it would be shown
                self.post_message(ReadFailed("log", words_of_failure(error)))
            await asyncio.sleep(LOG_EVERY_S)

    async def _tail(self) -> str:
        broker = self.console_app.watched.snapshot.overlay.broker(self.broker_id)
        if broker is None or not broker.process:
            return "This broker is of no run that is watched: its log is not within reach."
        return await self.console_app.tail(broker.process, STREAM, LOG_LINES)

    def on_log_read(self, message: LogRead) -> None:
        self.query_one("#log-text", Static).update(lines(message.text))

    # Searching

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a field, / is a letter."""
        return action != "search" or not isinstance(self.focused, Input)

    def action_search(self) -> None:
        if self.tab not in ("subscriptions", "advertisements"):
            self.query_one(TabbedContent).active = "subscriptions"
        field = self.query_one("#search", Input)
        field.display = True
        self.set_focus(field)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._wanted = event.value
        self._fill_entries()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_search()

    def _close_search(self) -> None:
        field = self.query_one("#search", Input)
        field.display = bool(self._wanted)
        self._focus_tab()

    def action_back(self) -> None:
        field = self.query_one("#search", Input)
        if field.display:
            field.value = ""
            self._wanted = ""
            self._close_search()
            self._fill_entries()
        else:
            self.dismiss()

    def action_tab(self, by: int) -> None:
        known = ("links", "subscriptions", "advertisements", "log-pane")
        self.query_one(TabbedContent).active = known[(known.index(self.tab) + by) % len(known)]

    # Steering

    def action_steer(self, command: str) -> None:
        self.console_app.carry_out(steering.broker_deed(self.console_app, command, self.broker_id))

    def action_process(self, action: str) -> None:
        broker = self.console_app.watched.snapshot.overlay.broker(self.broker_id)
        try:
            deed = steering.process_deed(self.console_app, action, broker.process if broker else "")
        except steering.NotThere as refused:
            self.console_app.say(str(refused), problem=True)
        else:
            self.console_app.carry_out(deed)
