"""Every broker and process of the run in two live tables, for who wants numbers rather than a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Input, Static, TabbedContent, TabPane

from panda_tui import steering
from panda_tui.escaping import one_line, plain
from panda_tui.model import Broker, Process, Snapshot, State
from panda_tui.screens.filling import fill
from panda_tui.screens.frame import ConsoleScreen, ago

STYLES = {
    State.WAITING: "dim",
    State.STARTING: "cyan",
    State.RUNNING: "green",
    State.PAUSED: "yellow",
    State.SILENT: "bold red",
    State.ENDED: "dim",
    State.FAILED: "bold red",
}
TABLES = {"brokers": "#broker-table", "processes": "#process-table"}
BROKER_COLUMNS = (
    "broker", "state", "in/s", "out/s", "queue", "wait ms", "match µs", "MB", "subs", "advs", "clients",
    "links", "heard",
)  # fmt: skip
PROCESS_COLUMNS = ("process", "state", "host", "kind", "pid", "starts", "linked with", "ended")


def state_text(state: State) -> Text:
    return Text(str(state), STYLES[state])


class BrokersScreen(ConsoleScreen):
    title_ = "Brokers"
    manual = (
        "What brokers say of themselves, asked once a second, and what agents say of every process.\n\n"
        "A broker is **silent** when its process runs and it has not answered for a while. Enter opens"
        " it.\n\n"
        "What is done to a process goes to its agent as a line of the topology language, with the checks"
        " that the"
        " line would have in a file; pause and resume of a broker are said to the broker itself. You are"
        " asked"
        " before anything is done."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", show=False),
        Binding("slash", "search", "search", key_display="/"),
        Binding("p", "pause", "pause"),
        Binding("r", "resume", "resume"),
        Binding("R", "process('RESTART')", "restart"),
        Binding("K", "process('KILL')", "kill"),
        Binding("X", "process('REMOVE')", "remove"),
        Binding("D", "shutdown", "shut down", show=False),
        Binding("tab", "swap", "brokers/processes", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""
        self._shown: dict[str, list[str]] = {"brokers": [], "processes": []}

    def body(self) -> ComposeResult:
        search = Input(placeholder="a part of an id, host or state", id="search")
        search.display = False
        yield search
        with TabbedContent(id="tabs"):
            with TabPane("Brokers", id="brokers"):
                yield DataTable(cursor_type="row", zebra_stripes=True, id="broker-table")
            with TabPane("Processes", id="processes"):
                yield DataTable(cursor_type="row", zebra_stripes=True, id="process-table")
        yield Static("", classes="note", id="missing")

    def on_mount(self) -> None:
        for name, columns in (("broker", BROKER_COLUMNS), ("process", PROCESS_COLUMNS)):
            table = self.query_one(f"#{name}-table", DataTable)
            for column in columns:
                table.add_column(column, key=column)
        self.query_one("#broker-table").focus()

    def show(self, snapshot: Snapshot) -> None:
        brokers = [each for each in snapshot.overlay.brokers if self._fits(each.id, each.host, each.state)]
        processes = [each for each in snapshot.processes if self._fits(each.id, each.host, each.state)]
        self._fill("brokers", {each.id: broker_cells(each, snapshot) for each in brokers})
        self._fill("processes", {each.id: process_cells(each) for each in processes})
        note = self.query_one("#missing", Static)
        if snapshot.missing:
            note.update(plain(f"phase 1 waits for {'; '.join(snapshot.missing[:3])}"))
        elif not snapshot.run and not snapshot.overlay.brokers:
            note.update(plain("Nothing is watched: 1 shows the runs, Enter opens one."))
        else:
            note.update("")

    def _fits(self, *texts: str) -> bool:
        return not self._wanted or any(self._wanted in text.lower() for text in texts)

    def _fill(self, name: str, rows: Mapping[str, tuple[Text, ...]]) -> None:
        self._shown[name] = list(rows)
        fill(self._table(name), list(rows.items()))

    def _under_cursor(self, name: str) -> str:
        table = self._table(name)
        known = self._shown[name]
        return known[table.cursor_row] if 0 <= table.cursor_row < len(known) else ""

    def _table(self, name: str) -> DataTable[Text]:
        return self.query_one(TABLES[name], DataTable)

    @property
    def _active(self) -> str:
        return self.query_one("#tabs", TabbedContent).active

    @property
    def _meant_process(self) -> str:
        """The process that is meant: under the cursor, be it as a broker."""
        chosen = self._under_cursor(self._active)
        if self._active == "processes":
            return chosen
        broker = self.console_app.watched.snapshot.overlay.broker(chosen)
        return broker.process if broker is not None else ""

    @property
    def _meant_broker(self) -> str:
        chosen = self._under_cursor(self._active)
        if self._active == "brokers":
            return chosen
        process = self.console_app.watched.snapshot.process(chosen)
        return process.speaks if process is not None and process.kind == "broker" else ""

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        if self._meant_broker:
            self.console_app.open_broker(self._meant_broker)
        elif self._meant_process:
            self.console_app.show_logs(self._meant_process)

    def action_swap(self) -> None:
        tabs = self.query_one("#tabs", TabbedContent)
        tabs.active = "processes" if tabs.active == "brokers" else "brokers"
        self._table(tabs.active).focus()

    def action_search(self) -> None:
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        self._wanted = changed.value.lower()
        self.show(self.console_app.watched.snapshot)

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        submitted.input.display = bool(submitted.value)
        self._table(self._active).focus()

    def action_pause(self) -> None:
        self._say_to_broker("pause", "PAUSE")

    def action_resume(self) -> None:
        self._say_to_broker("resume", "RESUME")

    def action_shutdown(self) -> None:
        if self._meant_broker:
            app = self.console_app
            app.carry_out(steering.broker_deed(app, "shutdown", self._meant_broker))

    def _say_to_broker(self, command: str, action: str) -> None:
        """To a broker in its own words; a process that is none is stopped and continued by its agent."""
        app = self.console_app
        process = app.watched.snapshot.process(self._meant_process)
        frozen = process is not None and process.state is State.PAUSED
        if self._meant_broker and not (command == "resume" and frozen):
            app.carry_out(steering.broker_deed(app, command, self._meant_broker))
        elif self._meant_process:
            self.action_process(action)

    def action_process(self, action: str) -> None:
        app = self.console_app
        if not self._meant_process:
            app.say("this broker is no process of the run that is watched", problem=True)
            return
        app.carry_out(steering.process_deed(app, action, self._meant_process))


def broker_cells(each: Broker, snapshot: Snapshot) -> tuple[Text, ...]:
    load = each.load
    up = sum(link.up for link in snapshot.overlay.links if each.id in link.key)
    of = sum(each.id in link.key for link in snapshot.overlay.links)
    links = Text(f"{up}/{of}", "red" if up < of else "")
    heard = ago(snapshot.at - each.heard_at) if each.heard_at is not None else "never"
    return (
        plain(each.id, "bold"),
        state_text(each.state),
        Text(_number(load.rate_in)),
        Text(_number(load.rate_out)),
        Text(str(load.queue_length), "yellow" if load.queue_length else ""),
        Text(f"{load.queueing_ms:.2f}"),
        Text(f"{load.matching_us:.0f}"),
        Text(f"{load.memory_bytes / (1 << 20):.0f}"),
        Text(str(load.subscriptions)),
        Text(str(load.advertisements)),
        Text(str(len(each.clients))),
        links,
        Text(heard),
    )


def process_cells(each: Process) -> tuple[Text, ...]:
    living = each.state in (State.STARTING, State.RUNNING, State.PAUSED)
    return (
        plain(each.id, "bold"),
        state_text(each.state),
        plain(each.host),
        Text(each.kind),
        Text(str(each.pid) if living else ""),
        Text(str(each.starts)),
        plain(" ".join(each.links)),
        plain(f"{each.ended}: {one_line(each.last)[:80]}" if each.last else each.ended),
    )


def _number(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value / 1000:.1f}k"
