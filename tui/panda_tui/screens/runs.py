"""The list of runs: what there is, how it is, and what can be done with it."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable, Static

from panda.experiment.folder import RunFolder, RunRefused
from panda_tui import steering
from panda_tui.escaping import plain
from panda_tui.listing import Listing, RunRow
from panda_tui.screens.frame import ConsoleScreen, ago

AGAIN_EVERY_S = 2.0
COLUMNS = {"": 1, "run": None, "state": 14, "age": 7, "hosts": 5, "processes": 9, "verdict": None}
STYLES = {"steered": "yellow", "running": "green", "failed": "red", "gate not met": "red", "unreached": "red"}


class RunsScreen(ConsoleScreen):
    title_ = "Runs"
    manual = (
        "All runs that are kept here, the newest first. Enter opens one: from then on the other screens"
        " show it,"
        " live if it goes on, from its record if it is over.\n\n"
        "`n` loads a topology, to check it, to see what it would do, and to deploy it. A run that is"
        " marked with"
        " the space bar is compared with the one under the cursor by `c`. To delete is for runs that are"
        " over."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", priority=False),
        Binding("n", "topology", "new: load a topology"),
        Binding("s", "stop", "stop"),
        Binding("d", "delete", "delete"),
        Binding("space", "mark", "mark"),
        Binding("c", "compare", "compare"),
    ]

    class Listed(Message):
        def __init__(self, rows: list[RunRow]) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[RunRow] = []
        self._marked = ""
        self._listing: Listing | None = None

    def body(self) -> ComposeResult:
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        for name, width in COLUMNS.items():
            table.add_column(name, width=width, key=name or "mark")
        yield table
        yield Static("", classes="note", id="empty")

    def on_mount(self) -> None:
        self._listing = Listing(self.console_app.options.runs)
        self.set_interval(AGAIN_EVERY_S, self._look)
        self._look()

    def on_screen_resume(self) -> None:
        self._look()

    def _look(self) -> None:
        if self.is_current:
            self._list()

    @work(thread=True, exclusive=True, group="list")
    def _list(self) -> None:
        assert self._listing is not None
        try:
            rows = self._listing.rows()
        except RunRefused as refused:
            self.app.call_from_thread(self.console_app.say, str(refused), problem=True)
            return
        self.post_message(self.Listed(rows))

    def on_runs_screen_listed(self, message: Listed) -> None:
        table = self.query_one(DataTable)
        chosen = self._chosen
        self._rows = message.rows
        table.clear()
        for row in message.rows:
            table.add_row(
                "*" if row.id == self._marked else "",
                plain(row.id, "bold" if row.id == self.console_app.watched.snapshot.run else ""),
                Text(row.state, STYLES.get(row.state, "")),
                ago(self.console_app.clock() - row.began),
                str(row.hosts),
                str(row.processes),
                plain(row.verdict),
                key=row.id,
            )
        if chosen is not None and any(row.id == chosen.id for row in message.rows):
            table.move_cursor(row=table.get_row_index(chosen.id), animate=False)
        where = self.console_app.options.runs
        self.query_one("#empty", Static).update(
            "" if message.rows else plain(f"There are no runs in {where}/ yet: n loads a topology.")
        )

    @property
    def _chosen(self) -> RunRow | None:
        table = self.query_one(DataTable)
        return self._rows[table.cursor_row] if 0 <= table.cursor_row < len(self._rows) else None

    def _folder(self, row: RunRow) -> RunFolder:
        return RunFolder(self.console_app.options.runs / row.id)

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        if (row := self._chosen) is not None:
            self.console_app.open_run(self._folder(row))

    def action_topology(self) -> None:
        self.console_app.load_topology()

    def action_stop(self) -> None:
        if (row := self._chosen) is not None:
            if row.over:
                self.console_app.say(f"{row.id} is over already")
                return
            self.console_app.carry_out(steering.stop_deed(self.console_app, self._folder(row)))

    def action_delete(self) -> None:
        if (row := self._chosen) is not None:
            self._delete(self._folder(row))

    @work(thread=True, exclusive=True, group="delete")
    def _delete(self, folder: RunFolder) -> None:
        app = self.console_app
        if folder.over and not folder.held:
            app.call_from_thread(app.carry_out, steering.delete_deed(folder))
        else:
            app.call_from_thread(app.say, f"{folder.id} is not over: stop it first", problem=True)

    def action_mark(self) -> None:
        if (row := self._chosen) is not None:
            self._marked = "" if self._marked == row.id else row.id
            self.post_message(self.Listed(self._rows))

    def action_compare(self) -> None:
        row = self._chosen
        if row is None or not self._marked or self._marked == row.id:
            self.console_app.say("mark one run with the space bar, and put the cursor on another")
            return
        self.console_app.compare(self._marked, row.id)
