"""The hosts of the run: their agents, clocks, load and disk, what runs there, and the doctor."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import DataTable, Static

from panda.hosts.doctor import Report, Verdict
from panda_tui.escaping import lines, one_line, plain
from panda_tui.model import HostRow, Process, Snapshot, State
from panda_tui.screens.filling import fill
from panda_tui.screens.frame import ConsoleScreen

COLUMNS = ("host", "agent", "clock ms", "± ms", "drift ppm", "load", "disk", "memory", "running", "faults")
DISK_LOW_BYTES = 1 << 30


class HostsScreen(ConsoleScreen):
    title_ = "Hosts"
    manual = (
        "What each host's agent tells: how far its clock is ahead of ours and how surely, its load, its"
        " free disk"
        " and memory, how many processes of the run live there, and faults that are on. Below, the host"
        " under the"
        " cursor with its processes and troubles.\n\n"
        "A host that is lost is looked for until it answers; its agent goes on meanwhile.\n\n"
        "`d` has the doctor look at the host under the cursor, `D` at all of them: login, Python, disk,"
        " clock,"
        " speed. Nothing is changed on any host."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "doctor", "doctor"),
        Binding("D", "doctor_all", "doctor for all"),
        Binding("l", "logs", "logs", show=False),
    ]
    CSS = """
    HostsScreen #host-table { height: 2fr; }
    HostsScreen VerticalScroll { height: 1fr; min-height: 5; border-top: solid $panel; padding: 0 1; }
    """

    class Examined(Message):
        def __init__(self, report: Report) -> None:
            super().__init__()
            self.report = report

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[str] = []
        self._reports: dict[str, Report] = {}
        self._examined: set[str] = set()  # being examined now

    def body(self) -> ComposeResult:
        yield DataTable(cursor_type="row", zebra_stripes=True, id="host-table")
        with VerticalScroll(can_focus=False):
            yield Static("", id="details")

    def on_mount(self) -> None:
        table = self.query_one("#host-table", DataTable)
        for column in COLUMNS:
            table.add_column(column, key=column)
        table.focus()

    def show(self, snapshot: Snapshot) -> None:
        table = self.query_one("#host-table", DataTable)
        running: dict[str, list[Process]] = {}
        for process in snapshot.processes:
            running.setdefault(process.host, []).append(process)
        self._shown = [host.name for host in snapshot.hosts]
        fill(table, [(host.name, _cells(host, running.get(host.name, []))) for host in snapshot.hosts])
        self._show_details(snapshot)

    def on_data_table_row_highlighted(self) -> None:
        self._show_details(self.console_app.watched.snapshot)

    @property
    def _chosen(self) -> str:
        row = self.query_one("#host-table", DataTable).cursor_row
        return self._shown[row] if 0 <= row < len(self._shown) else ""

    def _show_details(self, snapshot: Snapshot) -> None:
        host = next((each for each in snapshot.hosts if each.name == self._chosen), None)
        details = self.query_one("#details", Static)
        if host is None:
            details.update("No run is watched: 1 shows the runs." if not snapshot.hosts else "")
            return
        text = Text()
        text.append(f"{one_line(host.name)} at {one_line(host.where)}\n", "bold")
        if host.name in self._examined:
            text.append("the doctor is looking\n", "cyan")
        elif host.name in self._reports:
            text.append_text(report_text(self._reports[host.name]))
        for process in snapshot.processes:
            if process.host == host.name:
                text.append(f"  {one_line(process.id):<18} {process.state:<9} pid {process.pid}\n")
        for trouble in host.troubles:
            text.append_text(lines(f"  {trouble}\n"))
        details.update(text)

    def action_doctor(self) -> None:
        if self._chosen:
            self._examine([self._chosen])

    def action_doctor_all(self) -> None:
        self._examine(list(self._shown))

    def action_logs(self) -> None:
        self.console_app.action_go("logs")

    def _examine(self, names: list[str]) -> None:
        self._examined |= set(names)
        self._show_details(self.console_app.watched.snapshot)
        self._run_doctor(names)

    @work(thread=True, group="doctor")
    def _run_doctor(self, names: list[str]) -> None:
        from panda_tui.examination import examine

        folder = self.console_app.folder
        if folder is None:
            return
        hosts = [host for host in folder.read_plan().hosts if host.name in names]
        examine(hosts, self._tell_report)

    def _tell_report(self, report: Report) -> None:
        self.post_message(self.Examined(report))

    def on_hosts_screen_examined(self, message: Examined) -> None:
        name = message.report.host.name
        self._reports[name] = message.report
        self._examined.discard(name)
        if not message.report.fit and message.report.failures:
            first = message.report.failures[0]
            self.console_app.say(f"{name}: {first.name}: {first.text}", problem=True)
        self._show_details(self.console_app.watched.snapshot)


def report_text(report: Report) -> Text:
    text = Text("doctor: ")
    for check in report.checks:
        if check.verdict is Verdict.UNKNOWN:
            continue
        failed = check.verdict is Verdict.FAILED
        text.append(f"{check.name} ", "bold red" if failed else "green")
        if check.text:
            text.append(f"{one_line(check.text)}  ")
        if failed and check.hint:
            text.append(f"({one_line(check.hint)})  ")
    text.append("\n")
    return text


def _cells(host: HostRow, processes: list[Process]) -> tuple[Text, ...]:
    living = sum(each.state in (State.STARTING, State.RUNNING, State.PAUSED) for each in processes)
    agent = Text("answers", "green") if host.present else plain(host.why or "no answer", "red")
    busy = host.load is not None and host.cpus and host.load > 1.5 * host.cpus
    return (
        plain(host.name, "bold"),
        agent,
        Text("" if host.offset_s is None else f"{1000 * host.offset_s:+.3f}"),
        Text("" if host.error_s is None else f"{1000 * host.error_s:.3f}"),
        Text("" if host.offset_s is None else f"{1e6 * host.drift:+.1f}"),
        Text("" if host.load is None else f"{host.load:.1f}/{host.cpus}", "yellow" if busy else ""),
        Text(_size(host.disk_free_bytes), "red" if 0 < host.disk_free_bytes < DISK_LOW_BYTES else ""),
        Text(_size(host.memory_free_bytes)),
        Text(f"{living}/{len(processes)}"),
        plain(", ".join(host.faults), "yellow"),
    )


def _size(size: int) -> str:
    return f"{size / (1 << 30):.1f} GB" if size else ""
